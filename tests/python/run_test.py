#!/usr/bin/env python3
"""Runs a test of the Python package: each function of FILE whose name begins with test_, or the file as a program if
it has none.

usage: run_test.py FILE PACKAGE...     exit code 77 where this interpreter lacks one of the packages, and
if all tests are skipped
"""
import importlib.util
import os
import runpy
import sys
import traceback
import unittest


def main():
    file, packages = sys.argv[1], sys.argv[2:]
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {sys.executable} does not have {', '.join(missing)}")
        return 77
    sys.argv = [file]
    sys.path.insert(0, os.path.dirname(file))
    tests = {name: test for name, test in runpy.run_path(file, run_name="__test__").items()
             if name.startswith("test_") and callable(test)}
    if not tests:
        print("no tests")
        return 1
    failures = skipped = 0
    for name, test in tests.items():
        try:
            test()
            print(f"passed: {name}")
        except unittest.SkipTest as reason:
            skipped += 1
            print(f"skipped: {name}: {reason}")
        except Exception:
            failures += 1
            print(f"FAILED: {name}")
            traceback.print_exc(file=sys.stdout)
    return 1 if failures else 77 if skipped == len(tests) else 0


if __name__ == "__main__":
    sys.exit(main())
