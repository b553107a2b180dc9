#!/usr/bin/env python3
"""Compares the reader's verdict on mutated PTX with that of ptxas.

usage: against_ptxas.py --fuzzer PATH/fuzz_mutations [--count N] [--seed S] [--jobs N] FILE.ptx...

Lists the inputs that ptxas assembles and the reader refuses (there should be none: what ptxas accepts is never refused)
and counts those that the reader accepts and ptxas refuses (unknown instructions are kept unchanged, and some rules of
ptxas are not checked by the reader). Exit code 1 if an accepted input was refused; 77 without ptxas.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor


def ptxas(path):
    command = ["ptxas", "-arch=sm_80", path, "-o", os.devnull]
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=3600)
    except subprocess.TimeoutExpired:
        return None, "timeout"
    return result.returncode == 0, result.stderr


def shape_of(message):
    """A message without names and numbers, so that similar messages are counted together."""
    return re.sub(r"'[^']*'", "'...'", re.sub(r"^ptxas \S+ line \d+; ", "", message.splitlines()[0] if message else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fuzzer", required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    if shutil.which("ptxas") is None:
        print("against_ptxas: ptxas is not on PATH", file=sys.stderr)
        return 77

    with tempfile.TemporaryDirectory() as folder:
        numbers = ["--count", str(arguments.count), "--seed", str(arguments.seed)]
        subprocess.run([arguments.fuzzer, *numbers, "--write", folder, *arguments.files], check=False)
        names = sorted(os.listdir(folder), key=lambda name: int(name.split(".")[0]))
        with ThreadPoolExecutor(arguments.jobs) as pool:
            verdicts = list(pool.map(lambda name: ptxas(os.path.join(folder, name)), names))
        too_strict, too_lax = [], collections.Counter()
        for name, (accepted, message) in zip(names, verdicts):
            number, outcome, _suffix = name.split(".")
            if accepted and outcome == "refused":
                too_strict.append(number)
            elif accepted is False and outcome == "read":
                too_lax[shape_of(message)] += 1
    for number in too_strict:
        again = subprocess.run([arguments.fuzzer, "--only", number, "--seed", str(arguments.seed), "--explain", *arguments.files],
                               capture_output=True, text=True, errors="replace")
        print(f"input {number}: ptxas assembles it, the reader says: {again.stderr.splitlines()[0] if again.stderr else '?'}")
    print(f"{len(names)} inputs; ptxas accepts {sum(1 for v in verdicts if v[0])}; refused by the reader alone: {len(too_strict)}; "
          f"refused by ptxas alone: {sum(too_lax.values())}")
    for shape, count in too_lax.most_common(25):
        print(f"  {count} x {shape}")
    return 1 if too_strict else 0


if __name__ == "__main__":
    sys.exit(main())
