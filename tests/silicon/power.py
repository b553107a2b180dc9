#!/usr/bin/env python3
"""Watts of the board against the energy model, over the kernels of set A, and by rank over the programs of set C.

usage: power.py --tool PTXREWRITE --agreement AGREEMENT_FIGURES [--short] [--work FOLDER]

Set A: joules by each set of AccelWattch (`score`) over the model's seconds ("model's time"), and their dynamic part over
the seconds measured plus the set's constant power ("silicon's time"): the second shows the error of the energies alone.
A kernel is launched again and again while the board's power is measured, so rows run with a warm L2.

Set C: no set of coefficients was fitted to Maxwell, so only the order of programs by their power is compared.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import tempfile

import cases
import elasticity
from silicon import Scorer, half_of

FITTED = "AccelWattch QV100"
QV100_HZ = cases.clock_hz("qv100")


def powers(energies, launches, seconds, silicon_seconds):
    """By fitted set: watts with the model's time, and with silicon's."""
    both = {}
    for name, parts in energies.items():
        if name.startswith(FITTED):
            constant = parts["static"] / seconds
            dynamic = parts["joule"] - parts["static"]
            both[name] = (parts["joule"] / seconds, dynamic / (silicon_seconds * launches) + constant)
    return both


def agreement(options, rows, titles):
    """rows: half, name, silicon's figure, estimates."""
    lines = "".join("\t".join([half, "power", name, str(silicon), *map(str, estimates)]) + "\n"
                    for half, name, silicon, estimates in rows)
    done = subprocess.run([options.agreement, *titles], input=lines, capture_output=True, text=True, check=True)
    print(done.stdout)


def set_a(options, folder):
    watts = {row["name"]: row["watt"] for row in cases.table("a")}
    wanted = [case for case in cases.cases_of("a") if watts[case.name] and (case.short or not options.short)]
    for case in wanted:
        case.cold = False
    options.set, options.exact = "a", False
    scorer = Scorer(options, folder)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        scored = list(zip(wanted, pool.map(scorer.score, wanted)))
    rows, titles = [], []
    print("watts on a Quadro GV100; of each set with the model's time | with silicon's time")
    for case, kernel in scored:
        if kernel is None:
            continue
        found = powers(kernel["energy"], kernel["launches"], kernel["seconds"], case.clocks / QV100_HZ)
        if not titles:
            titles = [f"{name.removeprefix(FITTED).strip()}, {time}" for name in found for time in ("model's time", "silicon's time")]
            print(f"{'kernel':46} {'half':9} {'silicon':>7}  " + "  ".join(f"{name.removeprefix(FITTED):>15}" for name in found))
        print(f"{case.name:46.46} {half_of(case.hashed):9} {float(watts[case.name]):7.0f}  " +
              "  ".join(f"{ours:7.0f} |{theirs:6.0f}" for ours, theirs in found.values()))
        rows.append((half_of(case.hashed), case.name, watts[case.name], [watt for pair in found.values() for watt in pair]))
    print()
    agreement(options, rows, titles)


def set_c(options, folder):
    rows, titles = [], []
    print("watts on a GTX Titan X at 3505 and 1164 MHz; dynamic watts by each set, of which only the order counts")
    gpu = elasticity.machine(folder, 3505, 1164)
    for row in cases.table("c"):
        program = row["program"]
        if not (elasticity.originals(program) or program in elasticity.PROGRAMS) or (options.short and program != "backprop"):
            continue
        kernels = elasticity.kernels(options.tool, folder, program, gpu)
        seconds = sum(kernel["seconds"] for kernel in kernels)
        titles = list(kernels[0]["energy"])
        found = [sum(kernel["energy"][name]["joule"] - kernel["energy"][name]["static"] for kernel in kernels) / seconds
                 for name in titles]
        print(f"{program:16} {half_of(program):9} {float(row['watt_3505_1164']):7.0f}  " +
              " ".join(f"{watt:7.0f}" for watt in found), flush=True)
        rows.append((half_of(program), program, row["watt_3505_1164"], found))
    print()
    agreement(options, rows, titles)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--agreement", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--work")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.work:
            folder = options.work
            os.makedirs(folder, exist_ok=True)
        set_a(options, folder)
        set_c(options, folder)


if __name__ == "__main__":
    main()
