#!/usr/bin/env python3
"""--json has its stream to itself: a command writes exactly one JSON document to it, even if there are messages about
the input. For `opt`, whose result is on standard output, the stream is standard error.

usage: check_json.py PROJECT_ROOT PTXREWRITE
"""
import json
import sys

from common import INVOCATIONS, Place, finish, gpu_environment


def main():
    failures = []
    with Place(*sys.argv[1:3]) as place:
        with open(place.path("kernel.ptx"), "rb") as file:
            plain = file.read()
        for path in ("kernel.ptx", "samples/vecadd/vecadd.ptx"):  # a byte order mark causes a warning
            with open(place.path(path), "wb") as file:
                file.write(b"\xef\xbb\xbf" + plain)
        with open(place.path("wrong.ptx"), "w", encoding="ascii") as file:
            file.write(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { bar }\n")
        commands = [name for name in place.command_names()
                    if place.has_json_flag(name) and name != "opt"]
        if len(commands) < 10:
            failures.append(f"only {commands} have --json")
        for name in commands:
            environment = gpu_environment() if name == "bench" else {}
            if environment is None:
                print("skipped, no driver:", name)
                continue
            child = place.run([*INVOCATIONS[name], "--json"], environment)
            try:
                json.loads(child.stdout)
            except ValueError as error:
                failures.append(f"{name}: {error}: {child.stdout[:300]}")
        for case, severities in (
                (["kernel.ptx", "-p", "r2d2", "--explain"], ["warning"]),
                (["kernel.ptx", "--no-ssa"], ["warning"]),
                (["kernel.ptx", "-p", "darsie", "--specialise", "block=256", "-k", "nothing"], ["warning", "error"]),
                (["wrong.ptx"], ["error"]),
                (["missing.ptx"], ["error"]),
                (["kernel.ptx", "-o", "no/such/folder.ptx"], ["warning", "error"])):
            output = [] if "-o" in case else ["-o", "/dev/null"]
            child = place.run(["opt", *case, *output, "--json"])
            try:
                reports = json.loads(child.stderr)
            except ValueError as error:
                failures.append(f"opt {case}: {error}: {child.stderr[:300]}")
                continue
            found = [row["severity"] for row in reports[0]["diagnostics"]]
            if found != severities:
                failures.append(f"opt {case}: {reports[0]['diagnostics']}")
            if (child.returncode == 0) == ("error" in severities):
                failures.append(f"opt {case}: exit code {child.returncode}")
    finish(failures)


main()
