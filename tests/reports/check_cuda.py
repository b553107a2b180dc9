#!/usr/bin/env python3
"""Lines of CUDA on a kernel's page: their texts, what the accesses of each cost (counted by hand), links to the PTX; files
that --source finds; and files that hostile PTX names, which no page shows."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from check_counts import KERNEL, Page

SOURCE = """// A loop and a store.
__global__ void walk(unsigned *out) {
  unsigned product = 0;
  for (unsigned i = 1; i <= 10; ++i) product = i * threadIdx.x;

  // Only some of them:
  if (threadIdx.x >= 16)
    out[threadIdx.x] = product;
}
"""
# Instructions of PTX, and the .loc before them.
PLACES = {"    mov.u32 %r1, %tid.x;": "2 0", "LOOP:\n": "4 3", "    setp.lt.u32 %p2": "7 3",
          "    mul.wide.u32": "8 5"}


def with_lines(file):
    text = KERNEL
    for instruction, place in PLACES.items():
        assert text.count(instruction) == 1, instruction
        text = text.replace(instruction, f"    .loc 1 {place}\n" + instruction)
    return text + f'.file 1 "{file}"\n'


def page_of(tool, folder, text, *options):
    """The page's text, and the rows of its tables by section."""
    source = Path(folder, "walk.ptx")
    source.write_text(text, encoding="utf-8")
    subprocess.run([tool, "report", source, "--grid", "3", "--block", "64", "--arg", "buffer=u32:64:out", "--no-ptxas",
                    "-o", Path(folder, "pages"), *options], check=True, stdout=subprocess.DEVNULL)
    text = Path(folder, "pages", "walk-walk.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    return text, page.tables


def check_lines(text, tables, ptx):
    head, *rows = tables["cuda"]
    assert head == ["line", "share of issued", "transactions", "CUDA", "lines of PTX"], head
    # From the first line with instructions to the last; the page keeps the lines between them.
    lines = SOURCE.splitlines()
    assert [(int(row[0]), row[3]) for row in rows] == [(n, lines[n - 1].strip()) for n in range(2, 9)], rows
    by_line = {int(row[0]): row for row in rows}
    # Three blocks: threads 16 to 31 write 2 sectors, 32 to 63 write 4.
    assert [by_line[n][2] for n in range(2, 9)] == ["", "", "", "", "", "", "18"], rows
    shares = [float(row[1].split()[0]) for row in rows if row[1]]
    assert abs(sum(shares) - 100) < 0.5 and by_line[4][1] == max(by_line.values(), key=lambda row: float(
        (row[1] or "0").split()[0]))[1], shares
    stores = [n for n, line in enumerate(ptx.splitlines(), 1) if re.search("mul.wide|add.u64|st.global|ret;", line)]
    assert by_line[8][4] == f"{stores[0]}-{stores[2]} {stores[3]}" and f'href="#L{stores[0]}"' in text, by_line[8]
    # In the PTX the line of CUDA stands where its instructions begin.
    [store] = [row for row in tables["source"] if any("mul.wide.u32" in cell for cell in row)]
    assert any(cell.startswith("8 out[threadIdx.x] = product;") for cell in store), store


def main():
    tool = sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder, "sources")
        sources.mkdir()
        cuda = sources / "walk.cu"
        cuda.write_text(SOURCE, encoding="utf-8")
        ptx = with_lines(cuda)
        check_lines(*page_of(tool, folder, ptx), ptx)
        # As built on another machine.
        ptx = with_lines("/nonexistent/walk.cu")
        text, tables = page_of(tool, folder, ptx)
        assert "--source FOLDER" in text and "out[threadIdx.x]" not in text
        assert ["8", "18"] in [[row[0], row[2]] for row in tables["cuda"][1:]], tables["cuda"]
        check_lines(*page_of(tool, folder, ptx, "--source", sources), ptx)
        Path(folder, "walk.cu").write_text(SOURCE, encoding="utf-8")
        check_lines(*page_of(tool, folder, ptx), ptx)
        # A text that is too short, one that is no source, one that is no file.
        Path(folder, "walk.cu").write_text("// short\n", encoding="utf-8")
        assert "out[threadIdx.x]" not in page_of(tool, folder, ptx)[0]
        secret = Path(folder, "secret.txt")
        secret.write_text("secret words\n" * 20, encoding="utf-8")
        for name in (secret, folder, "/dev/zero", "", "walk.cu/../secret.txt"):
            assert "secret words" not in page_of(tool, folder, with_lines(name))[0], name
        assert "-lineinfo" in page_of(tool, folder, KERNEL)[0]
    print("lines of CUDA have their texts and counts")


if __name__ == "__main__":
    main()
