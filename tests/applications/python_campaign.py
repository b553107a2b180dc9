#!/usr/bin/env python3
"""Runs numba-cuda's own tests under `ptxrewrite exec`, module by module, and reports which pass.

usage: python_campaign.py --tool PTXREWRITE [--python PYTHON] [--least PERCENT] [MODULE...]     e.g. cudapy.test_atomics
       python_campaign.py ... --checkout FOLDER MODULE...    tests of a checkout, e.g. tinygrad's test.test_tiny (DEV=CUDA);
                                                             files by pytest, e.g. PyCUDA's test/test_driver.py
Without modules: all of cudadrv and cudapy. PYTHON, else $PTXREWRITE_PYTHON, has numba-cuda and pytest; if there is
none, or they are missing, the campaign is skipped. Exits with 1 if fewer than PERCENT of the tests pass.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

from run_python_client import missing_packages

FOLDERS = ("cudadrv", "cudapy")
FUEL = "2000000000"  # per launch: a kernel that waits for another stream ends like one that hangs
RAN = re.compile(r"^Ran (\d+) tests? in", re.M)
COUNTS = re.compile(r"\b(failures|errors)=(\d+)")
PYTEST = re.compile(r"(\d+) (passed|failed|errors?)\b")


def all_modules(python):
    program = "import importlib.util; print(importlib.util.find_spec('numba_cuda').submodule_search_locations[0])"
    root = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    tests = os.path.join(root, "numba", "cuda", "tests")
    return [f"{folder}.{os.path.basename(path)[:-3]}" for folder in FOLDERS
            for path in sorted(glob.glob(os.path.join(tests, folder, "test_*.py")))]


def run_file(options, path):
    """The same as run_module, by pytest; tests that are skipped or expected to fail are not counted."""
    child = subprocess.run([options.tool, "exec", "--fuel", FUEL, "--", options.python, "-B", "-m", "pytest", "-q",
                            "-p", "no:cacheprovider", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           check=False, cwd=options.checkout)
    last = child.stdout.decode(errors="replace").strip().rsplit("\n", 1)[-1]
    counts = {word.rstrip("s"): int(number) for number, word in PYTEST.findall(last)}
    wrong = counts.get("failed", 0) + counts.get("error", 0)
    return (counts.get("passed", 0) + wrong, wrong, last) if counts else (1, 1, last)


def run_module(options, module):
    """Number of tests that ran, those that failed, and the last words of standard error."""
    if module.endswith(".py"):
        return run_file(options, module)
    name = module if options.checkout else "numba.cuda.tests." + module
    child = subprocess.run([options.tool, "exec", "--fuel", FUEL, "--", options.python, "-B", "-m", "unittest", name],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, cwd=options.checkout or None)
    text = child.stderr.decode(errors="replace")
    ran = RAN.search(text)
    last = text.strip().rsplit("\n", 1)[-1]
    if not ran:
        return 1, 1, last
    wrong = sum(int(number) for _, number in COUNTS.findall(last)) if last.startswith("FAILED") else 0
    return int(ran.group(1)), min(wrong, int(ran.group(1))), last  # several parts of a test may fail


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--python", default="")
    parser.add_argument("--checkout", default="")
    parser.add_argument("--least", type=float, default=85)
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    options.tool = os.path.abspath(options.tool)
    if options.checkout and not options.modules:
        parser.error("which modules of the checkout?")
    options.python = options.python or os.environ.get("PTXREWRITE_PYTHON", "")
    if not options.python:
        print("skipped: no interpreter with CUDA packages is named (PTXREWRITE_PYTHON)")
        return 0
    if missing := missing_packages(options.python, [] if options.checkout else ["numba_cuda", "pytest"]):
        print(f"skipped: {options.python} does not have {', '.join(missing)}")
        return 0
    tests = wrong = 0
    for module in options.modules or all_modules(options.python):
        ran, failed, last = run_module(options, module)
        tests, wrong = tests + ran, wrong + failed
        print(f"{module}: {ran} tests, {ran - failed} right" + (f": {last}" if failed else ""), flush=True)
    share = 100 * (tests - wrong) / max(tests, 1)
    print(f"{tests} tests, {tests - wrong} right: {share:.1f} %")
    return 0 if tests and share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
