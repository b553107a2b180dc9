#!/usr/bin/env python3
"""Keeps the listings of the transforms' pages up to date. A listing follows a line

    <!-- $ ptxrewrite diff samples/vecadd/vecadd.ptx -p r2d2 -->

and is the output of that command, fenced. Without --bless, pages whose listings differ are an error.

usage: listings.py PROJECT_ROOT PATH/ptxrewrite [--bless] PAGE...
"""
import difflib
import re
import shlex
import subprocess
import sys

LISTING = re.compile(r"(<!-- \$ ptxrewrite (?P<arguments>[^\n]*?) -->\n```(?P<language>\w*)\n)(?P<text>.*?)(^```$)",
                     re.DOTALL | re.MULTILINE)


def output(tool, root, arguments):
    child = subprocess.run([tool] + shlex.split(arguments), cwd=root, capture_output=True, text=True, errors="replace")
    if child.returncode != 0:
        raise SystemExit(f"exit code {child.returncode}: ptxrewrite {arguments}\n{child.stderr}")
    return child.stdout


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--bless"]
    bless = "--bless" in sys.argv
    root, tool, pages = arguments[0], arguments[1], arguments[2:]
    wrong = 0
    for page in pages:
        with open(page, encoding="utf-8") as file:
            old = file.read()
        new, count = LISTING.subn(lambda match: match[1] + output(tool, root, match["arguments"]) + match[5], old)
        if count == 0:
            raise SystemExit(f"{page}: no listing")
        print(f"{page}: {count} listings")
        if new == old:
            continue
        if bless:
            with open(page, "w", encoding="utf-8") as file:
                file.write(new)
        else:
            wrong += 1
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), page, "as printed now"))
    raise SystemExit(1 if wrong else 0)


main()
