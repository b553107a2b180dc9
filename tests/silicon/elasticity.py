#!/usr/bin/env python3
"""Set C: what limits a program, according to the clocks of a GTX Titan X, and according to the model.

usage: elasticity.py --tool PTXREWRITE [--short | --sizes] [--only GLOB]

The elasticity of a time by the memory's clock is ln(t(810) / t(3505)) / ln(3505 / 810) at a core clock of 1164 MHz (1:
only DRAM limits; 0: it does not), that by the core's clock ln(t(595) / t(1164)) / ln(1164 / 595) at 3505 MHz. It is
independent of the accuracy of absolute times. The model's times are those of machines with these clocks: DRAM's
bandwidth scales with the memory's, its latency beyond L2 keeps its nanoseconds.

PTXREWRITE_SILICON names a folder of captured originals: c/PROGRAM/ is a folder that `exec --capture` has written, whose
kernels are scored in place of ours, one launch of each.

--sizes: also with each side of the data of our kernels 2 and 4 times as long, since the set does not state sizes. The times
at full clocks are printed beside silicon's.
"""
import argparse
import fnmatch
import glob
import json
import math
import os
import re
import subprocess
import tempfile

import cases
from silicon import half_of

# By program of set C: sample and sizes (the defaults of PolyBench/GPU 1.0 and of the CUDA SDK; the set does not state
# them).
PROGRAMS = {
    "2dconvolution": ("convolution2d", {"rows": 4096, "columns": 4096}),
    "atax": ("atax", {"rows": 4096, "columns": 4096}),
    "bicg": ("bicg", {"rows": 4096, "columns": 4096}),
    "mvt": ("mvt", {"n": 4096}),
    "gesummv": ("gesummv", {"n": 4096}),
    "gemm": ("gemm", {"ni": 512, "nj": 512, "nk": 512}),
    "fdtd2d": ("fdtd2d", {"nx": 2048, "ny": 2048, "steps": 2}),
    "blackscholes": ("black_scholes", {"options": 4000000}),
    "hotspot": ("hotspot", {"side": 1024, "launches": 2}),
    "backprop": ("backprop", {"inputs": 65536}),
}
FIXED = ("steps", "launches")  # of the sizes: not a side of the data
BASE_BANDWIDTH, BASE_CORE, BASE_MEMORY = 264.0, 1018.0, 3505.0  # of gtxtitanx.toml
L2_LATENCY, DRAM_LATENCY = 225.0, 368.0


def machine(folder, memory, core):
    path = os.path.join(folder, f"titanx_{memory}_{core}.toml")
    with open(path, "w") as file:
        file.write(f'base = "gtxtitanx"\nname = "Titan X {memory} {core}"\nclock_mhz = {core}\n'
                   f'[memory]\nachieved_dram_gb_per_second = "{BASE_BANDWIDTH * memory / BASE_MEMORY:.2f}?"\n'
                   f'[latency]\ndram = {round(L2_LATENCY + (DRAM_LATENCY - L2_LATENCY) * core / BASE_CORE)}\n')
    return path


def originals(program):
    """Launch files of the captured original, one for each kernel."""
    folder = os.environ.get("PTXREWRITE_SILICON")
    return sorted(glob.glob(os.path.join(folder, "c", program, "*", "launch.toml"))) if folder else []


def own_launch(folder, program, factor):
    """Writes our kernel's launch file with a size "silicon". `factor`: of the sides of its data."""
    sample, sizes = PROGRAMS[program]
    sizes = {name: value if name in FIXED else factor * value for name, value in sizes.items()}
    launch = os.path.join(cases.SAMPLES, sample, sample + ".toml")
    with open(launch) as file:
        text = file.read()
    ptx = json.dumps(os.path.abspath(os.path.join(os.path.dirname(launch), sample + ".ptx")))
    text = re.sub(r"^ptx = .*$", lambda _: "ptx = " + ptx, text, flags=re.M)
    text += "\n[size.silicon]\n" + "".join(f"{name} = {value}\n" for name, value in sizes.items())
    path = os.path.join(folder, sample + ".toml")
    with open(path, "w") as file:
        file.write(text)
    return path


def kernels(tool, folder, program, gpu, factor=1):
    """The scored kernels of a program."""
    files = originals(program) or [own_launch(folder, program, factor), "--size", "silicon"]
    command = [tool, "score", *files, "--gpu", gpu, "--sample", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [kernel for file in json.loads(done.stdout)["files"] for kernel in file["versions"][0]["kernels"]]


def seconds(tool, folder, program, gpu, factor=1):
    return sum(kernel["seconds"] for kernel in kernels(tool, folder, program, gpu, factor))


def elasticities(slow_memory, fast, slow_core):
    return (math.log(slow_memory / fast) / math.log(3505 / 810), math.log(slow_core / fast) / math.log(1164 / 595))


def print_row(program, half, factor, silicon, model):
    """silicon, model: seconds with slow memory, at full clocks, and with a slow core."""
    measured, estimated = elasticities(*silicon), elasticities(*model)
    print(f"{program:16} {half:9} {factor:5} {1e3 * silicon[1]:11.2f} {1e3 * model[1]:6.2f} {measured[0]:18.2f} "
          f"{estimated[0]:6.2f} {measured[1]:17.2f} {estimated[1]:6.2f}", flush=True)
    return [abs(a - b) for a, b in zip(measured, estimated)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--short", action="store_true")
    only.add_argument("--sizes", action="store_true")
    parser.add_argument("--only", metavar="GLOB", default="*", help="names of programs")
    options = parser.parse_args()
    errors = {}
    print(f"{'program':16} {'half':9} {'sides':>5} {'ms: silicon':>11} {'model':>6} {'by memory: silicon':>18} {'model':>6} "
          f"{'by core: silicon':>17} {'model':>6}")
    with tempfile.TemporaryDirectory() as folder:
        machines = [machine(folder, *clocks) for clocks in ((810, 1164), (3505, 1164), (3505, 595))]
        for row in cases.table("c"):
            program = row["program"]
            captured = originals(program)
            if not (captured or program in PROGRAMS) or (options.short and program != "backprop"):
                continue
            if not fnmatch.fnmatch(program, options.only):
                continue
            silicon = [float(row[key]) / 1e3 for key in ("ms_810_1164", "ms_3505_1164", "ms_3505_595")]
            half = half_of(program)
            for factor in (1, 2, 4) if options.sizes and not captured else (1,):
                model = [seconds(options.tool, folder, program, gpu, factor) for gpu in machines]
                error = print_row(program + " *" * bool(captured), half, factor, silicon, model)
                if factor == 1:
                    errors.setdefault(half, []).append(error)
    print("*: captured original")
    for half, pairs in sorted(errors.items()):
        means = [sum(pair[i] for pair in pairs) / len(pairs) for i in range(2)]
        print(f"{half}: {len(pairs)} programs, mean error of the elasticity by memory {means[0]:.2f}, by core {means[1]:.2f}")


if __name__ == "__main__":
    main()
