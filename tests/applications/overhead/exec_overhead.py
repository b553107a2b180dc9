#!/usr/bin/env python3
"""Prints how much time `ptxrewrite exec` takes beside the emulated instructions, next to the bars.

usage: exec_overhead.py --tool PTXREWRITE --nvcc NVCC --folder FOLDER [--short]
Speed fails no test. That a module is read once, however many of its kernels are launched and how often, does.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Runner:
    def __init__(self, options):
        self.tool, self.report = options.tool, os.path.join(options.folder, "overhead.json")
        self.program = os.path.join(options.folder, "overhead")
        root = os.path.join(HERE, "..", "..", "..")
        subprocess.run([options.nvcc, "-cudart", "shared", "-arch=sm_80", "-I", root, os.path.join(HERE, "overhead.cu"),
                        "-o", self.program], check=True)

    def run(self, *arguments, options=()):
        """Seconds of the program's loop, seconds in the emulator and warp instructions of its kernel, standard error."""
        command = [self.tool, "exec", "--device", "emulator", "--json", self.report, *options, "--", self.program]
        child = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        if child.returncode != 0:
            print(child.stdout + child.stderr)
            sys.exit(f"FAILED: exit code {child.returncode}")
        with open(self.report, encoding="utf-8") as file:
            kernels = [row for row in json.load(file)["kernels"] if "clear" not in row["kernel"]]
        return (float(child.stdout), sum(row["seconds"] for row in kernels),
                sum(row["warp_instructions"] for row in kernels), child.stderr)


def print_work(runner, what, launches, threads, engine, rounds):
    shares, instructions = [], 0
    for _ in range(rounds):
        seconds, emulated, instructions, _ = runner.run(what, str(launches), str(threads),
                                                        options=["--engine", engine, "--host-threads", "1"])
        shares.append(100 * (seconds - emulated) / emulated)
    print(f"beside {instructions // launches:8} warp instructions a launch, {engine:11} {what:6} "
          f"{statistics.median(shares):8.2f} %" + ("      5 %" if what == "work" else ""))


def main():
    parser = argparse.ArgumentParser()
    for name in ("--tool", "--nvcc", "--folder"):
        parser.add_argument(name, default="")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    if not os.path.exists(options.nvcc):
        print("skipped: there is no nvcc")
        return 0
    runner = Runner(options)
    launches, rounds = (100, 1) if options.short else (10000, 5)
    empty = statistics.median(runner.run("empty", str(launches))[0] for _ in range(rounds))
    print(f"{'':61}{'measured':>10}     bar")
    print(f"{launches} launches of an empty kernel{'':{32 - len(str(launches))}}{empty:10.3f} s{1e-4 * launches:7.2f} s")
    for engine in ("interpreter", "generated"):
        for threads in (1 << 12, 1 << 16, 1 << 20):
            launches = 2 if options.short else max(5, (50 << 16) // threads)
            for what in ("work", "copies"):
                print_work(runner, what, launches, threads, engine, rounds)
    *_, text = runner.run("work", "3", "1024", options=["--log-level", "info"])
    read = sum(line.endswith(" functions") for line in text.splitlines())
    print(f"modules read, of 4 launches of 2 kernels of one module {read:20}       1")
    if read != 1:
        print("FAILED: the module was not read once")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
