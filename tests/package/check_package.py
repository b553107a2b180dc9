#!/usr/bin/env python3
"""Installs the build into a scratch folder and uses it as an external user would.

* The headers are those of installed_headers.txt, and each compiles alone: first in a compilation of its own, or in that
  of a header that includes it before anything else.
* Examples build against it and run: own_pass on a sample, whose text must come back with as many st.shared as were
      counted; emulate, whose kernel must compute the host's result; launch_rewritten up to its message about no GPU
  (on a driver it runs in the examples' own test).
* find_package accepts the installed version and refuses others.
* count_sleeps, a pass library: built against these headers it is loaded; against headers of another version, or with one
  more opcode, it is refused with a message before any of its code runs.

usage: check_package.py CMAKE BUILD_FOLDER PROJECT_ROOT SAMPLE
       check_package.py CMAKE BUILD_FOLDER PROJECT_ROOT --bless     writes installed_headers.txt
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FAILURES = []
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "installed_headers.txt")
COMPILER = os.environ.get("CXX", "c++")


def check(holds, message):
    if not holds:
        FAILURES.append(message)


def run(*command):
    child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if child.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{child.stdout}")
    return child.stdout


def output_of(*command, **environment):
    child = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return child.returncode, child.stdout, child.stderr


def installed_headers(prefix):
    top = os.path.join(prefix, "include", "ptxrewrite")
    return sorted(os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names)


def included_first(prefix, header):
    """The header that the given one includes before anything else, or None: it is compiled as if it were alone."""
    with open(os.path.join(prefix, "include", "ptxrewrite", header), encoding="utf-8") as file:
        directives = [line for line in file if line.startswith("#") and line.strip() != "#pragma once"]
    found = re.match(r'#include "([^"]+)"', directives[0]) if directives else None
    return found[1] if found else None


def check_headers(prefix, headers):
    def compile_alone(header):
        child = subprocess.run([COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "-I",
                                os.path.join(prefix, "include", "ptxrewrite"), "-"], input=f'#include "{header}"\n',
                               capture_output=True, text=True, check=False)
        return header, child.stderr if child.returncode else ""

    alone = [header for header in headers if header.endswith(".h")]
    covered = {included_first(prefix, header) for header in alone}
    compiled = [header for header in alone if header not in covered]
    with ThreadPoolExecutor(2) as pool:
        for header, complaint in pool.map(compile_alone, compiled):
            check(not complaint, f"{header} does not compile alone:\n{complaint}")
    print(f"{len(headers)} headers installed, {len(alone)} of them compile alone: {len(compiled)} were compiled, the others "
          "are what one of these includes first")


class Examples:
    def __init__(self, cmake, root, prefix, out):
        self.cmake, self.root, self.prefix, self.out = cmake, root, prefix, out

    def build(self, name, file):
        folder = os.path.join(self.out, name)
        run(self.cmake, "-S", os.path.join(self.root, "examples", name), "-B", folder, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(self.cmake, "--build", folder)
        return os.path.join(folder, file)


def check_programs(examples, sample):
    code, printed, counted = output_of(examples.build("own_pass", "own_pass"), sample)
    with open(sample, encoding="utf-8") as file:
        expected = len(re.findall(r"\bst\.shared\b", file.read()))
    numbers = [int(number) for number in re.findall(r"^(\d+) shared stores in", counted, re.MULTILINE)]
    check(code == 0 and expected > 0 and expected == sum(numbers) == len(re.findall(r"\bst\.shared\b", printed)),
          f"own_pass: {expected} st.shared in the file, counted {numbers}, exit code {code}")

    folder = os.path.join(examples.root, "examples", "emulate")
    code, printed, complaint = output_of(examples.build("emulate", "emulate"), os.path.join(folder, "saxpy.ptx"))
    # By hand: addresses are {parameter + 4 * ntid.x * ctaid.x + 4 * tid.x}. Of 32 warps, all execute the ten
    # instructions up to the branch; 1000 threads need all 32 for the eight behind it. 18 * 32, and the end is shared.
    check(code == 0 and "0 of 1000 elements are wrong; 576 warp instructions in 4 blocks" in printed,
          f"emulate: {printed}{complaint}")
    check(len(re.findall(r"^(?:ld|st)\.global.*\{P[01], 4, 0, 0, 4\*(?:ntid\.x|B0), 0, 0\}$", printed, re.MULTILINE)) == 3,
          f"emulate: {printed}")

    launch = examples.build("launch_rewritten", "launch_rewritten")
    code, _, complaint = output_of(launch, os.path.join(examples.root, "examples", "launch_rewritten", "add.ptx"),
                                   PTXREWRITE_LIBCUDA="/nonexistent/libcuda.so.1")
    check(code == 77 and complaint.startswith("no GPU here"), f"launch_rewritten: {code}, {complaint}")


def check_versions(cmake, prefix, out, version):
    major, minor, _ = version.split(".")
    for wanted, found in ((f"{major}.{minor}", True), (version, True), (f"{major}.{int(minor) + 1}", False),
                          (f"{int(major) + 1}.0", False)):
        folder = os.path.join(out, f"version-{wanted}")
        os.makedirs(folder)
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="ascii") as file:
            file.write("cmake_minimum_required(VERSION 3.25)\nproject(asks LANGUAGES CXX)\n"
                       f"find_package(ptxrewrite {wanted} REQUIRED)\n")
        code, _, complaint = output_of(cmake, "-S", folder, "-B", os.path.join(folder, "out"), "-G", "Ninja",
                                       f"-DCMAKE_PREFIX_PATH={prefix}")
        check((code == 0) == found and (found or version in complaint), f"find_package({wanted}): {complaint}")


def edited(prefix, out, name, header, old, new):
    """A copy of the installed headers with one of them changed."""
    copy = os.path.join(out, f"headers-{name}")
    shutil.copytree(os.path.join(prefix, "include", "ptxrewrite"), copy)
    path = os.path.join(copy, header)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, (header, old)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new, 1))
    return copy


def check_pass_library(examples, prefix, out, version, sample):
    program = os.path.join(prefix, "bin", "ptxrewrite")
    source = os.path.join(examples.root, "examples", "count_sleeps", "count_sleeps.cpp")

    def opt(library):
        return output_of(program, "opt", sample, "--load-pass", library, "-p", "count-sleeps", "-o", os.devnull)

    code, _, complaint = opt(examples.build("count_sleeps", "libcount_sleeps.so"))
    check(code == 0, f"count_sleeps is not loaded: {complaint}")

    own = ".".join(version.split(".")[:2])
    for name, header, old, new, message in (
            ("version", "transforms/manager/pass.h", "interface_minor = ", "interface_minor = 9",
             rf"was built for ptxrewrite \d+\.9\d+, and this is {re.escape(own)}: compile it against this program's headers"),
            ("opcode", "ir/isa/opcodes.def", "\nOPCODE(", '\nOPCODE(zzz, "", "", "9.0", "sm_90+", integer, "")\nOPCODE(',
             rf"was built with other headers of ptxrewrite {re.escape(own)}, or with other settings"),
            ("size", "ir/core/module.h", "class Module {\n", "class Module {\n  int further[8];\n", "other headers"),
            ("name", "transforms/manager/pass.h", "RegisterPassOf", "RegisterPassOfOld", "was built for another ptxrewrite")):
        headers = edited(prefix, out, name, header, old, new)
        if name == "name":
            with open(os.path.join(headers, header), encoding="utf-8") as file:
                text = file.read()
            with open(os.path.join(headers, header), "w", encoding="utf-8") as file:
                file.write(text.replace("using RegisterPass = RegisterPassOf<", "using RegisterPass = RegisterPassOfOld<")
                           .replace("explicit RegisterPassOf(", "explicit RegisterPassOfOld("))
        library = os.path.join(out, f"lib{name}.so")
        # A constructor in the library would show that its code ran.
        loud = os.path.join(out, f"{name}.cpp")
        with open(loud, "w", encoding="utf-8") as file:
            file.write(f'#include "{source}"\n#include <cstdio>\nstatic const int ran = std::puts("code of the library ran");\n')
        run(COMPILER, "-std=c++20", "-shared", "-fPIC", "-O1", "-I", headers, loud, "-o", library)
        code, printed, complaint = opt(library)
        check(code == 2 and re.search(message, complaint) and "ran" not in printed, f"{name}: {code}: {complaint}{printed}")


def main():
    cmake, build, root, sample = sys.argv[1:5]
    with tempfile.TemporaryDirectory() as folder:
        prefix, out = os.path.join(folder, "prefix"), os.path.join(folder, "out")
        if sample == "--bless":
            run(cmake, "--install", build, "--prefix", prefix, "--component", "dev")
            with open(LIST, "w", encoding="ascii") as file:
                file.write("\n".join(installed_headers(prefix)) + "\n")
            return 0
        run(cmake, "--install", build, "--prefix", prefix)
        headers = installed_headers(prefix)
        with open(LIST, encoding="ascii") as file:
            listed = file.read().split()
        check(headers == listed, f"installed headers: not in the list: {sorted(set(headers) - set(listed))}; in the list "
              f"alone: {sorted(set(listed) - set(headers))}. check_package.py CMAKE BUILD ROOT --bless writes the list")
        check_headers(prefix, headers)
        examples = Examples(cmake, root, prefix, out)
        check_programs(examples, sample)
        version = re.search(r"ptxrewrite (\S+)", run(os.path.join(prefix, "bin", "ptxrewrite"), "--version")).group(1)
        check_versions(cmake, prefix, out, version)
        check_pass_library(examples, prefix, out, version, sample)
    for failure in FAILURES:
        print("FAILED:", failure)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
