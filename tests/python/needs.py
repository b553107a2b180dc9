#!/usr/bin/env python3
"""Runs a module of the package as a program.

usage: needs.py PACKAGE[,PACKAGE...] MODULE [ARGUMENT...]     exit code 77 where this interpreter lacks one of the packages
"""
import importlib.util
import runpy
import sys


def main():
    missing = [name for name in sys.argv[1].split(",") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {sys.executable} does not have {', '.join(missing)}")
        return 77
    module, sys.argv = sys.argv[2], sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
