#!/usr/bin/env python3
"""Do passes that are weighed by the machine model alone make kernels longer? ptxas counts, which the passes must not ask.

usage: losses.py --tool PTXREWRITE [--passes LIST]... [--target sm_80] [--allowed 1.0] FILE.ptx|FOLDER...

For each list of passes: kernels that change, and those that have fewer or more machine instructions then, in two halves
by a hash of their names (parameters of the model may be fitted to the first half alone). A variant replaces its
original. Unrolled loops count as often as they are repeated. Exit code 1: a kernel grows by more than --allowed.
"""

import argparse
import concurrent.futures
import hashlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "roundtrip"))
from cubin import Cubin  # noqa: E402
from tool import Tool  # noqa: E402

PASSES = ("r2d2", "narrow", "memory", "divisor", "composite", "packed", "warp")
SECONDS = 600  # of processor time, for one command
HALVES = ("fitted", "held out")


def half_of(kernel):
    return HALVES[hashlib.sha256(kernel.encode()).digest()[0] & 1]


def instructions(ptx, target, cubin):
    """Machine instructions by kernel; None if ptxas refuses the text."""
    child = subprocess.run(["ptxas", "-arch", target, "-o", cubin, ptx], capture_output=True, timeout=SECONDS, check=False)
    if child.returncode:
        return None
    with open(cubin, "rb") as file:
        functions = Cubin(file.read()).functions()
    return {name: function["instructions"] for name, function in functions.items() if function["entry"]}


def changes(before, after):
    """(kernel, instructions before, after) of kernels that have a variant or another number of instructions."""
    for kernel, count in before.items():
        variant = next((name for name in after if name.startswith(kernel + "__")), None)
        now = after.get(variant or kernel, count)
        if variant or now != count:
            yield kernel, count, now


class Study:
    def __init__(self, options):
        self.tool = Tool(options.tool, SECONDS, 0)
        self.target = options.target
        self.lists = options.passes or PASSES

    def of_file(self, path):
        """(passes, kernel, before, after) of all changes, the number of kernels, and what went wrong."""
        found, wrong = [], []
        with tempfile.TemporaryDirectory() as folder:
            text, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
            before = instructions(path, self.target, cubin)
            for passes in self.lists if before else ():
                outcome = self.tool.run("opt", "-p", passes, "--no-ptxas", path, "-o", text)
                after = instructions(text, self.target, cubin) if outcome.ok else None
                if after is None:
                    wrong.append(f"{path}: {passes}: {outcome.message or 'refused by ptxas'}")
                else:
                    found += [(passes, *change) for change in changes(before, after)]
        return found, len(before or ()), wrong


def ptx_files(paths):
    for path in paths:
        if os.path.isdir(path):
            yield from ptx_files(sorted(entry.path for entry in os.scandir(path) if entry.is_dir() or
                                        entry.name.endswith(".ptx")))
        else:
            yield path


def show(found, lists):
    print(f"{'passes':<12}{'half':<10}{'changed':>9}{'fewer':>8}{'more':>6}{'before':>10}{'after':>10}{'ratio':>8}")
    for passes in lists:
        for half in HALVES:
            rows = [row for row in found if row[0] == passes and half_of(row[1]) == half]
            before, after = sum(row[2] for row in rows), sum(row[3] for row in rows)
            fewer, more = sum(row[3] < row[2] for row in rows), sum(row[3] > row[2] for row in rows)
            ratio = f"{after / before:8.3f}" if before else ""
            print(f"{passes:<12}{half:<10}{len(rows):>9}{fewer:>8}{more:>6}{before:>10}{after:>10}{ratio}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--passes", action="append")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--allowed", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    try:
        subprocess.run(["ptxas", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print("skipped: there is no ptxas")
        return 77
    study = Study(options)
    found, kernels, wrong = [], 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for changed, count, failures in pool.map(study.of_file, ptx_files(options.paths)):
            found, kernels, wrong = found + changed, kernels + count, wrong + failures
    show(found, study.lists)
    losers = sorted((row for row in found if row[3] > row[2]), key=lambda row: row[2] / row[3])
    for passes, kernel, before, after in losers:
        print(f"{after / before:.3f}  {before} to {after}  {passes}  {kernel} ({half_of(kernel)})")
    print(*wrong, f"{kernels} kernels, {len(found)} changes, {len(losers)} of them longer, {len(wrong)} failures", sep="\n")
    too_long = any(row[3] > options.allowed * row[2] for row in losers)
    return 1 if wrong or too_long or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
