// The style and the script of a report's page. Stacks use Paul Tol's "light" colours, which can be distinguished with
// any colour vision and have enough contrast to dark text; no information is conveyed by colour alone.
#include "evaluate/report/page_parts.h"
#include "support/text/html_text.h"

namespace ptxrewrite::evaluate {
namespace {

constexpr const char* style = R"(<style>
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--line:#d0d7de;--page:#fff;--box:#f6f8fa;--heat:#f7c59f;
--cool:#9ecae1;--link:#0550ae;--plus:#d4e9ff;--minus:#ffe5c7;--plus-word:#8ec5ff;--minus-word:#ffbd73;
--c0:#77aadd;--c1:#ee8866;--c2:#eedd88;--c3:#ffaabb;--c4:#99ddff;--c5:#44bb99;--c6:#bbcc33;--c7:#aaaa00;--c8:#b79bd1;
--c9:#cfd4d9;--c10:#d0a37c;--c11:#e8a0dc}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa6b2;--line:#3d444d;--page:#0d1117;--box:#161b22;
--heat:#7a4a1d;--cool:#1f4f70;--link:#79b8ff;--plus:#12304d;--minus:#46300f;--plus-word:#1f6bb0;--minus-word:#9a5f10}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1200px;padding:0 16px 48px;color:var(--ink);
background:var(--page)}
h1{font-size:22px;margin:20px 0 2px;overflow-wrap:anywhere}h2{font-size:18px;margin:32px 0 6px;padding-top:10px;
border-top:1px solid var(--line)}h3{font-size:15px;margin:14px 0 4px;overflow-wrap:anywhere}
p{margin:6px 0}p,li,summary{overflow-wrap:anywhere}.pair>*{min-width:0}a{color:var(--link)}.soft{color:var(--soft)}code{font-family:ui-monospace,monospace}
.lead{font-size:17px;max-width:70ch}
nav{display:flex;flex-wrap:wrap;gap:2px 14px;margin:8px 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:12px 0}
.tile{border:1px solid var(--line);border-radius:6px;padding:8px 12px;background:var(--box)}
.tile b{display:block;font-size:21px;line-height:1.25;overflow-wrap:anywhere}.tile span{color:var(--soft);font-size:13px}
.scroll{overflow-x:auto;max-width:100%}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:8px 28px}
svg{max-width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
svg .axis{stroke:var(--line);fill:none}svg .ink{stroke:var(--ink);fill:none}svg .area{fill:var(--cool);opacity:.55}
svg .mark{fill:var(--c1);stroke:var(--ink)}svg .mark+text{paint-order:stroke;stroke:var(--page);stroke-width:4px}
svg .box{fill:var(--box);stroke:var(--soft)}svg .heat{fill:var(--heat)}
svg .edge{stroke:var(--soft);fill:none}svg text.soft{fill:var(--soft)}
table{border-collapse:collapse}th.name{white-space:normal;max-width:24ch}th,td{padding:2px 9px;text-align:right;vertical-align:top;white-space:nowrap}
th{border-bottom:1px solid var(--soft);position:relative;cursor:pointer;font-size:13px;color:var(--soft)}
th[aria-sort=ascending]:after{content:" \25b2"}th[aria-sort=descending]:after{content:" \25bc"}
th.t,td.t{text-align:left}td.w{white-space:normal;min-width:16ch}
tbody tr:hover{background:var(--box)}
td.h,td.c{background-size:100% 1.5em;background-repeat:no-repeat;background-position:0 2px}
td.h{background-image:linear-gradient(to right,var(--heat) var(--h),transparent var(--h))}
td.c{background-image:linear-gradient(to right,var(--cool) var(--h),transparent var(--h))}
td.ptx{font:13px/1.45 ui-monospace,monospace;text-align:left;white-space:pre-wrap;min-width:30ch;overflow-wrap:anywhere}
td.ptx i{display:block;font:13px/1.4 system-ui,sans-serif;color:var(--soft);padding-left:2ch}
td.ptx i:before{content:"\25b8 "}td.ptx details{font:13px/1.4 system-ui,sans-serif;color:var(--soft);padding-left:2ch}
td.ptx details i{padding-left:0}
td.ptx u{display:block;text-decoration:none;color:var(--soft);border-top:1px dotted var(--line)}
td.mono{font:12px/1.6 ui-monospace,monospace;text-align:left;color:var(--soft);white-space:normal}
tr:target{outline:2px solid var(--link)}
.bar{display:flex;height:24px;border-radius:3px;overflow:hidden;margin:2px 0}
.bar span{overflow:hidden;color:#111;font-size:12px;line-height:24px;text-align:center;border-right:1px solid var(--page);
min-width:0}
.key{display:inline-block;width:18px;height:18px;line-height:18px;text-align:center;color:#111;font-size:12px;
border-radius:3px}
.diff td{font:13px/1.45 ui-monospace,monospace;padding:0 8px}.diff td.ptx{white-space:pre-wrap}
.diff .plus{background:var(--plus)}.diff .minus{background:var(--minus)}
.diff .plus mark{background:var(--plus-word);color:inherit}.diff .minus mark{background:var(--minus-word);color:inherit}
.diff .gap td{color:var(--soft);text-align:center}
.legend span{margin-right:1em;white-space:nowrap}.legend i{display:inline-block;width:.9em;height:.9em;margin-right:.3em}
summary{cursor:pointer}
@media (max-width:700px){body{font-size:14px;padding:0 10px 32px}.wide{display:none}th,td{padding:2px 5px}
td.w{min-width:26ch}th{white-space:normal;font-size:11px}td.ptx{min-width:17ch;font-size:12px}td.h,td.c{font-size:12px}.tile b{font-size:18px}}
@media print{nav{display:none}}
</style>)";

// Sorts a table by the heading that was clicked, by data-k if a cell has one; a third click restores the original
// order.
constexpr const char* script = R"(<script>
document.querySelectorAll('table.s').forEach(t=>{const b=t.tBodies[0],first=[...b.rows];
[...t.tHead.rows[0].cells].forEach((h,i)=>{h.tabIndex=0;const go=()=>{
const was=h.getAttribute('aria-sort');[...h.parentNode.cells].forEach(c=>c.removeAttribute('aria-sort'));
const now=was===null?'descending':was==='descending'?'ascending':null;
let rows=first;if(now){h.setAttribute('aria-sort',now);const k=r=>{const c=r.cells[i];if(!c)return'';
const v=c.dataset.k??c.textContent;return v!==''&&!isNaN(v)?+v:v};
const sign=now==='ascending'?1:-1;rows=[...first].sort((x,y)=>{const p=k(x),q=k(y);
if(typeof p===typeof q)return sign*(p<q?-1:p>q?1:0);return typeof p==='number'?-1:1})}
rows.forEach(r=>b.appendChild(r))};
h.addEventListener('click',go);h.addEventListener('keydown',e=>{if(e.key==='Enter')go()})})});
</script>
</body></html>
)";

} // namespace

std::string page_begin(std::string_view title) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n" + style + "</head><body>\n";
}

std::string page_end() {
  return script;
}

} // namespace ptxrewrite::evaluate
