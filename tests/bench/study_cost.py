#!/usr/bin/env python3
"""The cost of `ptxrewrite study`: processor time in launches, with and without, per sample; and the distance of sampled
blocks' shares from those of all blocks.

usage: study_cost.py PTXREWRITE [--short] LAUNCH_FILE...     exit code 1 if any sample costs more than LIMIT times the
plain run. --short: small sizes, and time is not judged.
"""
import json
import math
import subprocess
import sys

LIMIT = 5  # issue: the study costs at most five times the plain run
SHARES = ("redundant", "fewer_warp_instructions", "fewer_thread_instructions")
SIZES = [["--size", "medium"], []]  # tried in this order
SHORT = 0.005  # seconds: a plain run below this is mostly the study's own preparation; it is shown but not judged


def study(tool, path, *options):
    command = [tool, "study", path, "--json", *options]
    for size in SIZES:
        done = subprocess.run(command + size, capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)["files"][0]
    sys.exit(f"{' '.join(command)}: {done.stderr}")


def main():
    tool, *paths = sys.argv[1:]
    if paths[0] == "--short":
        del paths[0], SIZES[0]
    is_short = len(SIZES) == 1
    print(f"{'sample':24} {'plain s':>8} {'study s':>8} {'times':>6} {'blocks':>8} {'looked at':>9} {'off by':>7}")
    ratios = []
    for path in paths:
        sampled, exact = study(tool, path, "--time"), study(tool, path, "--sample", "1")
        cost = sampled["cost"]
        times = cost["seconds"] / max(cost["plain_seconds"], 1e-6)
        off = max(abs(one.get(share, 0) - other.get(share, 0))
                  for one, other in zip(sampled["rows"], exact["rows"]) for share in SHARES)
        name = path.rsplit("/", 1)[-1].removesuffix(".toml")
        judged = cost["plain_seconds"] >= SHORT and not is_short
        if judged:
            ratios.append(times)
        print(f"{name:24} {cost['plain_seconds']:8.3f} {cost['seconds']:8.3f} {times:6.1f} {sampled['blocks']:8} "
              f"{sampled['blocks_looked_at']:9} {100 * off:6.1f}%{'' if judged else '  short'}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} samples of at least {SHORT} s: geometric mean {mean:.1f}, highest {max(ratios):.1f}")
    sys.exit(max(ratios, default=0) > LIMIT)


main()
