#!/usr/bin/env python3
"""RegLess on region-scheduled PTX: all samples in the order that pass schedule gives them for loads, annotated, on
RegLess's machine. They leave the same memory as without it.

usage: check_scheduled_regions.py PATH/ptxrewrite SAMPLES [EVERY]      EVERY: only each such one, such as 3
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCHEDULE = "schedule(force,goal=loads,live=32)"


def run(arguments):
    return subprocess.run(arguments, capture_output=True, text=True, errors="replace")


def main():
    tool, samples = sys.argv[1], pathlib.Path(sys.argv[2])
    every = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    launch_files, moved = [], 0
    with tempfile.TemporaryDirectory() as name:
        for source in sorted(samples.glob("*/*.toml"))[::every]:
            target = pathlib.Path(name) / source.parent.name
            shutil.copytree(source.parent, target, dirs_exist_ok=True)
            for ptx in target.glob("*.ptx"):
                child = run([tool, "opt", ptx, "-p", SCHEDULE, "--stats"])
                if child.returncode != 0:
                    raise SystemExit(child.stderr)
                moved += "schedule.functions" in child.stderr
                ptx.write_text(child.stdout)
            launch_files.append(target / source.name)
        child = run([tool, "verify", *launch_files, "-p", "regless", "--form", "annotated"])
    print(f"{moved} files in another order; {child.stdout.strip().splitlines()[-1:]}")
    if child.returncode != 0:
        raise SystemExit(child.stdout + child.stderr)
    if moved < len(launch_files) // 2:
        raise SystemExit("too few files were scheduled")


main()
