#!/usr/bin/env python3
"""--no-ptxas: no command with this option runs ptxas, for any pipeline. The ptxas here records its runs; each
case without the option shows that it would have run.

usage: check_no_ptxas.py PROJECT_ROOT PTXREWRITE
"""
import os
import sys

from common import Place, finish

RECORDING_PTXAS = """#!/bin/sh
echo "$@" >> "{folder}/runs"
exit 255
"""
CASES = [
    ["opt", "-O", "samples/backprop/backprop.ptx", "-o", "out.ptx"],
    ["opt", "-O", "--stats", "--gpu", "sm_90", "samples/backprop/backprop.ptx", "-o", "out.ptx"],
    ["opt", "-p", "dce", "--stats", "--gpu", "sm_90", "samples/backprop/backprop.ptx", "-o", "out.ptx"],
    ["opt", "-p", "r2d2", "samples/backprop/backprop.ptx", "-o", "out.ptx"],
    ["diff", "-O", "samples/backprop/backprop.ptx"],
    ["verify", "-p", "r2d2", "samples/backprop/backprop.toml"],
    ["prove", "-p", "r2d2", "samples/backprop/backprop.ptx"],
    ["lower", "--gpu", "sm_90", "samples/backprop/backprop.ptx"],
    ["report", "samples/vecadd/vecadd.toml", "-o", "page.html"],
]
# Run no ptxas, and have no option for it.
NEVER = [
    ["analyze", "samples/backprop/backprop.ptx"],
    ["mark", "samples/backprop/backprop.ptx"],
    ["launch-template", "samples/backprop/backprop.ptx", "-o", "launch.toml"],
    ["run", "samples/vecadd/vecadd.toml"],
    ["study", "samples/vecadd/vecadd.toml"],
]


def main():
    failures = []
    with Place(*sys.argv[1:3], samples=("vecadd", "backprop")) as place:
        with open(place.path("ptxas"), "w", encoding="ascii") as file:
            file.write(RECORDING_PTXAS.format(folder=place.folder))
        os.chmod(place.path("ptxas"), 0o755)
        environment = {"PATH": place.folder + os.pathsep + os.environ["PATH"], "PTXREWRITE_PTXAS": ""}

        def runs_of_ptxas(case):
            if os.path.exists(place.path("runs")):
                os.remove(place.path("runs"))
            child = place.run(case, environment)
            if child.returncode not in (0, 1):
                failures.append(f"{case}: exit code {child.returncode}\n{child.stderr}")
            if not os.path.exists(place.path("runs")):
                return []
            with open(place.path("runs"), encoding="utf-8") as file:
                return file.read().splitlines()

        for case in CASES:
            if not runs_of_ptxas(case):
                failures.append(f"{case}: ptxas is not run without --no-ptxas either, so this shows nothing")
            if ran := runs_of_ptxas([*case, "--no-ptxas"]):
                failures.append(f"{case} --no-ptxas: ran ptxas {ran}")
        for case in NEVER:
            if ran := runs_of_ptxas(case):
                failures.append(f"{case}: ran ptxas {ran}")
    finish(failures)


main()
