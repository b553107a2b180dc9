#!/usr/bin/env python3
"""agreement_figures and power.py against figures computed by hand, and rows that must be refused.

usage: check_statistics.py AGREEMENT_FIGURES
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import power  # noqa: E402

# silicon, estimate. Relative errors 0, 7/2, 2/3: mean 138.9 %; their 90th percentile is at 1.8 of the sorted ones,
# 2/3 + 0.8 (7/2 - 2/3) = 293.3 %. Ranks are reversed. The pick is the least estimate, 4 instead of 2: 100 %.
REVERSED = [(4, 4), (2, 9), (3, 5)]
# Errors 0.5, 0.25, 0, 0.1: mean 21.25 %; at 2.7 of 0, 0.1, 0.25, 0.5: 0.25 + 0.7 x 0.25 = 42.5 %. All pairs agree.
MOSTLY_RIGHT = [(10, 15), (20, 25), (30, 30), (40, 36)]
# Errors 0.5, 0.25, 0.25, 0.2: mean 30 %, at 2.7 again 42.5 %. Of six pairs five agree: tau 4/6; Spearman
# 1 - 6 x 2 / (4 x 15). The pick is the fastest.
SWAPPED = [(10, 15), (20, 25), (40, 30), (30, 36)]


def run(tool, pairs, half="unseen"):
    lines = "".join(f"{half}\tgroup\trow{i}\t{a}\t{b}\n" for i, (a, b) in enumerate(pairs))
    return subprocess.run([tool, "--rank", "x"], input=lines, capture_output=True, text=True)


def figures(tool, pairs):
    return run(tool, pairs).stdout.splitlines()[1].split()[1:]


def main():
    tool = sys.argv[1]
    wrong = []
    expectations = [(REVERSED, ["138.9", "293.3", "-1.000", "-1.000", "100.0"]),
                    (MOSTLY_RIGHT, ["21.2", "42.5", "1.000", "1.000", "0.0"]),
                    (SWAPPED, ["30.0", "42.5", "0.800", "0.667", "0.0"])]
    for pairs, expected in expectations:
        found = figures(tool, pairs)
        if found != expected:
            wrong.append(f"{pairs}: {found} instead of {expected}")
    # Two launches of 2 s in the model: 30 J, 20 of them constant (5 W over 4 s). Silicon takes 1 s each: 10 / 2 + 5 W.
    energies = {"AccelWattch QV100 x": {"joule": 30, "static": 20}, "GPUWattch y": {"joule": 1, "static": 0}}
    watts = power.powers(energies, launches=2, seconds=4, silicon_seconds=1)
    if watts != {"AccelWattch QV100 x": (7.5, 10)}:
        wrong.append(f"watts: {watts}")
    for pairs in ([(0, 1)], [(1, -1)], [("x", 1)], [("1", "")]):
        if run(tool, pairs).returncode != 2:
            wrong.append(f"{pairs}: taken for a row")
    sys.exit("\n".join(wrong) or 0)


main()
