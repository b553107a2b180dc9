#!/usr/bin/env python3
"""Runs CUDA programs under `ptxrewrite exec` with options that affect every launch, and checks its reports.

usage: exec_options.py CASE --tool PTXREWRITE --nvcc NVCC --folder FOLDER
Expected counts of launches follow from the programs' sources.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIMISING = "memory,narrow,warp,packed,divisor,r2d2,composite"  # the passes of -O


class Failed(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failed(what)


class Runner:
    def __init__(self, options):
        self.tool, self.nvcc = options.tool, options.nvcc
        self.folder = os.path.join(options.folder, options.case)
        os.makedirs(self.folder, exist_ok=True)

    def compile(self, name):
        name, kind = os.path.splitext(name)
        program = os.path.join(self.folder, os.path.basename(name))
        subprocess.run([self.nvcc, "-cudart", "shared", "-arch=sm_80", "-I", os.path.join(HERE, "../.."),
                        os.path.join(HERE, name + (kind or ".cu")), "-o",
                        program, "-lcuda"], check=True)
        return program

    def run(self, *arguments):
        child = subprocess.run([self.tool, *arguments], capture_output=True, text=True, check=False)
        print("$ ptxrewrite", " ".join(arguments), "->", child.returncode)
        print(child.stdout + child.stderr)
        return child

    def exec(self, program, *options, code=0):
        """The report of a run in which the program checked itself successfully."""
        report = os.path.join(self.folder, "report.json")
        child = self.run("exec", "--device", "emulator", "--json", report, *options, "--", program)
        expect(child.returncode == code, f"exit code {child.returncode}, not {code}")
        expect(child.stdout.endswith("right\n"), "the program is not right")
        with open(report, encoding="utf-8") as file:
            return json.load(file), child


def by_kernel(rows):
    """Rows by the readable part of a mangled name."""
    rows_by_name = {}
    for row in rows:
        length, rest = re.match(r"_Z(\d+)(.*)", row["kernel"]).groups()
        rows_by_name[rest[: int(length)]] = row
    return rows_by_name


def check_passes(runner):
    program = runner.compile("rewriting")
    report, _ = runner.exec(program, "--passes", "r2d2")
    kernels = by_kernel(report["rewriting"]["kernels"])
    walk, columns = kernels["walk"], kernels["columns"]
    expect((walk["rewritten_launches"], walk["original_launches"]) == (2, 1), "two of three launches of walk fit")
    expect(len(walk["reasons"]) == 1 and "not fulfilled" in walk["reasons"][0]["reason"], "the condition is named")
    expect((columns["rewritten_launches"], columns["original_launches"]) == (0, 1), "r2d2 leaves columns alone")
    # A persistent grid, and parameters that are computed at launch.
    report, _ = runner.exec(program, "--passes", "r2d2(persistent)")
    columns = by_kernel(report["rewriting"]["kernels"])["columns"]
    expect((columns["rewritten_launches"], columns["original_launches"]) == (1, 0), "columns runs persistent")
    # A kernel that is replaced in all launches.
    report, _ = runner.exec(program, "-p", "schedule(force)")
    columns = by_kernel(report["rewriting"]["kernels"])["columns"]
    expect((columns["rewritten_launches"], columns["original_launches"]) == (1, 0), "columns is scheduled anew")
    report, _ = runner.exec(program, "-O")
    expect(report["rewriting"]["passes"] == OPTIMISING, "-O is all families")
    child = runner.run("exec", "--passes", "r2d3", "--", program)
    expect(child.returncode == 2 and "r2d3" in child.stderr and not child.stdout, "a wrong name ends it before the start")


def check_specialise(runner):
    program = runner.compile("calls/repeated_launches.cpp")
    report, _ = runner.exec(program, "--counters")
    usual = [(row["kernel"], row["warp_instructions"]) for row in report["kernels"]]
    for options in ((), ("-O",)):
        report, _ = runner.exec(program, "--counters", "--specialise", "4", *options)
        expect(report["specialising"]["after"] == 4, "the report says after how many launches")
        sums, of_library, tally, turn = report["specialising"]["kernels"]
        # Of 20 with three taps 17, of 5 with two taps 2; one launch with another grid.
        expect((sums["launches"], sums["specialised_launches"], sums["made"]) == (26, 19, 2), f"launches of sums: {sums}")
        expect((of_library["launches"], of_library["specialised_launches"], of_library["made"]) == (6, 3, 1),
               f"of the library: {of_library}")
        expect((tally["launches"], tally["specialised_launches"], tally["made"]) == (6, 0, 0), f"of tally: {tally}")
        expect(tally["reasons"] == ["it uses the variable 'launches' of its module"], f"why not: {tally['reasons']}")
        expect((turn["launches"], turn["specialised_launches"], turn["made"]) == (7, 4, 1),
               f"with 64 KiB of dynamic shared memory: {turn}")
        now = [(row["kernel"], row["warp_instructions"]) for row in report["kernels"]]
        for (name, before), (same, after) in zip(usual, now):
            # A remainder by a literal is one PTX instruction, too, and -O writes it as a product, in more of them.
            expect(name == same and (name == "turn" or (after == before if name == "tally" else after < before)),
                   f"{usual} became {now}")
        if options:
            row = report["rewriting"]["kernels"][0]
            expect(row["kernel"] == "sum_taps" and row["rewritten_launches"] >= 19, f"rewritten launches: {row}")
    for options in (("--verify", "r2d2"), ("--capture", "captured"), ("--study",)):
        child = runner.run("exec", "--specialise", "4", *options, "--", program)
        expect(child.returncode == 2 and not child.stdout, f"--specialise and {options[0]} exclude each other")


def check_unusual_memory(runner):
    program = runner.compile("unusual_memory")
    for kind, reason in (("none", ""), ("gone", "is gone"), ("twice", "several addresses")):
        report = os.path.join(runner.folder, "report.json")
        child = runner.run("exec", "--json", report, "--verify", "dac(force)", "--", program, kind)
        expect(child.returncode == 0 and child.stdout == "right\n", f"memory: {kind}")
        with open(report, encoding="utf-8") as file:
            (row,) = json.load(file)["verification"]["kernels"]
        expect(row["compared_launches"] == (0 if reason else 1), f"memory: {kind}: compared {row['compared_launches']}")
        reasons = [entry["reason"] for entry in row["not_compared"]]
        expect(all(reason in text for text in reasons) and bool(reasons) == bool(reason), f"memory: {kind}: {reasons}")


def check_verify(runner):
    program = runner.compile("rewriting")
    report, child = runner.exec(program, "--verify", "r2d2(persistent)")
    kernels = by_kernel(report["verification"]["kernels"])
    walk, columns = kernels["walk"], kernels["columns"]
    expect((walk["launches"], walk["compared_launches"]) == (3, 2), "the launch that does not fit is not compared")
    expect(columns["compared_launches"] == 1 and columns["differing_bytes"] == 0, "columns is identical")
    expect(0 < columns["changed_bytes"] <= 6400 * 4, "columns writes 6400 floats")
    expect(columns["rewritten_warp_instructions"] not in (0, columns["warp_instructions"]), "other code has run")
    expect("identical" in child.stderr, "the table says so")
    timed = kernels["timed_columns"]
    expect(timed["compared_launches"] == 1, "times are compared")
    expect(timed["differing_bytes"] == timed["order_dependent_bytes"] == 0, "times are the same")
    # Memory of all kinds, cooperative launches, textures, constants: the copy must have all of them.
    unchanged = "the passes do not change it"
    for name, passes, compared, not_compared in (
            ("managed", "schedule(force),dac(force)", {"add": 1}, {}),
            ("grid_sync", "r2d2(force)", {"rotate": 1}, {}),
            ("textures", "schedule(force),dac(force)", {"sample": 2, "fetch": 1, "volume": 1}, {"turn": unchanged}),
            ("constants_graphs", "schedule(force),dac(force)", {"apply": 1, "add": 10}, {"fill": unchanged}),
            ("pointers", "schedule(force),dac(force)", {"sum": 1}, {}),
            ("pointers", "schedule(force)", {"sum": 1}, {})):
        report, _ = runner.exec(runner.compile(name), "--verify", passes)
        kernels = by_kernel(report["verification"]["kernels"])
        expect(kernels.keys() == compared.keys() | not_compared.keys(), f"{name}: kernels are {list(kernels)}")
        for kernel, row in kernels.items():
            expect(row["differing_launches"] == 0, f"{name}: {kernel} differs")
            expect(row["compared_launches"] == compared.get(kernel, 0), f"{name}: launches of {kernel} are compared")
            reasons = [one["reason"] for one in row["not_compared"]]
            expect(reasons == [not_compared[kernel]] if kernel in not_compared else not reasons,
                   f"{name}: {kernel} is left out for {reasons}")
    child = runner.run("exec", "--verify", "r2d2", "--passes", "r2d2", "--", program)
    expect(child.returncode == 2 and not child.stdout, "--verify and --passes exclude each other")


def check_capture(runner):
    captured_kernels = 0
    for name in ("rewriting", "managed", "grid_sync", "textures", "constants_graphs", "pointers"):
        folder = os.path.join(runner.folder, name + "_captured")
        shutil.rmtree(folder, ignore_errors=True)
        report, _ = runner.exec(runner.compile(name), "--capture", folder)
        counted = {row["kernel"]: row for row in report["kernels"]}
        for row in report["captures"]:
            expect("problem" not in row, f"{row['kernel']} is captured")
            captured_kernels += 1
            for path in os.listdir(os.path.dirname(row["file"])):
                mode = os.stat(os.path.join(os.path.dirname(row["file"]), path)).st_mode & 0o777
                expect(mode == 0o600, f"{path} has mode {mode:o}")
            child = runner.run("run", "--json", "--counters", row["file"])
            expect(child.returncode == 0, "what is captured runs, and leaves what is expected")
            document = json.loads(child.stdout)[0]
            launch = document["launches"][0]
            expect(all(buffer["differing"] == 0 for buffer in document["expected"]), "as expected")
            expect(launch["warp_instructions"] == row["warp_instructions"], "counters are those of the program")
            inside = counted[row["kernel"]]
            if inside["launches"] == 1:
                for what in ("blocks", "warp_instructions", "thread_instructions"):
                    expect(launch[what] == inside[what], f"{what} are those of the program")
        child = runner.run("exec", "--capture", folder, "--", os.path.join(runner.folder, name))
        expect(child.returncode == 2 and not child.stdout, "a folder that has files already is refused")
    shared = os.path.join(runner.folder, "shared")
    os.makedirs(shared, exist_ok=True)
    os.chmod(shared, 0o777)
    child = runner.run("exec", "--capture", shared, "--", os.path.join(runner.folder, "managed"))
    expect(child.returncode == 2 and not child.stdout, "a folder that others may write is refused")
    os.chmod(shared, 0o755)
    child = runner.run("exec", "--capture", shared, "--", os.path.join(runner.folder, "managed"))
    expect(child.returncode == 0, "an empty folder of one's own is taken")
    shutil.rmtree(shared)
    expect(captured_kernels >= 8, f"{captured_kernels} kernels are captured")
    # The other commands accept the capture, too.
    report, _ = runner.exec(runner.compile("rewriting"), "--capture", fresh(runner, "all"), "--capture-launches", "2")
    files = [row["file"] for row in report["captures"]]
    expect(len(files) == 4, "two launches of walk, one of columns and one of timed_columns")
    expect(not any(row["holds_addresses"] for row in report["captures"]), "there are no pointers in memory")
    for command in (["verify", "-p", "r2d2"], ["study", "--only=block"], ["score"], ["run", "--check"]):
        expect(runner.run(command[0], *files, *command[1:]).returncode == 0, f"{command[0]} takes captured launches")
    report, _ = runner.exec(runner.compile("rewriting"), "--capture", fresh(runner, "hot"), "--capture-launches", "hottest")
    walk = by_kernel(report["captures"])["walk"]
    expect(walk["launch"] == 2, "the launch with most rows is the hottest")
    # Names with a common prefix get a folder each. Pointers to the end of a range are pointers, too.
    report, _ = runner.exec(runner.compile("ranges"), "--capture", fresh(runner, "ends"))
    sums, last_ones = report["captures"][:3], report["captures"][3]
    expect(len({row["file"] for row in report["captures"] if "problem" not in row}) == 4, "each kernel has its file")
    for row in report["captures"]:
        expect(runner.run("run", row["file"]).returncode == 0, "it leaves what is expected")
    for row in sums:
        expect(not row["holds_addresses"], "values are no pointers")
        with open(row["file"], encoding="utf-8") as file:
            expect(file.read().count("offset = 100 }") == 1, "the end lies behind 100 values")
    expect(last_ones["holds_addresses"], "the end of a range is an address")
    child = runner.run("exec", "--capture", fresh(runner, "both"), "-O", "--", os.path.join(runner.folder, "ranges"))
    expect(child.returncode == 2 and not child.stdout, "--capture and passes exclude each other")
    # Pointers in memory: buffers keep their addresses. A damaged result is detected.
    report, _ = runner.exec(runner.compile("pointers"), "--capture", fresh(runner, "lists"))
    row = report["captures"][0]
    expect(row["holds_addresses"], "lists are pointers")
    expect(row["bytes"] < 1 << 20, "what the kernel does not touch is left out")
    with open(row["file"], encoding="utf-8") as file:
        text = file.read()
    expect(text.count("address = ") == 4, "nodes, heads, results and the variable")
    damaged = os.path.join(os.path.dirname(row["file"]), "damaged.toml")
    with open(damaged, "w", encoding="utf-8") as file:
        file.write(text.replace("grid = [4, 1, 1]", "grid = [3, 1, 1]"))
    expect(runner.run("run", damaged).returncode == 4, "three blocks leave less than is expected")


def check_study(runner):
    program = runner.compile("rewriting")
    page = os.path.join(runner.folder, "page.html")
    report, child = runner.exec(program, "--study", "--score", "h200", "--passes", "r2d2(persistent)", "--html", page)
    study = report["study"]
    kernels = by_kernel(study["kernels"])
    walk, columns = kernels["walk"], kernels["columns"]
    expect((walk["studied_launches"], columns["studied_launches"]) == (3, 1), "all launches are looked at")
    expect(study["all"]["warp_instructions"] == sum(row["warp_instructions"] for row in kernels.values()), "the sum")
    expect(abs(sum(row["time_share"] for row in kernels.values()) - 1) < 1e-9, "shares of the time are all of it")
    baseline, rewritten = columns["versions"]
    expect((baseline["launches"], rewritten["rewritten_launches"]) == (1, 1), "columns is scored as rewritten, too")
    expect(0 < columns["left"]["DAC-IDEAL"] < 1, "addresses of columns are affine")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    expect(text.count("<tr>") == len(kernels) + 2 and "DAC-IDEAL" in text, "a row for each kernel, their sum and the head")
    # exec and the commands use the same engines: one launch gives the same figures.
    folder = fresh(runner, "captured")
    report, _ = runner.exec(program, "--capture", folder)
    file = by_kernel(report["captures"])["columns"]["file"]
    alone = json.loads(runner.run("study", "--json", "--gpu", "h100", file).stdout)["files"][0]
    expect(alone["baseline"]["warp_instructions"] == columns["warp_instructions"], "study counts the same")
    for row in alone["rows"]:
        if row["technique"] == "DAC-IDEAL":
            left = row["warp_instructions"] / alone["baseline"]["warp_instructions"]
            expect(abs(left - columns["left"]["DAC-IDEAL"]) < 1e-9, "what DAC-IDEAL leaves is the same")


# NVIDIA A100 data sheet, 40 GB: 1,555 GB/s. A copy reads and writes each of its 64 MiB once.
BYTES, BANDWIDTH = 2 * (64 << 20), 1555e9


def check_events(runner):
    program = runner.compile("event_time")
    report, child = runner.exec(program, "--emulate", "a100", "--score", "a100")
    one, four, none = (float(time) for time in re.findall(r"launches: (\S+) ms", child.stdout))
    expect(none == 0, "no launch takes no time of the machine")
    expect(1 <= one * 1e-3 / (BYTES / BANDWIDTH) < 1.5, f"a copy that takes {one} ms is not bound by DRAM alone")
    # L2 holds 40 of the 128 MiB when the next copy starts.
    expect(4 * 88 / 128 < four / one < 4.1, f"four copies take {four} ms, one {one}")
    seconds = report["study"]["all"]["versions"][0]["seconds"]
    expect(abs(one + four - seconds * 1e3) < 1e-5 * seconds * 1e3, f"the report has {seconds} s")
    _, child = runner.exec(program, "--emulate", "a100")
    expect(float(child.stdout.split("0 launches: ")[1].split()[0]) > 0, "without a model events take the host's time")


def fresh(runner, name):
    folder = os.path.join(runner.folder, name)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def check_matrix_sums(runner):
    program = runner.compile("matrix_sums")
    _, child = runner.exec(program)
    expect("bits 3f800000\n" in child.stdout, "each sum of 1 and half an ulp is 1")
    # docs/h100.md: aligned products are added exactly, and the sum is cut off: 1 + 7.5 ulps is 1 + 7 ulps.
    _, child = runner.exec(program, "--matrix-sums", "hopper")
    expect("bits 3f800007\n" in child.stdout, "all products are in Hopper's sum")
    # The comparison of --verify runs in the same order of summation as the program.
    runner.exec(program, "--matrix-sums", "hopper", "--verify", OPTIMISING)


CASES = {"passes": check_passes, "specialise": check_specialise, "verify": check_verify, "capture": check_capture, "study": check_study,
         "events": check_events, "matrix_sums": check_matrix_sums, "memory": check_unusual_memory}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    for name in ("--tool", "--nvcc", "--folder"):
        parser.add_argument(name, default="")
    options = parser.parse_args()
    if not os.path.exists(options.nvcc):
        print("skipped: there is no nvcc")
        return 0
    try:
        CASES[options.case](Runner(options))
    except Failed as failure:
        print("FAILED:", failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
