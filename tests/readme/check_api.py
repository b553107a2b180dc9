#!/usr/bin/env python3
"""The API reference: Doxygen makes it without a warning, and headers' comments are on its pages: the first sentence of
each public header, comments above and after declarations, code of the examples.

usage: check_api.py ROOT     exit code 77 where there is no doxygen
"""
import html
import os
import re
import subprocess
import sys
import tempfile


def text_of(path):
    with open(path, encoding="utf-8") as file:
        plain = re.sub(r"<(script|style).*?</\1>", " ", file.read(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", plain)).replace("\u200b", "").split())


def page_of(name):
    """Doxygen's name of the page of a file or a class."""
    return name.replace("_", "__").replace(".", "_8").replace("::", "_1_1").replace("/", "_2")


def main():
    root = sys.argv[1]
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([sys.executable, "-B", os.path.join(root, "docs", "api", "make_api.py"), root, folder],
                              capture_output=True, text=True, check=False)
        print(made.stdout.strip())
        if made.returncode == 77:
            return 77
        if made.returncode or made.stderr:
            complaints.append(f"exit code {made.returncode}, says {made.stderr}")
        pages = os.path.join(folder, "html")
        with open(os.path.join(root, "cmake", "public_headers.txt"), encoding="utf-8") as file:
            public = [line for line in file.read().splitlines() if line and not line.startswith("#")]
        for header in public:
            with open(os.path.join(root, header), encoding="utf-8") as file:
                block = re.match(r"((?:// .*\n)+)", file.read()).group(1)
            sentence = " ".join(re.sub(r"^// ?", "", block, flags=re.MULTILINE).split()).split(". ")[0].split(":")[0]
            own = os.path.join(pages, page_of(os.path.basename(header)) + ".html")
            own = own if os.path.exists(own) else os.path.join(pages, page_of(header) + ".html")
            if not os.path.exists(own) or sentence.replace("`", "") not in text_of(own):
                complaints.append(f"{header}: not on its page: {sentence}")
        for page, words in (  # above a member, behind one, behind an enumerator's line, code at a header's head
                ("classptxrewrite::emulator::Program", "Returns an error for an unknown kernel, bad dimensions, a wrong parameter size"),
                ("structptxrewrite::emulator::InstructionCounters", "executions in which no active lane's guard was true"),
                ("structptxrewrite::transforms::Obligation", 'readable: "0 <= 4*P1 + 4*tid.x < 2^31"'),
                ("emulator.h", "auto program = Program::load(module, memory);")):
            if words not in text_of(os.path.join(pages, page_of(page) + ".html")):
                complaints.append(f"{page}: without '{words}'")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
