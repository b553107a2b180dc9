#!/usr/bin/env python3
"""Counters of captured launches against those of the program that they come from: they must be equal.

usage: captured_counters.py --tool PTXREWRITE --folder FOLDER [--nvcc NVCC] [--launches N] [--passes LIST] PROGRAM [ARGUMENT...]

Captures the launches of the kernel that executes most instructions in the program, gives them to `run`, `verify`, `study`
and `score`, and compares the sums with the program's own tables: --counters, --verify, --study, --score. Of a kernel with more
than N launches the hottest one is compared alone, with its row in the table of captures. With --nvcc the program is a
source to compile.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

GPU = "h100"  # whose machine instructions `study` and `score` count
UNITS = ("warp_instructions", "thread_instructions")


class Tool:
    def __init__(self, options):
        self.tool, self.passes = options.tool, options.passes
        self.folder = os.path.abspath(options.folder)
        self.command = [os.path.abspath(options.program), *options.arguments]
        if options.nvcc:
            self.command[0] = os.path.join(self.folder, "program")
            subprocess.run([options.nvcc, "-cudart", "shared", "-arch=sm_80", options.program, "-o", self.command[0]],
                           check=True)

    def exec(self, *given):
        report = os.path.join(self.folder, "report.json")
        subprocess.run([self.tool, "exec", "--emulate", GPU, "--json", report, *given, "--", *self.command], check=True,
                       stdout=subprocess.DEVNULL)
        with open(report, encoding="utf-8") as file:
            return json.load(file)

    def over(self, command, files, *given):
        """The document of a command over captured launches."""
        child = subprocess.run([self.tool, command, *files, "--json", *given], check=True, stdout=subprocess.PIPE)
        return json.loads(child.stdout)


def by_name(rows, name):
    return next(row for row in rows if row["kernel"] == name)


def total(rows, *keys):
    return {key: sum(row[key] for row in rows) for key in keys}


class Comparison:
    def __init__(self):
        self.failures = 0

    def equal(self, what, captured, program):
        print(f"{'equal' if captured == program else 'DIFFERENT':9} {what}: {captured} captured, {program} in the program")
        self.failures += captured != program


def captured_launches(tool, name, launches):
    """The files of the kernel's launches, and the rows of the program's table of captures for them."""
    folder = os.path.join(tool.folder, "captured")
    shutil.rmtree(folder, ignore_errors=True)
    report = tool.exec("--capture", folder, "--capture-launches", str(launches) if launches else "hottest")
    rows = [row for row in report["captures"] if row["kernel"] == name]
    problems = [row["problem"] for row in rows if "problem" in row]
    if problems or not rows:
        sys.exit(f"{name} is not captured: {problems}")
    return [row["file"] for row in rows], rows


def compare_ptx(tool, files, inside, comparison):
    """PTX instructions, by all four commands."""
    originals = [one["original"] for one in tool.over("verify", files, "--passes", tool.passes, "--given-shapes")]
    launches = [launch for one in tool.over("run", files) for launch in one["launches"]]
    studied = tool.over("study", files, "--gpu", GPU)["files"]
    scored = [one["versions"][0]["kernels"][0] for one in tool.over("score", files, "--gpu", GPU)["files"]]
    for command, rows, prefix in (("run", launches, ""), ("verify", originals, ""),
                                  ("study", [one["baseline"] for one in studied], "ptx_"), ("score", scored, "ptx_")):
        for unit in UNITS:
            comparison.equal(f"{command}: PTX {unit}", total(rows, prefix + unit)[prefix + unit], inside[unit])
    return originals, studied, scored


def compare_studies(tool, name, found, comparison):
    """Machine instructions, techniques, and --verify's original, of all launches together."""
    originals, studied, scored = found
    inside = by_name(tool.exec("--study", "--score", GPU)["study"]["kernels"], name)
    baseline = total([one["baseline"] for one in studied], *UNITS)
    for unit in UNITS:
        comparison.equal(f"study: machine {unit}", baseline[unit], inside[unit])
    comparison.equal("score: machine warp_instructions", total(scored, "warp_instructions")["warp_instructions"],
                     inside["versions"][0]["warp_instructions"])
    for technique, share in inside["left"].items():
        rows = [row for one in studied for row in one["rows"] if row["technique"] == technique]
        unit = "warp_instructions" if "warp_instructions" in rows[0] else "thread_instructions"
        comparison.equal(f"study: left by {technique}", total(rows, unit)[unit] / baseline[unit], share)
    verified = by_name(tool.exec("--verify", tool.passes)["verification"]["kernels"], name)
    if verified["compared_launches"] == len(originals):
        comparison.equal("verify: PTX warp_instructions of exec --verify",
                         total(originals, "warp_instructions")["warp_instructions"], verified["warp_instructions"])


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("tool", None), ("folder", None), ("nvcc", ""), ("passes", "schedule(force),dac(force)")):
        parser.add_argument("--" + name, default=value, required=value is None)
    parser.add_argument("--launches", type=int, default=20)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    if options.nvcc and not os.path.exists(options.nvcc):
        print("skipped: there is no nvcc")
        return 0
    os.makedirs(options.folder, exist_ok=True)
    tool, comparison = Tool(options), Comparison()
    kernel = max(tool.exec()["kernels"], key=lambda row: row["warp_instructions"])
    every = kernel["launches"] <= options.launches
    print(f"{kernel['kernel']}: {'all' if every else 'the hottest'} of {kernel['launches']} launches")
    files, rows = captured_launches(tool, kernel["kernel"], kernel["launches"] if every else 0)
    found = compare_ptx(tool, files, kernel if every else rows[0], comparison)
    if every:
        compare_studies(tool, kernel["kernel"], found, comparison)
    print(f"{comparison.failures} of these differ")
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
