#!/usr/bin/env python3
"""Installs the build into a scratch folder, builds examples/own_pass against it as a stranger would, and runs that on
a sample: the text must come back and the statistic must be the number of st.shared in the file.

usage: check_package.py CMAKE BUILD_FOLDER PROJECT_ROOT SAMPLE
"""
import os
import re
import subprocess
import sys
import tempfile


def run(*command):
    child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if child.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{child.stdout}")


def main():
    cmake, build, root, sample = sys.argv[1:5]
    with tempfile.TemporaryDirectory() as folder:
        prefix, out = os.path.join(folder, "prefix"), os.path.join(folder, "out")
        run(cmake, "--install", build, "--prefix", prefix)
        run(cmake, "-S", os.path.join(root, "examples", "own_pass"), "-B", out, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}")
        run(cmake, "--build", out)
        child = subprocess.run([os.path.join(out, "own_pass"), sample], check=True, capture_output=True, text=True)
    with open(sample, encoding="utf-8") as file:
        expected = len(re.findall(r"\bst\.shared\b", file.read()))
    counted = sum(int(number) for number in re.findall(r"^(\d+) shared stores in", child.stderr, re.MULTILINE))
    printed = len(re.findall(r"\bst\.shared\b", child.stdout))
    print(f"st.shared: {expected} in the file, {counted} counted, {printed} printed")
    return 0 if expected == counted == printed and expected > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
