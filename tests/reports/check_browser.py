#!/usr/bin/env python3
"""Pages in a headless Chromium, wide and narrow, light and dark: nothing is wider than the window, no script fails, letters
contrast with their background (WCAG 2.1, 1.4.3: 4.5 to 1), tables sort, pages stay small."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Runs in each page; reports to the surrounding window.
PROBE = """<script>window.addEventListener('load',()=>{
const rgb=t=>{const m=t.match(/[\\d.]+/g)||[0,0,0,0];return m.map(Number)};
const light=c=>{const f=v=>{v/=255;return v<=.03928?v/12.92:((v+.055)/1.055)**2.4};
return .2126*f(c[0])+.7152*f(c[1])+.0722*f(c[2])};
const behind=e=>{for(;e;e=e.parentElement){const c=rgb(getComputedStyle(e).backgroundColor);
if(c.length<4||c[3]>.9)return c}return matchMedia('(prefers-color-scheme:dark)').matches?[18,18,18]:[255,255,255]};
let worst=99,where='';for(const e of document.querySelectorAll('p,td,th,h1,h2,h3,a,svg text,.tile b,.tile span')){
if(!e.textContent.trim()||e.closest('.bar'))continue;const s=getComputedStyle(e);
const a=light(rgb(e.tagName==='text'?s.fill:s.color)),b=light(behind(e));
const k=(Math.max(a,b)+.05)/(Math.min(a,b)+.05);if(k<worst){worst=k;where=e.tagName+' '+e.textContent.slice(0,40)}}
let sorted=null;const t=document.querySelector('table.s');if(t&&t.tBodies[0].rows.length>2){
const n=[...t.tHead.rows[0].cells].findIndex(c=>c.textContent==='line');if(n>=0){const h=t.tHead.rows[0].cells[n];h.click();
const v=[...t.tBodies[0].rows].map(r=>+r.cells[n].textContent).filter(x=>x);sorted=v.every((x,i)=>!i||v[i-1]>=x)}}
const d=document.documentElement;parent.postMessage({width:d.clientWidth,scroll:d.scrollWidth,
height:d.scrollHeight,contrast:worst,where,sorted,dark:matchMedia('(prefers-color-scheme:dark)').matches},'*')})
</script>"""
AROUND = """<!doctype html><body><pre id=found></pre><script>const found=[];let failed=0;
addEventListener('message',e=>{found.push(e.data);document.getElementById('found').textContent=JSON.stringify(found)})
</script>FRAMES</body>"""


def pages(root, tool, folder):
    """One page of each kind, by name."""
    samples = root / "samples"
    run = lambda *words: subprocess.run([tool, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run("report", samples / "backprop/backprop.toml", samples / "matmul/matmul.toml", samples / "particlefilter/particlefilter.toml",
        "-p", "r2d2", "--no-ptxas", "-o", folder / "report")
    run("score", samples / "backprop/backprop.toml", "-p", "r2d2", "--html", folder / "score.html")
    run("diff", samples / "backprop/backprop.ptx", "-p", "r2d2", "--no-ptxas", "--html", folder / "diff.html")
    return sorted((folder / "report").glob("*.html")) + [folder / "score.html", folder / "diff.html"]


def look(browser, page, folder, dark):
    probed = folder / "probed.html"
    probed.write_text(page.read_text().replace("</head>", PROBE + "</head>", 1))
    frames = "".join(f'<iframe src="probed.html" width={width} height=800></iframe>' for width in (360, 768, 1400))
    around = folder / "around.html"
    around.write_text(AROUND.replace("FRAMES", frames))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           f"--user-data-dir={folder}/profile", "--enable-logging=stderr", "--window-size=1600,1200",
                           f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=20000",
                           "--dump-dom", around.as_uri()], capture_output=True, text=True)
    problems = [line for line in done.stderr.splitlines() if "CONSOLE" in line and ("Error" in line or "error" in line)]
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
    assert found and found.group(1), f"the browser shows nothing of {page.name}: {done.stderr[-2000:]}"
    text = found.group(1).replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
    return problems, json.loads(text)


def main():
    root, tool = Path(sys.argv[1]), sys.argv[2]
    browser = next((path for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
                    if (path := shutil.which(name))), None)
    if not browser:
        print("skipped: no Chromium on PATH")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = pages(root, tool, folder)
        for page in every:
            size = page.stat().st_size
            if size > 2_000_000:
                wrong.append(f"{page.name}: {size} bytes")
            for dark in (False, True):
                problems, seen = look(browser, page, folder, dark)
                wrong += [f"{page.name}: {line}" for line in problems]
                if len(seen) != 3:
                    wrong.append(f"{page.name}: {len(seen)} of 3 windows answered")
                for one in seen:
                    at = f"{page.name} at {one['width']} {'dark' if dark else 'light'}"
                    if one["dark"] != dark:
                        wrong.append(f"{at}: the browser did not take the scheme")
                    if one["scroll"] > one["width"]:
                        wrong.append(f"{at}: {one['scroll']} wide")
                    if one["contrast"] < 4.5:
                        wrong.append(f"{at}: contrast {one['contrast']:.2f} of {one['where']}")
                    if one["sorted"] is False:
                        wrong.append(f"{at}: a click on 'line' does not sort")
        print(f"{len(every)} pages in 6 windows each")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
