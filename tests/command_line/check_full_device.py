#!/usr/bin/env python3
"""Every command exits with code 1 and a message if its standard output cannot be written: /dev/full rejects all writes.
The same invocation succeeds on a pipe, so the exit code is caused by the writing.

usage: check_full_device.py PROJECT_ROOT PTXREWRITE
"""
import os
import sys

from common import EXIT_SKIPPED, INVOCATIONS, Place, finish, gpu_environment


def main():
    if not os.path.exists("/dev/full"):
        print("skipped: no /dev/full")
        sys.exit(EXIT_SKIPPED)
    failures = []
    with Place(*sys.argv[1:3]) as place:
        place.record()
        names = place.command_names()
        if sorted(names) != sorted(INVOCATIONS):
            failures.append(f"commands without an invocation here, or the other way round: {set(names) ^ set(INVOCATIONS)}")
        invocations = [(*INVOCATIONS[name],) for name in names if name in INVOCATIONS]
        invocations += [("--help",), ("--version",), ("opt", "--list-passes"), ("opt", "--list-passes", "--json")]
        invocations += [(name, "--help") for name in names]
        invocations += [(*INVOCATIONS[name], "--json")
                        for name in names if place.has_json_flag(name) and name != "opt"]
        # The output of exec's program, and its reaction to losing it, are the program's own.
        invocations.remove((*INVOCATIONS["exec"],))
        for invocation in invocations:
            environment = {}
            if invocation[0] == "bench" and "--help" not in invocation:
                environment = gpu_environment()
                if environment is None:
                    print("skipped, no driver:", *invocation)
                    continue
            piped = place.run(invocation, environment)
            if piped.returncode != 0 or not piped.stdout:
                failures.append(f"{invocation}: exit code {piped.returncode} on a pipe\n{piped.stderr}")
                continue
            with open("/dev/full", "w", encoding="utf-8") as full:
                child = place.run(invocation, environment, stdout=full)
            if child.returncode != 1 or "cannot write" not in child.stderr:
                failures.append(f"{invocation} on /dev/full: exit code {child.returncode}, {child.stderr!r}")
        print(len(invocations), "invocations")
    finish(failures)


main()
