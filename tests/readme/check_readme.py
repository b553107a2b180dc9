#!/usr/bin/env python3
"""Runs the README's commands: each line of its ```sh blocks must succeed exactly as written, from the project
root. Code that the README quotes from a file must match the file. Links must have targets.

usage: check_readme.py PROJECT_ROOT FOLDER_OF_PTXREWRITE
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

QUOTED = ["tests/patches/add_pass/strip_sleeps.cpp"]


def check_commands(readme, root, tools):
    environment = dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"])
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
             for line in block.splitlines() if line.strip()]
    if len(lines) < 5:
        yield f"only {len(lines)} examples"
    with tempfile.TemporaryDirectory() as folder:
        for name in ("samples", "tests"):
            os.symlink(os.path.join(root, name), os.path.join(folder, name))
        for line in lines:
            missing = [tool for tool in ("nvcc", "ptxas") if re.search(rf"\b{tool}\b", line) and not shutil.which(tool)]
            if missing:
                print(f"skipped, no {missing[0]}: {line}")
                continue
            child = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment,
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
            if child.returncode != 0:
                yield f"exit code {child.returncode}: {line}\n{child.stderr}"
            else:
                print(f"ran: {line}")


def check_quotes(readme, root):
    for path in QUOTED:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            if file.read().strip() not in readme:
                yield f"the README does not quote {path} as it is"


def check_links(root):
    for folder in ("", "support", "ir", "grammar", "transforms", "emulator", "launch", "cuda", "cli", "samples",
                   "examples", "tests", "tests/bench", "tests/fuzz", "tests/golden", "tests/roundtrip", "docs"):
        path = os.path.join(root, folder, "README.md")
        if not os.path.exists(path):
            yield f"{folder}/README.md is missing"
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if folder and len(text.splitlines()) > 60:
            yield f"{folder}/README.md is longer than a page"
        # In code, a lambda looks like a link.
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            if not os.path.exists(os.path.join(root, folder, target)):
                yield f"{folder}/README.md: dead link {target}"


def main():
    root, tools = map(os.path.abspath, sys.argv[1:3])
    with open(os.path.join(root, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    wrong = [*check_links(root), *check_quotes(readme, root), *check_commands(readme, root, tools)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
