#!/usr/bin/env python3
"""Triton kernels on emulated GPUs, against NumPy: a table of kernels and targets as Markdown.

usage: triton_campaign.py --tool PTXREWRITE --folder FOLDER [--python PYTHON] [--only NAME]... [TARGET...]
TARGET: a machine of `exec --emulate`, by default sm_80, sm_90, sm_100 and sm_120. FOLDER holds Triton's cache. PYTHON, else
$PTXREWRITE_PYTHON, has Triton and cuda-python; if there is none, or they are missing, the campaign is skipped. Exits with 1
if a kernel is wrong or does not run.
"""
import argparse
import os
import subprocess
import sys

from run_python_client import missing_packages

TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python", "triton_table.py")


def run_target(options, target):
    """The rows of the client's output: names and results."""
    environment = {**os.environ, "TRITON_CACHE_DIR": os.path.join(options.folder, "triton_table", target)}
    child = subprocess.run([options.tool, "exec", "--emulate", target, "--", options.python, "-B", CLIENT, *options.only],
                           capture_output=True, text=True, check=False, env=environment)
    rows = dict(line.split("\t", 1) for line in child.stdout.splitlines() if "\t" in line)
    if not rows or child.returncode not in (0, 1):
        print(f"{target}: exit code {child.returncode}\n{child.stderr[-2000:]}", file=sys.stderr)
        rows.setdefault("(the program ends)", f"exit code {child.returncode}")
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--python", default="")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("targets", nargs="*", default=TARGETS)
    options = parser.parse_args()
    options.python = options.python or os.environ.get("PTXREWRITE_PYTHON", "")
    if not options.python:
        print("skipped: no interpreter with CUDA packages is named (PTXREWRITE_PYTHON)")
        return 0
    if missing := missing_packages(options.python, ["triton", "cuda.bindings", "numpy"]):
        print(f"skipped: {options.python} does not have {', '.join(missing)}")
        return 0
    tables = {target: run_target(options, target) for target in options.targets}
    names = list(dict.fromkeys(name for rows in tables.values() for name in rows))
    print("| kernel | " + " | ".join(tables) + " |\n|" + "---|" * (1 + len(tables)))
    for name in names:
        print(f"| {name} | " + " | ".join(rows.get(name, "-") for rows in tables.values()) + " |")
    right = [sum(result == "right" for result in rows.values()) for rows in tables.values()]
    print("| right | " + " | ".join(f"{count} of {len(rows)}" for count, rows in zip(right, tables.values())) + " |")
    wrong = [name for rows in tables.values() for name, result in rows.items()
             if result != "right" and not result.startswith("not for")]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
