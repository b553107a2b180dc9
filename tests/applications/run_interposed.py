#!/usr/bin/env python3
"""Runs a program of the driver API under `exec --device cuda`: the interposed driver over the emulated one, in place of
a GPU's driver. The program compares the kernels' results with its own sums; launches are counted as its source has
them: six through a module, of which
one does not fulfil the variant's condition and one goes into a graph, and two through a library.

usage: run_interposed.py --tool PTXREWRITE --nvcc NVCC --driver LIBCUDA --interposed LIBCUDA --folder FOLDER
Exits with 77 where nvcc is missing.
"""
import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failed(what)


class Runner:
    def __init__(self, options):
        self.options = options
        self.program = self.compile("interposed.cpp")

    def compile(self, source):
        options = self.options
        program = os.path.join(options.folder, os.path.splitext(os.path.basename(source))[0])
        stubs = os.path.join(os.path.dirname(os.path.realpath(options.nvcc)), "../lib64/stubs")
        # Only the driver's name is needed for linking; without a toolkit's stub, the emulated driver has it, too.
        libraries = stubs if os.path.isdir(stubs) else os.path.dirname(options.driver)
        subprocess.run([options.nvcc, "-std=c++17", "-cudart", "none", "-I", os.path.join(HERE, "../.."),
                        os.path.join(HERE, source), "-o", program, f"-L{libraries}", "-lcuda"], check=True)
        return program

    def exec(self, words, arguments=(), code=0, device=("--device", "cuda"), **environment):
        report = os.path.join(self.options.folder, "interposed.json")
        if os.path.exists(report):
            os.remove(report)
        command = [self.options.tool, "exec", *device, "--json", report, *words, "--", self.program, *arguments]
        variables = {**os.environ, "PTXREWRITE_LIBCUDA": self.options.driver, **environment}
        child = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
        print("$", " ".join(command[1:]), environment or "", "->", child.returncode)
        print(child.stdout + child.stderr)
        expect(child.returncode == code, f"exit code {child.returncode}, not {code}")
        if code == 0:
            expect(child.stdout.endswith("right\n"), "the program is not right")
        if not os.path.exists(report):
            return None, child
        with open(report, encoding="utf-8") as file:
            document = json.load(file)
        if "rewriting" not in document or "specialising" in document:
            return document, child
        return [(row["rewritten_launches"], row["original_launches"], row["reasons"])
                for row in document["rewriting"]["kernels"]], child


def names_of(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in text.splitlines()}


# Kernels for launches that are repeated: counts as in exec_options.py.
def check_specialise(runner):
    usual = runner.program
    # No two launches have the same numbers.
    document, _ = runner.exec(["--specialise", "2"])
    expect([(row["specialised_launches"], row["made"]) for row in document["specialising"]["kernels"]] == [(0, 0)] * 2,
           f"launches that differ: {document}")
    runner.program = runner.compile("calls/repeated_launches.cpp")
    for words in (["--specialise", "4"], ["--specialise", "4", "-O"], ["--specialise", "4", "-O", "--autotune"]):
        document, _ = runner.exec(words)
        sums, turn, *others = sorted(document["specialising"]["kernels"], key=lambda row: -row["launches"])
        tally, of_library = sorted(others, key=lambda row: row["kernel"] != "tally")
        expect((sums["launches"], sums["made"]) == (26, 2), f"{words}: {sums}")
        # When kernels are timed, the original runs in turn.
        most = 17 + 2
        expect(sums["specialised_launches"] == most or ("--autotune" in words and 0 < sums["specialised_launches"] < most),
               f"{words}: {sums}")
        expect(of_library["made"] == 1 and ("--autotune" in words or of_library["specialised_launches"] == 3),
               f"{words}: {of_library}")
        expect(turn["made"] == 1 and ("--autotune" in words or turn["specialised_launches"] == 4),
               f"{words}, 64 KiB of dynamic shared memory: {turn}")
        expect(tally["made"] == 0 and "variable" in tally["reasons"][0], f"{words}: {tally}")
    runner.program = usual


def check(runner):
    launches, _ = runner.exec(["-p", "r2d2(force)"])
    expect([row[:2] for row in launches] == [(4, 2), (2, 0)], f"launches {launches}")
    reasons = [row["reason"] for row in launches[0][2]]
    expect(any("not fulfilled" in reason for reason in reasons), "the condition is named")
    expect(any("captured" in reason for reason in reasons), "the graph is named")
    # One resident wave instead of the whole grid: computed parameters and the driver's occupancy.
    launches, _ = runner.exec(["-p", "r2d2(force,persistent)"])
    expect([row[:2] for row in launches] == [(4, 2), (2, 0)], f"persistent launches {launches}")
    # Both codes are timed eight times, then one is chosen: 7 launches of each of two modules are too few to decide.
    launches, _ = runner.exec(["-p", "r2d2(force)", "--autotune"], ["100"])
    rewritten, original, reasons = launches[1]
    expect(rewritten + original == 102 and rewritten >= 8, f"tuned launches {launches[1]}")
    timed = {row["reason"]: row["launches"] for row in reasons}
    # In addition to the hundred equal launches there are two others, first launches of variants: the original runs.
    expect(8 <= timed.get("the original is being timed", 0) <= 12, f"timed launches {timed}")
    expect(rewritten >= 90 or timed.get("the original is faster", 0) >= 80, "the decision stays")
    # No passes requested, or switched off: the driver's own functions.
    launches, child = runner.exec([])
    expect(launches is None and "passes" not in child.stderr, "nothing is rewritten without passes")
    launches, child = runner.exec(["-p", "r2d2(force)"], PTXREWRITE_DISABLE="1")
    expect(launches is None and "passes" not in child.stderr, "PTXREWRITE_DISABLE switches it off")
    check_specialise(runner)
    # No driver, and options that observe launches.
    _, child = runner.exec(["-p", "r2d2(force)"], code=77, PTXREWRITE_LIBCUDA="/nonexistent/libcuda.so.1")
    expect("no GPU here" in child.stderr, "no driver is no GPU")
    for words in (["--check"], ["--study"], ["--verify", "r2d2"], ["--emulate", "a100"]):
        runner.exec(words, code=2)
    # Without --device: the GPU, unless there is none or an option is for the emulator.
    launches, _ = runner.exec(["-p", "r2d2(force)"], device=())
    expect([row[:2] for row in launches] == [(4, 2), (2, 0)], f"launches {launches} on the GPU that there is")
    for words, environment in ((["--counters"], {}), (["--emulate", "a100"], {}), (["--fuel", "1000000"], {}),
                               ([], {"PTXREWRITE_LIBCUDA": "/nonexistent/libcuda.so.1"})):
        document, _ = runner.exec(words, device=(), **environment)
        expect(sum(row["warp_instructions"] for row in document["kernels"]) > 0, f"{words} {environment}: not emulated")
    expect(names_of(runner.options.driver) == names_of(runner.options.interposed), "names of the two libraries differ")
    forwarded = re.findall(r"ENTRY_POINT\((cu\w+)\)",
                           open(os.path.join(HERE, "../../cuda/driver_api/entry_points.def"), encoding="utf-8").read())
    expect(set(forwarded) <= names_of(runner.options.interposed), "an entry point of cuda.h is missing")


def main():
    parser = argparse.ArgumentParser()
    for name in ("tool", "nvcc", "driver", "interposed", "folder"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    if not os.path.exists(options.nvcc):
        print("skipped: no nvcc here")
        return 77
    try:
        check(Runner(options))
    except Failed as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
