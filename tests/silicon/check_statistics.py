#!/usr/bin/env python3
"""agreement_figures against figures computed by hand, and rows that it must refuse.

usage: check_statistics.py AGREEMENT_FIGURES
"""
import subprocess
import sys

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
    for pairs in ([(0, 1)], [(1, -1)], [("x", 1)], [("1", "")]):
        if run(tool, pairs).returncode != 2:
            wrong.append(f"{pairs}: taken for a row")
    sys.exit("\n".join(wrong) or 0)


main()
