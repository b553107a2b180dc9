#!/usr/bin/env python3
"""Copies the source tree, puts FILE into its folder FOLDER (which is made if missing), configures, and checks in the
build files that the executable is now built from it (and was not before).

usage: check_picked_up.py CMAKE SOURCE_ROOT FILE FOLDER
"""
import os
import shutil
import subprocess
import sys
import tempfile


def builds_from(cmake, source, build, path):
    subprocess.run([cmake, "-S", source, "-B", build, "-G", "Ninja", "-DPTXREWRITE_UNITY=OFF"], check=True, stdout=subprocess.DEVNULL)
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "ptxrewrite"], check=True, capture_output=True,
                              text=True).stdout
    return any(path in line and " -c " in line for line in commands.splitlines())


def main():
    cmake, root, file, folder = sys.argv[1:5]
    path = f"{folder}/{os.path.basename(file)}"
    with tempfile.TemporaryDirectory() as scratch:
        copy, build = os.path.join(scratch, "source"), os.path.join(scratch, "build")
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("build", ".git", "shared", ".cache"))
        if builds_from(cmake, copy, build, path):
            print(f"{path} is there before it was added: this test shows nothing")
            return 1
        os.makedirs(os.path.join(copy, folder), exist_ok=True)
        shutil.copy(file, os.path.join(copy, path))
        if not builds_from(cmake, copy, build, path):
            print(f"{path} lies there, but ptxrewrite is not built from it")
            return 1
    print(f"one new file in {folder}/ is enough")
    return 0


if __name__ == "__main__":
    sys.exit(main())
