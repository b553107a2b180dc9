#!/usr/bin/env python3
"""Captures launches of each kernel of a program, runs the captures, and compares their results with the program's.

usage: run_capture.py --tool PTXREWRITE --folder FOLDER [--nvcc NVCC] [--each N] [--shows TEXT] PROGRAM LAUNCHES

LAUNCHES: how many are captured, at most N (default 1) of each kernel. With --nvcc the program is a source to compile.
--shows: some launch file has this text and holds no addresses, so that a GPU can run it.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys


def is_portable(file, text):
    with open(file, encoding="utf-8") as opened:
        content = opened.read()
    return text in content and "\naddress = \"0x" not in content


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--nvcc", default="")
    parser.add_argument("--each", default="1")
    parser.add_argument("--shows", default="")
    parser.add_argument("program")
    parser.add_argument("launches", type=int)
    options = parser.parse_args()
    if options.nvcc and not os.path.exists(options.nvcc):
        print("skipped: there is no nvcc")
        return
    shutil.rmtree(options.folder, ignore_errors=True)
    program = options.program
    if options.nvcc:
        program = options.folder + "_program"
        subprocess.run([options.nvcc, "-cudart", "shared", "-arch=sm_90", options.program, "-o", program, "-lcuda"],
                       check=True)
    subprocess.run([options.tool, "exec", "--capture", options.folder, "--capture-launches", options.each, "--", program],
                   check=True)
    files = glob.glob(os.path.join(options.folder, "*", "launch.toml"))
    if len(files) != options.launches:
        sys.exit(f"{len(files)} launches are captured instead of {options.launches}")
    if options.shows and not any(is_portable(file, options.shows) for file in files):
        sys.exit(f"no launch file without addresses shows '{options.shows}'")
    for file in files:
        done = subprocess.run([options.tool, "run", file], capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr)
        if done.returncode != 0 or "as expected" not in done.stdout:
            sys.exit(f"{file}: not what the program got")


if __name__ == "__main__":
    main()
