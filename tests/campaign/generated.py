#!/usr/bin/env python3
"""Generated C++ programs as kernels: the emulator's results against the host's.

usage: generated.py --tool PATH/ptxrewrite [options]

csmith writes a program that prints a checksum of all its variables. It is compiled for the host and run, and compiled
to PTX, where one thread stores the checksum. The kernel runs on the emulator unchanged and after each pipeline of
passes. Every value must equal the host's. Needs csmith, a host compiler and nvcc or clang++ with the NVPTX back end;
without them it is skipped with exit code 77. --keep keeps program, PTX and launch file of every failure.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program_source import source_of  # noqa: E402
from tool import Tool  # noqa: E402

CSMITH = ["csmith", "--lang-cpp", "--cpp11", "--no-packed-struct", "--max-funcs", "4", "--max-block-depth", "3"]
HOST_SECONDS = 2
# Outcomes that are not failures; refusals of original kernels are counted and reported.
GOOD = {"right", "unchanged", "out of fuel", "does not end soon", "not compiled", "refused"}
PIPELINES = [["-p", passes, "--form", form] for passes, form in (
    ("dce", "legal"), ("r2d2(force)", "legal"), ("r2d2(force,persistent)", "legal"), ("r2d2", "hardware"),
    ("composite(force)", "legal"), ("composite", "hardware"), ("dac(force)", "legal"), ("dac", "hardware"),
    ("darsie(specialise=block=1,force)", "legal"), ("darsie", "annotated"), ("regless", "annotated"),
    ("schedule(force)", "legal"), ("spill(limit=24)", "legal"),
    ("r2d2(force),composite(force),schedule(force),spill(limit=32)", "legal"))]

LAUNCH = """ptx = "{ptx}"
[[launch]]
kernel = "generated"
grid = 1
block = 1
args = [ {{ buffer = "out" }} ]
[buffer.out]
type = "u32"
count = 1
output = true
"""


def device_command(compiler, level, source, output):
    if "nvcc" in os.path.basename(compiler):
        # -G is the debug build: nothing is optimised.
        flags = ["-G"] if level == 0 else [f"-Xcicc=-O{level}"]
        return [compiler, "-ptx", "-w", "-arch=sm_80", "-std=c++17", "-DFOR_DEVICE", *flags, "-x", "cu", source, "-o",
                output]
    return [compiler, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80", "-S",
            "-w", "-Wno-c++11-narrowing",
            "-std=c++17", "-DFOR_DEVICE", f"-O{level}", source, "-o", output]


def value_of_run(stdout):
    """The element of buffer `out` that `run --head 1` shows."""
    found = re.search(r"^out\s+u32\s+1\s+\S+\s+(\d+)", stdout, re.M)
    return int(found[1]) if found else None


class Campaign:
    def __init__(self, tool, host, compilers, levels, engines, fuel, keep):
        self.tool = tool
        self.host = host
        self.compilers = compilers
        self.levels = levels
        self.engines = engines
        self.fuel = fuel
        self.keep = keep

    def quietly(self, command, seconds):
        limited = ["prlimit", f"--cpu={seconds}", "--core=0", *command]
        try:
            return subprocess.run(limited, capture_output=True, text=True, errors="replace", timeout=60 * seconds)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -1, "", "no end")

    def expected(self, source, scratch):
        """The host's result; None if the program does not end soon."""
        program = os.path.join(scratch, "program")
        built = self.quietly([self.host, "-x", "c++", "-std=c++17", "-O1", "-w", "-Wno-narrowing", "-fwrapv", source,
                              "-o", program], 60)
        if built.returncode != 0:
            raise RuntimeError(f"the host's compiler refuses the program: {built.stderr[:300]}")
        ran = self.quietly([program], HOST_SECONDS)
        return int(ran.stdout) if ran.returncode == 0 else None

    def run_kernel(self, launch, expected):
        """("right", "") if it is right on every engine, or the outcome on the first engine where it is not."""
        for engine in self.engines:
            outcome = self.tool.run("run", launch, "--head", "1", "--host-threads", "1", "--fuel", str(self.fuel),
                                    "--engine", engine)
            if not outcome.ok:
                return ("out of fuel", "") if "fuel" in outcome.stderr else (outcome.kind,
                                                                             f"{engine}: {outcome.message}")
            value = value_of_run(outcome.stdout)
            if value != expected:
                return "wrong value", f"{engine}: {value} instead of {expected}"
        return "right", ""

    def check_kernel(self, name, source, compiler, level, expected, scratch):
        """Rows (what ran, outcome, message)."""
        ptx, launch = os.path.join(scratch, f"{name}.ptx"), os.path.join(scratch, f"{name}.toml")
        compiled = self.quietly(device_command(compiler, level, source, ptx), 60)
        if compiled.returncode != 0:
            return [("original", "not compiled", compiled.stderr.strip()[:200])]
        with open(launch, "w") as file:
            file.write(LAUNCH.format(ptx=os.path.basename(ptx)))
        rows = [("original", *self.run_kernel(launch, expected))]
        if rows[0][1] != "right":
            return rows
        with open(ptx) as file:
            original = file.read()
        seen = {original}
        for number, pipeline in enumerate(PIPELINES):
            what = " ".join(pipeline[1:])
            # Separate names, because there is a side file beside each.
            rewritten = os.path.join(scratch, f"{name}.rewritten{number}.ptx")
            rewritten_launch = os.path.join(scratch, f"{name}.rewritten{number}.toml")
            with open(rewritten_launch, "w") as file:
                file.write(LAUNCH.format(ptx=os.path.basename(rewritten)))
            outcome = self.tool.run("opt", ptx, *pipeline, "--no-ptxas", "--verify-each", "-o", rewritten)
            if not outcome.ok:
                rows.append((what, f"not rewritten: {outcome.kind}", outcome.message))
                continue
            with open(rewritten) as file:
                text = file.read()
            if text in seen:
                rows.append((what, "unchanged", ""))
                continue
            seen.add(text)
            kind, message = self.run_kernel(rewritten_launch, expected)
            # The original ran: any refusal of the rewritten kernel by the emulator is a failure.
            rows.append((what, f"rewritten kernel {kind}" if kind == "refused" else kind, message))
        return rows

    def check_seed(self, seed):
        with tempfile.TemporaryDirectory(prefix="generated-") as scratch:
            written = self.quietly([*CSMITH, "--seed", str(seed)], 60)
            if written.returncode != 0:
                raise RuntimeError(f"csmith fails on seed {seed}: {written.stderr[:200]}")
            source = os.path.join(scratch, f"program{seed}.cpp")
            with open(source, "w") as file:
                file.write(source_of(written.stdout))
            expected = self.expected(source, scratch)
            if expected is None:
                return [(f"seed {seed}", "host", "does not end soon", "")]
            rows = []
            for compiler in self.compilers:
                for level in self.levels:
                    name = f"{os.path.basename(compiler)}-O{level}-{seed}"
                    found = self.check_kernel(name, source, compiler, level, expected, scratch)
                    rows += [(name, *row) for row in found]
                    if self.keep and any(row[1] not in GOOD for row in found):
                        os.makedirs(self.keep, exist_ok=True)
                        for kept in (f"program{seed}.cpp", f"{name}.ptx", f"{name}.toml"):
                            shutil.copy(os.path.join(scratch, kept), self.keep)
            return rows


def report(rows):
    counts = Counter()
    for _name, what, outcome, _message in rows:
        kind = "original" if what in ("original", "host") else "rewritten"
        counts[kind, outcome] += 1
    for kind in ("original", "rewritten"):
        tally = [f"{count} {outcome}" for (k, outcome), count in counts.most_common() if k == kind]
        print(f"{kind}: {', '.join(tally)}")
    bad = [row for row in rows if row[2] not in GOOD]
    refused = Counter(message for _n, _w, outcome, message in rows if outcome == "refused")
    for message, count in refused.most_common(5):
        print(f"refused {count} times: {message}")
    if not counts["original", "right"]:
        print("no kernel ran to a right value: nothing was compared")
        return 1
    print(f"{counts['original', 'right']} kernels right, {counts['rewritten', 'right']} rewritten ones right, "
          f"{len(bad)} finds")
    return 1 if bad else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--seeds", default="1:10", help="FIRST:COUNT")
    parser.add_argument("--compilers", default="nvcc,clang++", help="those that are not there are left out")
    parser.add_argument("--levels", default="0,1,2,3")
    parser.add_argument("--engines", default="interpreter,generated", help="of the emulator, each runs every kernel")
    parser.add_argument("--fuel", type=int, default=50_000_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", help="a folder for what is wrong")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    host = shutil.which("c++") or shutil.which("g++")
    compilers = [found for found in map(shutil.which, arguments.compilers.split(",")) if found]
    if not shutil.which("csmith") or not host or not compilers:
        missing = "csmith" if not shutil.which("csmith") else "a host compiler" if not host else arguments.compilers
        print(f"generated: skipped, {missing} is not on PATH", file=sys.stderr)
        return 77
    first, count = map(int, arguments.seeds.split(":"))
    campaign = Campaign(Tool(os.path.abspath(arguments.tool), 600, 0), host, compilers,
                        list(map(int, arguments.levels.split(","))), arguments.engines.split(","), arguments.fuel,
                        arguments.keep)
    rows = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for found in pool.map(campaign.check_seed, range(first, first + count)):
            rows += found
            if sys.stderr.isatty():
                print(f"\r{len(rows)} runs", end="\r", file=sys.stderr)
            for name, what, outcome, message in found:
                if outcome not in GOOD or outcome == "not compiled":
                    word = "note" if outcome in GOOD else "FOUND"
                    print(f"{word} {name}: {what}: {outcome}: {message}", flush=True)
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
