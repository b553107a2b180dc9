#!/usr/bin/env python3
"""The page of a kernel shows the counts computed by hand: 3 blocks of 64 threads, a loop of ten trips, a branch that 16
threads of each block take. And words that differ are marked."""
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry walk(.param .u64 out)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    ld.param.u64 %rd1, [out];
    mov.u32 %r3, 0;
LOOP:
    add.u32 %r3, %r3, 1;
    mul.lo.u32 %r4, %r3, %r1;
    setp.lt.u32 %p1, %r3, 10;
    @%p1 bra LOOP;
    setp.lt.u32 %p2, %r1, 16;
    @%p2 bra SMALL;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
SMALL:
    ret;
}
"""


class Page(HTMLParser):
    """Rows of all tables by the id of their section, and texts in the control-flow picture."""

    def __init__(self):
        super().__init__()
        self.section, self.tables, self.drawn, self.cell, self.in_text, self.is_flow = "", {}, [], None, False, False

    def handle_starttag(self, tag, attributes):
        if tag == "h2":
            self.section = dict(attributes).get("id", "")
        elif tag == "tr":
            self.tables.setdefault(self.section, []).append([])
        elif tag in ("td", "th"):
            self.cell = ""
        elif tag == "svg":
            self.is_flow = dict(attributes).get("aria-label") == "control flow"
        elif tag == "text" and self.is_flow:
            self.drawn.append("")
            self.in_text = True

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self.cell is not None:
            self.tables[self.section][-1].append(self.cell.strip())
            self.cell = None
        elif tag == "text":
            self.in_text = False

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data
        if self.in_text:
            self.drawn[-1] += data


def main():
    tool = sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "walk.ptx")
        source.write_text(KERNEL)
        subprocess.run([tool, "report", source, "--grid", "3", "--block", "64", "--arg", "buffer=u32:64:out", "--no-ptxas",
                        "-o", Path(folder, "pages")], check=True, stdout=subprocess.DEVNULL)
        page = Page()
        text = Path(folder, "pages", "walk-walk.html").read_text()
        page.feed(text)
        rows = page.tables["source"]
        head = rows[0]
        by_text = {re.sub(r"\s+", " ", row[head.index("PTX")]).split(";")[0]: row for row in rows[1:]}

        def counts(instruction):
            row = by_text[instruction]
            return [row[head.index(name)] for name in ("warps", "threads", "transactions", "redundant")]

        # Two warps per block; every trip counts. The stores of a block: threads 16 to 63 with 4 bytes, which are 2
        # and 4 sectors of 32 bytes.
        expected = {
            "mov.u32 %r1, %tid.x": ["6", "192", "", ""],
            "mov.u32 %r2, %ctaid.x": ["6", "192", "", "100 %"],
            "add.u32 %r3, %r3, 1": ["60", "1920", "", "100 %"],
            "mul.lo.u32 %r4, %r3, %r1": ["60", "1920", "", ""],
            "st.global.u32 [%rd3], %r4": ["6", "144", "18", ""],
        }
        for instruction, wanted in expected.items():
            assert counts(instruction) == wanted, (instruction, counts(instruction), wanted)
        # Edges by threads: into the loop 192, back 9 times as many, out of it 192; past the store 3 times 16; to it and
        # from it the other 144.
        edges = sorted(int(text) for text in page.drawn if text.isdigit())
        assert edges == [48, 144, 144, 192, 192, 1728], edges
        assert not re.search(r"https?:|url\(|@import|src=", text), "something is fetched"
        assert not re.search(r"(?i)>[^<]*\b(?:nan|inf)\b[^<]*<", text)

        changed = Path(folder, "changed.ptx")
        changed.write_text(KERNEL.replace("%r3, 10;", "%r3, 12;"))
        subprocess.run([tool, "diff", source, changed, "--html", Path(folder, "diff.html")], check=True,
                       stdout=subprocess.DEVNULL)
        difference = Path(folder, "diff.html").read_text()
        assert difference.count("setp.lt.u32 %p1, %r3, <mark>10</mark>;") == 1, "no word is marked on the left"
        assert difference.count("setp.lt.u32 %p1, %r3, <mark>12</mark>;") == 1, "no word is marked on the right"
        assert difference.count("<mark>") == 2
    print("counts of the page are those counted by hand")


if __name__ == "__main__":
    main()
