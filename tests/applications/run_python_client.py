#!/usr/bin/env python3
"""Runs a Python program that uses CUDA under `ptxrewrite exec`: it must check itself and exit with 0.

usage: run_python_client.py --tool PTXREWRITE --folder FOLDER [--python PYTHON] [--emulate GPU] [--environment NAME=VALUE]...
                            SOURCE PACKAGE...
PYTHON, else $PTXREWRITE_PYTHON, is an interpreter that has the packages; if there is none, or a package is missing,
the test is skipped.
"""
import argparse
import os
import subprocess
import sys


def missing_packages(python, packages):
    """Packages that the interpreter does not find; they are not imported because that may need a GPU."""
    program = "import importlib.util, sys\nfor name in sys.argv[1:]:\n  try:\n    found = importlib.util.find_spec(name)\n" \
              "  except ModuleNotFoundError:\n    found = None\n  if not found: print(name)"
    return subprocess.run([python, "-c", program, *packages], capture_output=True, text=True,
                          check=True).stdout.split()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--python", default="")
    parser.add_argument("--emulate", default="h100")
    parser.add_argument("--environment", action="append", default=[])
    parser.add_argument("source")
    parser.add_argument("packages", nargs="+")
    options = parser.parse_args()
    python = options.python or os.environ.get("PTXREWRITE_PYTHON", "")
    if not python:
        print("skipped: no interpreter with CUDA packages is named (PTXREWRITE_PYTHON)")
        return 0
    if missing := missing_packages(python, options.packages):
        print(f"skipped: {python} does not have {', '.join(missing)}")
        return 0
    environment = {**os.environ, "TRITON_CACHE_DIR": os.path.join(options.folder, "triton")}
    environment.update(assignment.split("=", 1) for assignment in options.environment)
    child = subprocess.run([options.tool, "exec", "--counters", "--emulate", options.emulate, "--", python, "-B",
                            options.source], capture_output=True, text=True, check=False, env=environment)
    sys.stdout.write(child.stdout + child.stderr)
    if child.returncode != 0 or child.stdout != "right\n":
        print(f"FAILED: exit code {child.returncode}, standard output {child.stdout!r}")
        return 1
    if "warp instructions" not in child.stderr:
        print("FAILED: no kernel ran")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
