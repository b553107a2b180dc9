#!/usr/bin/env python3
"""The cost of `ptxrewrite score`: processor time of the recording and of the model beside the plain run, per sample.
Each is the minimum of several runs of up to five rounds each (`--time` alternates plain and observed ones): launches
take some 10 ms, and other processes may add as much.

usage: score_cost.py PTXREWRITE [--short] LAUNCH_FILE...     bar: at most the run itself; exceeding it fails no test.
--short: small sizes, one run.
"""
import json
import math
import subprocess
import sys

RUNS = 3
SIZES = [["--size", "medium"], []]  # tried in this order
SHORT = 0.005  # seconds: a plain run below this is mostly preparation; it is shown but not judged


def cost_of(tool, path):
    runs = [cost_of_run(tool, path) for _ in range(RUNS if len(SIZES) > 1 else 1)]
    return {part: min(run[part] for run in runs) for part in runs[0]}


def cost_of_run(tool, path):
    command = [tool, "score", path, "--json", "--time"]
    for size in SIZES:
        done = subprocess.run(command + size, capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)["files"][0]["versions"][0]["cost"]
    sys.exit(f"{' '.join(command)}: {done.stderr}")


def main():
    tool, *paths = sys.argv[1:]
    if paths[0] == "--short":
        del paths[0], SIZES[0]
    print(f"{'sample':24} {'plain s':>8} {'record s':>8} {'model s':>8} {'times':>6}")
    ratios, plain_sum, more_sum = [], 0, 0
    for path in paths:
        cost = cost_of(tool, path)
        plain = cost["plain_seconds"]
        more = max(cost["run_seconds"] - plain, 0) + cost["model_seconds"]
        times = more / max(plain, 1e-6)
        judged = plain >= SHORT
        if judged:
            ratios.append(times)
            plain_sum, more_sum = plain_sum + plain, more_sum + more
        name = path.rsplit("/", 1)[-1].removesuffix(".toml")
        print(f"{name:24} {plain:8.3f} {cost['run_seconds'] - plain:8.3f} {cost['model_seconds']:8.3f} {times:6.2f}"
              f"{'' if judged else '  short'}", flush=True)
    if ratios:
        mean = math.exp(sum(math.log(max(ratio, 1e-3)) for ratio in ratios) / len(ratios))
        print(f"{len(ratios)} samples of at least {SHORT} s: geometric mean {mean:.2f}, highest {max(ratios):.2f}, "
              f"all together {more_sum / plain_sum:.2f} (bar: 1)")


main()
