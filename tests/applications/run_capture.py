#!/usr/bin/env python3
"""Captures the first launch of each kernel of a program, runs the captures, and compares their results with the program's.

usage: run_capture.py --tool PTXREWRITE --folder FOLDER PROGRAM KERNELS    KERNELS: how many are captured
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("program")
    parser.add_argument("kernels", type=int)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    subprocess.run([options.tool, "exec", "--capture", options.folder, "--", options.program], check=True)
    files = glob.glob(os.path.join(options.folder, "*", "launch.toml"))
    if len(files) != options.kernels:
        sys.exit(f"{len(files)} kernels are captured instead of {options.kernels}")
    for file in files:
        done = subprocess.run([options.tool, "run", file], capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr)
        if done.returncode != 0 or "as expected" not in done.stdout:
            sys.exit(f"{file}: not what the program got")


if __name__ == "__main__":
    main()
