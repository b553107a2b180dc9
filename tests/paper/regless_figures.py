#!/usr/bin/env python3
"""RegLess's tables over the samples, from its machine on the emulator, beside what the paper prints (MICRO 2017: Table
2, Figs. 2, 3, 17, 18, 19), and the capacity sweep. The paper's machine is a simulator with a memory system of its own:
cycles here are those of a simple in-order count (docs/transforms/regless.md), so of Table 2 the instructions compare,
and the cycles only in their order.

usage: regless_figures.py PATH/ptxrewrite [--size SIZE] [--entries N,...] [--jobs N] LAUNCHFILE...
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Static instructions per region and cycles that each was active (Table 2), by our samples' names.
TABLE_2 = {
    "bplus_tree": (3.7, 150), "backprop": (6.7, 323), "bfs": (3.3, 60), "dwt2d": (9.5, 457), "gaussian": (8.1, 1207),
    "heartwall": (4.6, 32), "hotspot": (6.4, 75), "kmeans": (3.9, 993), "lavamd": (7.5, 1601), "lud": (16.0, 816),
    "nn": (6.3, 940), "nw": (10.8, 78), "particlefilter": (10.0, 20), "pathfinder": (4.9, 72), "srad_v1": (9.1, 350),
    "srad_v2": (6.9, 323), "streamcluster": (4.3, 16),
}


def output(command):
    child = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{child.stderr}")
    return child


def counts_of(tool, launch, size, entries):
    """The machine's counters, all launches of the file together."""
    command = [tool, "run", launch, f"--regless={entries}", "--json"] + (["--size", size] if size else [])
    document = json.loads(output(command).stdout)
    document = document[0] if isinstance(document, list) else document
    sums = {}
    for one in document["launches"]:
        for name, count in one.get("regless", {}).items():
            sums[name] = sums.get(name, 0) + count
    return sums


def static_of(tool, launch):
    """Machine instructions per region in the text."""
    with open(launch, encoding="utf-8") as file:
        match = re.search(r'^ptx *= *"([^"]*)"', file.read(), re.MULTILINE)
    if not match:
        return math.nan
    ptx = os.path.join(os.path.dirname(launch), match[1])
    text = output([tool, "opt", ptx, "-p", "regless", "--form", "annotated", "--stats", "-o", os.devnull]).stderr
    number = lambda name: int(re.search(rf"(\d+)\s+regless\.{name}\b", text)[1])
    return number("instructions") / number("regions")


def per(count, of):
    return count / of if of else 0.0


def row_of(name, static, counts):
    regions = counts["regions"]
    live = per(counts["concurrent live registers of regions"], regions)
    deviation = math.sqrt(max(0.0, per(counts["squares of these"], regions) - live * live))
    kinds = ["preloads staged already", "preloads from the compressor", "preloads from L1", "preloads from below L1"]
    preloads = sum(counts[kind] for kind in kinds)
    paper = TABLE_2.get(name, (math.nan, math.nan))
    cycles = counts["cycles"]
    requests = counts["L1 loads"] + counts["L1 stores"]
    accesses = counts["operand reads"] + counts["operand writes"]
    return [static, paper[0], per(counts["cycles until all was written"], regions), paper[1],
            per(counts["inputs of regions"], regions), live, deviation,
            *(100 * per(counts[kind], preloads) for kind in kinds), per(requests, cycles),
            per(counts["registers accessed in windows"], counts["windows of 100 cycles"]) * 128 / 1024,
            100 * per(accesses, cycles), 100 * per(requests, cycles)]


def show(number, form):
    return "" if math.isnan(number) else format(number, form)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--size", default="")
    parser.add_argument("--entries", default="512")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    sweep = [int(word) for word in options.entries.split(",")]
    names = [os.path.basename(os.path.dirname(os.path.abspath(file))) for file in options.files]
    with ThreadPoolExecutor(options.jobs) as pool:
        statics = list(pool.map(lambda file: static_of(options.tool, file), options.files))
        runs = {entries: list(pool.map(lambda file: counts_of(options.tool, file, options.size, entries), options.files))
                for entries in sweep}
    base = 512 if 512 in sweep else sweep[0]
    print(f"{base} entries; a region's instructions (static) and cycles, inputs, concurrent live registers (Table 2, Fig. 19); "
          "where preloads hit, % (Fig. 17); L1 requests per cycle (Fig. 18); KB accessed in 100 cycles (Fig. 2); accesses "
          "in 100 cycles of a register file, and of L1 for registers (Fig. 3)")
    forms = [".1f", ".1f", ".0f", ".0f", ".1f", ".1f", ".1f", ".1f", ".1f", ".2f", ".2f", ".4f", ".1f", ".0f", ".2f"]
    heads = ["insns", "paper", "cycles", "paper", "inputs", "live", "dev", "staged", "compr", "L1", "below", "L1/cy", "KB",
             "RF", "L1"]
    print(f"{'':20}" + "".join(f"{head:>8}" for head in heads))
    rows = [row_of(name, static, counts) for name, static, counts in zip(names, statics, runs[base])]
    for name, row in zip(names, rows):
        print(f"{name:20}" + "".join(f"{show(number, form):>8}" for number, form in zip(row, forms)))
    means = [sum(column) / len(column) for column in zip(*[[0 if math.isnan(x) else x for x in row] for row in rows])]
    means[1] = means[3] = math.nan
    print(f"{'mean':20}" + "".join(f"{show(number, form):>8}" for number, form in zip(means, forms)))
    print("the paper: 0.9 % of preloads from L1, 0.013 % from below, under 0.02 L1 requests per cycle")
    ratios = [(name, row[0] / row[1]) for name, row in zip(names, rows) if not math.isnan(row[1])]
    if ratios:
        far = [f"{name} {ratio:.2f}" for name, ratio in ratios if not 1 / 1.5 <= ratio <= 1.5]
        print(f"instructions per region over the paper's: geometric mean "
              f"{math.exp(sum(math.log(ratio) for _, ratio in ratios) / len(ratios)):.2f} of {len(ratios)}; "
              f"outside of a factor of 1.5: {', '.join(far) or 'none'}")
    if len(sweep) > 1:
        largest = max(sweep)
        print(f"\ncycles over those with {largest} entries, geometric mean; L1 requests per cycle, mean (Fig. 13)")
        for entries in sweep:
            ratio = [math.log(one["cycles"] / all_["cycles"]) for one, all_ in zip(runs[entries], runs[largest])]
            requests = [per(one["L1 loads"] + one["L1 stores"], one["cycles"]) for one in runs[entries]]
            print(f"{entries:6} {math.exp(sum(ratio) / len(ratio)):8.3f} {sum(requests) / len(requests):8.4f}")


main()
