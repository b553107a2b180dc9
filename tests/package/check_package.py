#!/usr/bin/env python3
"""Installs the build into a scratch folder and builds two examples against it as a stranger would. own_pass runs on a
sample: the text must come back and the statistic must be the number of st.shared in the file. launch_rewritten runs
without a GPU: it must get as far as to say so. (On a driver it runs in the examples' own test.)

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


def build_example(cmake, root, prefix, out, name):
    folder = os.path.join(out, name)
    run(cmake, "-S", os.path.join(root, "examples", name), "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", folder)
    return os.path.join(folder, name)


def main():
    cmake, build, root, sample = sys.argv[1:5]
    with tempfile.TemporaryDirectory() as folder:
        prefix, out = os.path.join(folder, "prefix"), os.path.join(folder, "out")
        run(cmake, "--install", build, "--prefix", prefix)
        own_pass = build_example(cmake, root, prefix, out, "own_pass")
        child = subprocess.run([own_pass, sample], check=True, capture_output=True, text=True)
        launch = build_example(cmake, root, prefix, out, "launch_rewritten")
        on_no_gpu = subprocess.run([launch, os.path.join(root, "examples", "launch_rewritten", "add.ptx")],
                                   env={**os.environ, "PTXREWRITE_LIBCUDA": "/nonexistent/libcuda.so.1"},
                                   capture_output=True, text=True, check=False)
    with open(sample, encoding="utf-8") as file:
        expected = len(re.findall(r"\bst\.shared\b", file.read()))
    counted = sum(int(number) for number in re.findall(r"^(\d+) shared stores in", child.stderr, re.MULTILINE))
    printed = len(re.findall(r"\bst\.shared\b", child.stdout))
    print(f"st.shared: {expected} in the file, {counted} counted, {printed} printed")
    print(f"without a GPU: exit code {on_no_gpu.returncode}, {on_no_gpu.stderr.strip()}")
    says_so = on_no_gpu.returncode == 77 and on_no_gpu.stderr.startswith("no GPU here")
    return 0 if expected == counted == printed and expected > 0 and says_so else 1


if __name__ == "__main__":
    sys.exit(main())
