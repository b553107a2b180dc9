#!/usr/bin/env python3
"""Growth of the cost of each pass with the size of one big kernel, or with the number of kernels.

usage: growth_bench.py --tool PATH/ptxrewrite [--shapes A,B] [--passes A,B] [--divide N] [--limit SECONDS] [--json FILE]
       growth_bench.py --tool PATH/ptxrewrite --work [--shapes A,B] [--passes A,B]

Makes the kernels of growth_kernels.py with a tenth of their size and in full size (`--divide 10`: a hundredth and a
tenth), runs every pass in all its forms over them, and prints user seconds, peak memory and the exponent
between the two sizes, beside the bars: 10 s, 1 GB, exponent 1.2. A run above the limit is marked. Speed
fails no test: always exits 0 if every completed run was successful.

--work counts instead of timing: machine instructions that the tool executes, measured by valgrind's callgrind, the
same on every machine at any load, over the rows of WORK_ROWS. The cost of starting is subtracted. Exits 1 if an
exponent is above the row's bar, 77 if there is no valgrind.
"""

import argparse
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import growth_kernels

SECONDS_BAR, MEMORY_BAR, EXPONENT_BAR = 10.0, 1e9, 1.2
SKIPPED = 77
PASSES = {
    "identity": [],
    **{name: ["-p", name] for name in ("dce", "memory", "narrow", "warp", "packed", "divisor", "r2d2", "composite",
                                       "dac", "darsie", "schedule")},
    "spill": ["-p", "spill(limit=24)"],
    **{name + ".hardware": ["-p", name, "--form", "hardware"] for name in ("r2d2", "dac", "composite")},
    **{name + ".annotated": ["-p", name, "--form", "annotated"] for name in ("darsie", "regless", "composite")},
    "-O": ["-O"],
}
# Rows of --work: shape, pass, size and bar for the exponent. Each was above its bar once, for the reason given. The
# sizes are small, so that the constant part has weight; in nests live ranges grow with the square of the depth.
WORK_ROWS = (
    ("straight", "r2d2", 500, 1.35),              # lowering the whole function for each candidate
    ("blocks", "r2d2", 500, 1.35),
    ("parameters", "r2d2", 500, 1.35),            # sweeps over all instructions until the uniform datapath settles
    ("nested", "identity", 250, 1.35),            # a needless parameter at each header that a register is live through
    ("loops", "composite.hardware", 1500, 1.15),  # the start of a counted loop, searched in the whole text
    ("loops", "spill", 1000, 1.15),               # live ranges of a register, merged anew for each of its values
    ("loops", "dac", 1000, 1.15),                 # the slice of a loop, searched in the whole kernel
    ("loops", "r2d2.hardware", 2000, 1.08),       # whether a counter has advanced, searched to the end of the kernel
    ("blocks", "narrow", 20000, 1.12),            # facts of branches, searched over all dominators
    ("nested", "narrow", 200, 1.35),              # the solver, started again at all headers at the end of each loop
    ("nested", "dac.hardware", 200, 1.28),        # control dependence, searched in its lists
    ("kernels", "r2d2", 200, 1.05),               # references to a kernel, searched again for each kept original
    ("straight", "regless.annotated", 4000, 1.12), # the end of a region, weighed by a sweep to the end of the block
    ("targets", "regless.annotated", 1500, 1.18), # a list of all other paths for each path of a branch
    ("parameters", "darsie.annotated", 6000, 1.08), # parameters, searched in their list
    ("accesses", "r2d2", 8000, 1.08),             # the accesses that an offset serves, searched in their list
    ("atomics", "r2d2", 8000, 1.08),              # reductions of a block, searched in their list
    ("nested", "schedule", 300, 1.30),            # the loops between a constant and its readers, searched for each pair
)


def run(command, limit):
    """(user seconds, peak bytes, whether it ended in time) of one process; exits with its message if it fails."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, stdout=log, stderr=log,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)))
        _pid, status, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        if os.WIFSIGNALED(status) and usage.ru_utime + usage.ru_stime > 0.9 * limit:
            return usage.ru_utime, usage.ru_maxrss * 1024, False
        if status != 0:
            log.seek(0)
            sys.exit(f"{' '.join(command)}: status {status}: {log.read(500).decode(errors='replace')}")
        return usage.ru_utime, usage.ru_maxrss * 1024, True


def instructions(command, scratch):
    """Machine instructions that one run executes."""
    counted = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/callgrind"] + command,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, text=True)
    found = re.search(r"Collected : (\d+)", counted.stderr)
    if counted.returncode != 0 or not found:
        sys.exit(f"{' '.join(command)}: {counted.stderr[-500:]}")
    return int(found[1])


def exponent(small, large, ratio):
    return math.log(max(large, 1e-9) / max(small, 1e-9)) / math.log(ratio)


def command_for(tool, name, path):
    return [tool, "opt", path, "-o", os.path.join(os.path.dirname(path), "result.ptx")] + PASSES[name] + (
        ["--no-ptxas"] if PASSES[name] else [])


def kernel_file(scratch, shape, count):
    path = os.path.join(scratch, f"{shape}_{count}.ptx")
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.write(growth_kernels.make(shape, count))
    return path


def time_passes(arguments, scratch):
    """Prints a table by shape; returns its rows."""
    rows = []
    for shape in arguments.shapes:
        full = growth_kernels.SHAPES[shape][1] // arguments.divide
        print(f"{full:,} {growth_kernels.SHAPES[shape][2]}", flush=True)
        for name in arguments.passes:
            small, _peak, ended = run(command_for(arguments.tool, name, kernel_file(scratch, shape, full // 10)),
                                      arguments.limit)
            large, peak, ended_too = run(command_for(arguments.tool, name, kernel_file(scratch, shape, full)),
                                         arguments.limit) if ended else (0, 0, False)
            # Times below a few clock ticks cannot be compared.
            grows = exponent(max(small, 0.02), large, 10) if ended and ended_too else None
            ok = ended_too and large <= SECONDS_BAR and peak <= MEMORY_BAR and (grows <= EXPONENT_BAR or large < 0.5)
            print(f"  {name:20} {small:8.2f} s " + (f"{large:8.2f} s  exponent {grows:5.2f}  {peak / 1e6:7.0f} MB"
                                                   if ended_too else f"   over {arguments.limit} s")
                  + ("" if ok else "   over the bar"), flush=True)
            rows.append({"shape": shape, "count": full, "pass": name, "small_seconds": small,
                         "seconds": large if ended_too else None, "peak_bytes": peak, "exponent": grows, "within": ok})
    print(f"{sum(row['within'] for row in rows)} of {len(rows)} within the bars "
          f"({SECONDS_BAR:.0f} s, {MEMORY_BAR / 1e9:.0f} GB, exponent {EXPONENT_BAR} where it takes half a second)")
    return rows


def count_work(arguments, scratch):
    """Prints and judges instruction counts; returns 0 if all growth is within the bar."""
    if not shutil.which("valgrind"):
        print("skipped: no valgrind on PATH")
        return SKIPPED
    within = True
    for shape, name, full, bar in WORK_ROWS:
        if shape not in arguments.shapes or name not in arguments.passes:
            continue
        counts = [instructions(command_for(arguments.tool, name, kernel_file(scratch, shape, count)), scratch)
                  for count in (1, full // 4, full)]
        grows = exponent(counts[1] - counts[0], counts[2] - counts[0], 4)
        within &= grows <= bar
        print(f"{shape:12} {name:20} {full // 4:7,}: {counts[1] - counts[0]:14,}   {full:7,}: "
              f"{counts[2] - counts[0]:14,} instructions   exponent {grows:.2f} (bar {bar:.2f})", flush=True)
    return 0 if within else 1


def main():
    names = lambda known: lambda text: [name for name in text.split(",") if known[name] is not None]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, type=os.path.abspath)
    parser.add_argument("--shapes", type=names(growth_kernels.SHAPES), default=list(growth_kernels.SHAPES))
    parser.add_argument("--passes", type=names(PASSES), default=list(PASSES))
    parser.add_argument("--divide", type=int, default=1, help="sizes are this part of those of the bars")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one run")
    parser.add_argument("--work", action="store_true", help="count executed instructions and judge their growth")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.work:
            return count_work(arguments, scratch)
        rows = time_passes(arguments, scratch)
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
