#!/usr/bin/env python3
"""Writes the man page from the output of `ptxrewrite --help` and `ptxrewrite COMMAND --help`.

usage: make_man.py PTXREWRITE OUTPUT          writes OUTPUT
             make_man.py PTXREWRITE OUTPUT --check  exit code 1 if OUTPUT is not up to date
"""
import os
import re
import subprocess
import sys


def help_of(tool, *command):
    environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", TERM="dumb")
    environment.pop("COLUMNS", None)
    text = subprocess.run([tool, *command, "--help"], check=True, capture_output=True, text=True, env=environment).stdout
    return text.rstrip() + "\n"


def escape(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in (".", "'") else line


def verbatim(text):
    return [".nf", *[escape(line) for line in text.splitlines()], ".fi"]


def page(tool):
    main = help_of(tool)
    commands = re.findall(r"^  ([a-z][a-z-]*)\s", main.split("Subcommands:")[-1].split("\n\n")[0], re.MULTILINE)
    lines = ['.\\" Written by docs/make_man.py from --help.', '.TH PTXREWRITE 1 "" "ptxrewrite" "User Commands"',
             ".SH NAME", "ptxrewrite \\- reads PTX, rewrites it, and shows what was done and why",
             ".SH SYNOPSIS", ".B ptxrewrite", ".I COMMAND", "[options]", ".I FILE...", ".SH DESCRIPTION"]
    lines += verbatim(main)
    for command in commands:
        lines += [f".SH PTXREWRITE {command.upper()}", *verbatim(help_of(tool, command))]
    lines += [".SH ENVIRONMENT", ".TP", ".B PTXREWRITE_PTXAS", "path of ptxas, where it is wanted", ".TP",
              ".B PTXREWRITE_CACHE",
              "where figures of assembled texts are kept, below ~/.cache/ptxrewrite if not set; off: nowhere", ".TP",
              ".B NO_COLOR", "no colours, on terminals too"]
    return "\n".join(lines) + "\n"


def main():
    tool, output = sys.argv[1:3]
    text = page(tool)
    if "--check" in sys.argv[3:]:
        with open(output, encoding="utf-8") as file:
            if file.read() == text:
                return 0
        print(f"{output} is not what --help says now; run: docs/make_man.py {tool} {output}")
        return 1
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
