#!/usr/bin/env python3
"""Removes statements that a target lacks from kernels of one statement a line, so that a GPU can run the others.

usage: drop_refused.py FOLDER --ptxas PTXAS --target sm_NN --list FILE     remove what ptxas refuses, and list it
       drop_refused.py FOLDER --list FILE                                 remove what the list has, without ptxas

The list has a line `KERNEL.ptx <tab> LINE <tab> STATEMENT` for each removed one. A line is replaced by a comment, so
that the others keep their numbers.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys


def remove(path, numbers):
    lines = path.read_text().split("\n")
    removed = []
    for number in sorted(numbers):
        removed.append((path.name, number, lines[number - 1]))
        lines[number - 1] = "//"
    path.write_text("\n".join(lines))
    return removed


def refused_lines(path, ptxas, target):
    result = subprocess.run([ptxas, f"-arch={target}", "-O0", "-o", os.devnull, str(path)], capture_output=True, text=True)
    return {int(number) for number in re.findall(r"line (\d+); error", result.stdout + result.stderr)}, result.returncode


# ptxas 13.0 dies on guarded statements of these opcodes with a sink as destination; so may a driver's compiler.
CRASHES = re.compile(r"^@!?%p\d (setp|lop3)\.\S+ _[,|]")


def drop(path, ptxas, target):
    crashing = {number for number, line in enumerate(path.read_text().split("\n"), 1) if CRASHES.match(line)}
    removed = remove(path, crashing)
    while True:
        numbers, code = refused_lines(path, ptxas, target)
        if code == 0:
            return removed, ""
        if not numbers:
            return removed, f"{path.name}: exit code {code}"
        removed += remove(path, numbers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ptxas")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--list", required=True)
    options = parser.parse_args()
    if not options.ptxas:
        wanted = {}
        with open(options.list, encoding="utf-8") as file:
            for line in file:
                name, number, statement = line.rstrip("\n").split("\t")
                wanted.setdefault(name, {})[int(number)] = statement
        for name, lines in wanted.items():
            path = options.folder / name
            if not path.exists():
                continue
            for _, number, statement in remove(path, lines):
                if statement != lines[number]:
                    sys.exit(f"{name}, line {number} is {statement!r}, not {lines[number]!r}")
        return 0
    paths = sorted(options.folder.glob("*.ptx"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(lambda path: drop(path, options.ptxas, options.target), paths))
    removed = [row for rows, _ in outcomes for row in rows]
    troubles = [trouble for _, trouble in outcomes if trouble]
    with open(options.list, "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in sorted(removed))
    print(f"{len(paths)} kernels, {len(removed)} statements removed", *troubles, sep="\n")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
