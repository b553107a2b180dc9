#!/usr/bin/env python3
"""Time and memory of the Python package beside the command line: the same work as a command and in a Python process,
whose import is measured alone and whose second call has everything loaded. Processor seconds (user and system, the
minimum of the rounds) and peak memory of processes; ratios are of whole processes.

usage: cost.py PTXREWRITE SAMPLES [--short]     needs the package in PYTHONPATH; exit code 77 without NumPy
"""
import importlib.util
import json
import os
import subprocess
import sys
import time

# For a command: the same work in Python, as a function without arguments.
WORK = {
    "read and print mersenne_twister": (["opt", "{samples}/mersenne_twister/mersenne_twister.ptx", "--no-ssa"],
                                        "ptxrewrite.Module.load('{samples}/mersenne_twister/mersenne_twister.ptx').text"),
    "r2d2 on backprop": (["opt", "{samples}/backprop/backprop.ptx", "-p", "r2d2", "--no-ptxas"],
                         "ptxrewrite.optimize(open('{samples}/backprop/backprop.ptx').read(), passes='r2d2', run_ptxas=False)"),
    "run matmul": (["run", "{samples}/matmul/matmul.toml"],
                   "ptxrewrite.Launch.from_file('{samples}/matmul/matmul.toml').run()"),
    "run mvt": (["run", "{samples}/mvt/mvt.toml"], "ptxrewrite.Launch.from_file('{samples}/mvt/mvt.toml').run()"),
    "score backprop": (["score", "{samples}/backprop/backprop.toml", "--gpu", "titanv"],
                       "ptxrewrite.score('{samples}/backprop/backprop.toml', 'titanv', run_ptxas=False)"),
    "verify vecadd": (["verify", "{samples}/vecadd/vecadd.toml", "-p", "r2d2", "--no-ptxas"],
                      "ptxrewrite.verify('{samples}/vecadd/vecadd.toml', 'r2d2')"),
}
PROGRAM = """
import json, resource, sys, time
def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
times = [spent()]
import ptxrewrite
times.append(spent())
if sys.argv[1]:
    for _ in range(2):
        eval(sys.argv[1])
        times.append(spent())
print(json.dumps([after - before for before, after in zip([0, *times], times)]))
"""


def measured(command, rounds):
    """The round with the least processor time: (seconds, megabytes of peak memory, standard output)."""
    best = None
    for _ in range(rounds):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env={**os.environ, "PTXREWRITE_PTXAS": "/nonexistent", "PTXREWRITE_CACHE": "off"})
        out, complaint = child.stdout.read(), child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"failed: {' '.join(command)}\n{complaint.decode()}")
        seconds = usage.ru_utime + usage.ru_stime
        if best is None or seconds < best[0]:
            best = seconds, usage.ru_maxrss / 1024, out
    return best


def main():
    tool, samples = sys.argv[1:3]
    if importlib.util.find_spec("numpy") is None:
        print(f"skipped: {sys.executable} does not have numpy")
        return 77
    short = "--short" in sys.argv
    rounds = 1 if short else 5
    started = time.perf_counter()
    seconds, megabytes, _ = measured([sys.executable, "-c", "pass"], rounds)
    print(f"Python alone: {seconds:.3f} s, {megabytes:.0f} MB")
    seconds, megabytes, out = measured([sys.executable, "-c", PROGRAM, ""], rounds)
    print(f"import ptxrewrite (NumPy with it): {json.loads(out)[1]:.3f} s, {megabytes:.0f} MB\n")
    print(f"{'':34}{'command':>9}{'MB':>6}{'Python':>9}{'MB':>6}{'ratio':>7}{'2nd call':>10}{'of the command':>16}")
    for name, (words, expression) in list(WORK.items())[:2 if short else None]:
        command = measured([tool, *(word.format(samples=samples) for word in words)], rounds)
        # One call gives the process's time and memory, two the time of a call with everything loaded.
        once = measured([sys.executable, "-c", f"import ptxrewrite\n{expression.format(samples=samples)}"], rounds)
        calls = json.loads(measured([sys.executable, "-c", PROGRAM, expression.format(samples=samples)], rounds)[2])
        print(f"{name:34}{command[0]:8.3f}s{command[1]:6.0f}{once[0]:8.3f}s{once[1]:6.0f}{once[0] / command[0]:7.2f}"
              f"{calls[3]:9.3f}s{calls[3] / command[0]:16.2f}")
    print(f"\n{rounds} rounds in {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
