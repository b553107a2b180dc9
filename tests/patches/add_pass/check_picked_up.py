#!/usr/bin/env python3
"""Copies the source tree, drops strip_sleeps.cpp into transforms/, configures, and asks the build files whether the
executable is now made of it (and was not before).

usage: check_picked_up.py CMAKE SOURCE_ROOT
"""
import os
import shutil
import subprocess
import sys
import tempfile

PASS_FILE = "strip_sleeps.cpp"


def builds_from(cmake, source, build):
    subprocess.run([cmake, "-S", source, "-B", build, "-G", "Ninja"], check=True, stdout=subprocess.DEVNULL)
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "ptxrewrite"], check=True, capture_output=True,
                              text=True).stdout
    return any(f"transforms/{PASS_FILE}" in line and " -c " in line for line in commands.splitlines())


def main():
    cmake, root = sys.argv[1:3]
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        copy, build = os.path.join(folder, "source"), os.path.join(folder, "build")
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("build", ".git", "shared", ".cache"))
        if builds_from(cmake, copy, build):
            print("the pass is there before it was added: this test shows nothing")
            return 1
        shutil.copy(os.path.join(here, PASS_FILE), os.path.join(copy, "transforms"))
        if not builds_from(cmake, copy, build):
            print(f"{PASS_FILE} lies in transforms/, but ptxrewrite is not built from it")
            return 1
    print("one new file in transforms/ is enough")
    return 0


if __name__ == "__main__":
    sys.exit(main())
