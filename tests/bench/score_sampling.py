#!/usr/bin/env python3
"""Difference between `ptxrewrite score`, which samples blocks and windows, and `score --exact`, which uses all.

usage: score_sampling.py [--gpu NAME] PTXREWRITE [--short] LAUNCH_FILE...     fails no test. --short: small sizes.
"""
import json
import math
import subprocess
import sys

SIZES = [["--size", "medium"], []]  # tried in this order


def clocks_of(tool, gpu, path, more):
    command = [tool, "score", path, "--json", "--gpu", gpu] + more
    for size in SIZES:
        done = subprocess.run(command + size, capture_output=True, text=True)
        if done.returncode == 0:
            kernels = json.loads(done.stdout)["files"][0]["versions"][0]["kernels"]
            return {kernel["kernel"]: kernel["clocks"] for kernel in kernels}
    sys.exit(f"{' '.join(command)}: {done.stderr}")


def main():
    tool, *paths = sys.argv[1:]
    gpu = "h200"
    if tool == "--gpu":
        gpu, tool, *paths = paths
    if paths[0] == "--short":
        del paths[0], SIZES[0]
    deviations = []
    print(f"{'kernel':44} {'exact':>12} {'sampled':>12} {'off by %':>9}")
    for path in paths:
        sampled, exact = clocks_of(tool, gpu, path, []), clocks_of(tool, gpu, path, ["--exact"])
        name = path.rsplit("/", 1)[-1].removesuffix(".toml")
        for kernel, clocks in exact.items():
            off = 100 * (sampled[kernel] / clocks - 1)
            deviations.append((abs(off), f"{name} {kernel}"))
            print(f"{name + ' ' + kernel:44.44} {clocks:12.0f} {sampled[kernel]:12.0f} {off:+9.2f}", flush=True)
    deviations.sort()
    mean = sum(off for off, _ in deviations) / len(deviations)
    ninth = deviations[math.ceil(0.9 * len(deviations)) - 1][0]
    print(f"{len(deviations)} kernels on {gpu}: off by {mean:.2f} % on average, 90th percentile {ninth:.2f} %, "
          f"at most {deviations[-1][0]:.2f} % ({deviations[-1][1]})")


main()
