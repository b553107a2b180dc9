#!/usr/bin/env python3
"""Every custom target has a short form among the tests, which runs the same programs, or a reason here why not. And no
test has its own time limit: the common one (tests/CMakeLists.txt) leaves room for slow machines.

usage: check_targets.py SOURCE_ROOT BUILD_DIRECTORY
"""
import json
import os
import re
import subprocess
import sys

# Targets that are neither measurements nor campaigns.
WITHOUT_SHORT_FORM = {
    "bless": "rewrites expectations, which golden/* compare",
    "freeze_bless": "rewrites hashes, which freeze/short compares",
    "bless_driver": "rewrites expectations, which driver/* compare",
    "bless_rules": "rewrites a page, which rules/page compares",
    "bless_isa_coverage": "rewrites a list, which short/isa_coverage compares",
    "bless_listings": "rewrites pages, which readme/transform_listings compares",
    "unit_tests": "only builds what unit/* run",
    "format": "rewrites sources; needs clang-format",
    "format-check": "needs clang-format",
    "api_reference": "needs doxygen; readme/api makes the same pages",
    "python_wheel": "needs pip and scikit-build-core; python/package tests what the wheel holds",
    "tidy": "needs clang-tidy, and an hour",
}


def cmake_files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("build", ".git"))
        for name in sorted(names):
            if name == "CMakeLists.txt" or name.endswith(".cmake"):
                yield os.path.join(folder, name)


def custom_targets(texts):
    """Names in add_custom_target, except the one in ptxrewrite_long_target itself."""
    return [name for text in texts for name in re.findall(r"^\s*add_custom_target\(\s*([\w-]+)", text, re.M)]


def own_limits(texts):
    """Limits of single tests, in seconds."""
    return [int(seconds) for text in texts for seconds in re.findall(r"\bTIMEOUT\s+(\d+)", text)]


def programs(words):
    """The program of a command, or the script after an interpreter."""
    scripts = [os.path.basename(word) for word in words if word.endswith((".py", ".sh"))]
    return {scripts[0] if scripts else os.path.basename(words[0])} if words else set()


def problems(raw_targets, long_targets, tests):
    """raw_targets: names; long_targets: name -> (tests, commands); tests: name -> command."""
    for name in raw_targets:
        if name not in WITHOUT_SHORT_FORM:
            yield f"{name}: use ptxrewrite_long_target, which asks for a short form, or say in check_targets.py why not"
    for name in WITHOUT_SHORT_FORM:
        if name in long_targets:
            yield f"{name}: has a short form and a reason why not"
    for name, (short, commands) in long_targets.items():
        if not short:
            yield f"{name}: has no short form"
        missing = [test for test in short if test not in tests]
        for test in missing:
            yield f"{name}: there is no test {test}"
        run = set().union(*(programs(tests[test]) for test in short if test in tests))
        for program in set().union(*map(programs, commands)) - run:
            if not missing:
                yield f"{name}: no short form runs {program}"


def read_long_targets(path):
    targets = {}
    with open(path) as file:
        for line in file:
            name, tests, commands = line.rstrip("\n").split("\t")
            targets[name] = (tests.split(), [command.split() for command in commands.split(" AND ")])
    return targets


def main():
    root, build = sys.argv[1:]
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    tests = {test["name"]: test.get("command", []) for test in json.loads(listing.stdout)["tests"]}
    texts = []
    for path in cmake_files(root):
        with open(path) as file:
            texts.append(file.read())
    targets = read_long_targets(os.path.join(build, "long_targets.txt"))
    found = list(problems(custom_targets(texts), targets, tests))
    found += [f"TIMEOUT {limit}: tests have no limits of their own" for limit in own_limits(texts)]
    print("\n".join(found) if found else f"{len(targets)} targets have short forms")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
