#!/usr/bin/env python3
"""Every example of every command's --help must run exactly as written. An example that needs a program that this
machine lacks is skipped with a message.

usage: check_examples.py PROJECT_ROOT PTXREWRITE
"""
import os
import re
import shutil
import subprocess
import sys

from common import Place, finish, gpu_environment

# Examples use names of a user's files; each is replaced by one of these.
FILES = {
    "kernel.ptx": "backprop/backprop.ptx",
    "kernel.cu": "backprop/backprop.cu",
    "old.ptx": "vecadd/vecadd.ptx",
    "new.ptx": "backprop/backprop.ptx",
    "app.cu": "../tests/applications/managed.cu",
    "check.h": "../tests/applications/check.h",
}
# `reduce` needs a file on which a command fails: the assembler refuses it for its shared memory, and the stand-in for
# ptxrewrite below has a defect.
BIG = """.version 8.0
.target sm_80
.address_size 64
.shared .align 4 .b8 too_much[300000];
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  mov.u64 %rd2, too_much;
  st.global.u64 [%rd1], %rd2;
  brkpt;
  ret;
}
"""
# The tool with one defect: passes checked one by one fail on brkpt.
STAND_IN = """#!/bin/sh
case "$*" in
opt*--verify-each*) for file in "$@"; do [ -f "$file" ] && grep -q brkpt "$file" && exit 1; done ;;
esac
exec "{tool}" "$@"
"""
TOOLS = ("nvcc", "ptxas", "dot")


def examples(help_text):
    """The command lines below `Example:`: indented, a backslash at the end continues one."""
    block = re.search(r"^Example:\n((?:  .*\n|\n)*)", help_text + "\n", re.MULTILINE)
    if not block:
        return []
    text = re.sub(r"\\\n\s*", " ", block.group(1))
    return [line.strip() for line in text.splitlines() if line.strip()]


def prepare(place):
    for name, sample in FILES.items():
        shutil.copy(os.path.join(place.root, "samples", sample), place.path(name))
    with open(place.path("big.ptx"), "w", encoding="ascii") as file:
        file.write(BIG)
    place.record()
    os.rename(place.path("recorded.json"), place.path("samples.json"))
    os.mkdir(place.path("bin"))
    with open(place.path("bin/ptxrewrite"), "w", encoding="ascii") as file:
        file.write(STAND_IN.format(tool=place.tool))
    os.chmod(place.path("bin/ptxrewrite"), 0o755)


def what_fails(place, line, environment):
    """Runs one example; returns the error, or nothing."""
    child = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=place.folder, env=environment,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if child.returncode != 0:
        return f"exit code {child.returncode}\n{child.stderr}{child.stdout[-2000:]}"
    for target in re.findall(r"(?:\s-o|>)\s*([\w.]+)", line):
        if not os.path.exists(place.path(target)) or os.path.getsize(place.path(target)) == 0:
            return f"wrote no {target}"
    if "-Tsvg" in line:
        with open(place.path("flow.svg"), encoding="utf-8") as file:
            if file.read().count("<svg") != 1 or "<svg" in child.stdout:
                return "the picture is not one SVG file"
    return None


def main():
    failures, ran = [], 0
    with Place(*sys.argv[1:3], samples=("vecadd", "backprop", "matmul")) as place:
        prepare(place)
        environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8",
                           PATH=os.pathsep.join([place.path("bin"), "/usr/local/cuda/bin", os.environ["PATH"]]))
        for command in place.command_names():
            lines = examples(place.run([command, "--help"]).stdout)
            if not lines:
                failures.append(f"{command} --help has no example")
            for line in lines:
                missing = [tool for tool in TOOLS
                           if re.search(rf"\b{tool}\b", line) and not shutil.which(tool, path=environment["PATH"])]
                on_gpu = command == "bench" or (command == "record" and "--compare" not in line)
                if on_gpu and gpu_environment() is None:
                    missing.append("GPU")
                if missing:
                    print(f"skipped, no {missing[0]}: {line}")
                    continue
                if wrong := what_fails(place, line, {**environment, **(gpu_environment() if on_gpu else {})}):
                    failures.append(f"{line}: {wrong}")
                ran += 1
    print(ran, "examples ran")
    finish(failures)


main()
