#!/usr/bin/env python3
"""judge_kernels.py MATRIX PTXAS [STEP [OPCODE...]]: does ptxas accept every statement of the operand matrix?

Runs the emulator_operand_matrix binary, keeps its kernels, assembles each and prints the statements that ptxas refuses.
Exit code 1: there are such statements. Needs no GPU; takes minutes.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def refusals(ptxas, kernel):
    result = subprocess.run([ptxas, "-arch=sm_100a", "-O0", "-o", os.devnull, str(kernel)], capture_output=True, text=True)
    lines = kernel.read_text().splitlines()
    found = []
    for number, message in re.findall(r"line (\d+); error\s*: (.*)", result.stdout + result.stderr):
        found.append((message, lines[int(number) - 1]))
    if result.returncode and not found:
        found.append((f"exit code {result.returncode}", str(kernel)))
    return found


def main():
    matrix, ptxas = sys.argv[1:3]
    step = int(sys.argv[3]) if len(sys.argv) > 3 else 1  # use each STEP-th kernel
    opcodes = sys.argv[4:]  # none: all
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([matrix, *opcodes], env=os.environ | {"PTXREWRITE_KEEP_TEXTS": folder}, check=True)
        kernels = sorted(pathlib.Path(folder).glob("*.ptx"), key=lambda path: int(path.stem))[::step]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = [one for result in pool.map(lambda kernel: refusals(ptxas, kernel), kernels) for one in result]
    by_message = collections.defaultdict(list)
    for message, statement in found:
        by_message[message].append(statement)
    for message, statements in by_message.items():
        print(f"{message}: {len(statements)}")
        for statement in statements[:3]:
            print(f"  {statement}")
    print(f"{len(kernels)} kernels, {len(found)} statements refused")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
