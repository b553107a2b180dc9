#!/usr/bin/env python3
"""Common mistakes of users. Every command that reads PTX or a launch file gets each kind of file that is neither, and
must identify it, with the exit code for wrong input and nothing on standard output. Each long option of each command,
and names of all kinds, with one letter changed: the message must contain the intended name.

usage: check_mistakes.py PROJECT_ROOT PTXREWRITE
"""
import re
import struct
import sys
import zlib

from common import INVOCATIONS, Place, finish

ELF = b"\x7fELF\x02\x01\x01" + bytes(9)
# Name, contents (made here, following the formats' own documents), and the text that the message must contain.
FILES = [
    ("source.cu", b'#include <cstdio>\n__global__ void k() {}\n', "CUDA or C++ source"),
    ("machine.cubin", ELF + struct.pack("<HH", 2, 190) + bytes(44), "a cubin"),
    ("program", ELF + struct.pack("<HH", 2, 62) + bytes(44), "a program or library (ELF)"),
    ("fat.fatbin", struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0), "a fat binary"),
    ("library.a", b"!<arch>\n", "a library of object files"),
    ("module.bc", b"BC\xc0\xde" + bytes(16), "LLVM bitcode"),
    ("module.ll", b'; ModuleID = "k"\ntarget triple = "nvptx64-nvidia-cuda"\n', "LLVM IR"),
    ("wide.txt", "\ufeff.version 8.0".encode("utf-16-le"), "UTF-16"),
    ("code.sass", b"\n\t.headerflags\t@\"EF_CUDA_SM80\"\n        /*0000*/                   MOV R1, c[0x0][0x28] ;\n", "SASS"),
    ("dump.txt", b"\nFatbin elf code:\n================\narch = sm_80\n\n\t\tFunction : k\n        /*0000*/  MOV R1, R2 ;\n", "SASS"),
    ("dump_ptx.txt", b"\nFatbin ptx code:\n================\narch = sm_80\n\n.version 8.0\n.target sm_80\n", "cuobjdump prints"),
    ("kernel.ptx.gz", b"\x1f\x8b\x08" + bytes(7) + zlib.compress(b".version 8.0")[2:-4], "gzip"),
    ("kernel.launch.json", b'{"format": 1, "kernels": []}', "JSON"),
]
READERS = ["opt", "diff", "analyze", "lower", "prove", "mark", "launch-template"]
LAUNCHERS = ["run", "verify", "score", "study", "report"]
OF_PTX = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry kernel() { ret; }\n'


def words_with(name, path):
    """The invocation of a command with another file."""
    return [path if re.search(r"\.(ptx|toml)$", word) else word for word in INVOCATIONS[name]]


def check_files(place, failures):
    for file, contents, what in FILES:
        with open(place.path(file), "wb") as out:
            out.write(contents)
    for name in READERS + LAUNCHERS:
        for file, _, what in FILES:
            child = place.run(words_with(name, file))
            if child.returncode != 1 or what not in child.stderr or child.stdout or file not in child.stderr:
                failures.append(f"{name} {file}: exit code {child.returncode}: {child.stderr[:300]}{child.stdout[:100]}")
            if child.stderr.count("error:") != 1:
                failures.append(f"{name} {file}: one message is enough: {child.stderr[:500]}")


def check_each_for_the_other(place, failures):
    with open(place.path("kernel.txt"), "w", encoding="ascii") as file:
        file.write(OF_PTX)
    cases = [([*words_with(name, "samples/vecadd/vecadd.toml")], 1, "this is a launch file", "ptxrewrite run FILE")
             for name in READERS]
    cases += [([name, "kernel.ptx", *(["-p", "dce"] if name in ("verify", "report") else [])], 2, "is PTX", "--grid")
              for name in LAUNCHERS]
    cases += [([*words_with(name, "kernel.txt")], 1, "this is PTX", "launch-template") for name in LAUNCHERS]
    cases += [(["opt", "."], 1, "is a directory".capitalize(), "."), (["opt", "none.ptx"], 1, "none.ptx", "No such file"),
              (["opt", "/dev/null"], 1, "must begin with .version", "/dev/null"),
              (["run", "."], 1, "Is a directory", "."), (["run", "none.toml"], 1, "none.toml", "No such file"),
              (["exec", "--", "./kernel.ptx"], 1, "this is PTX", "ptxrewrite run"),
              (["exec", "--", "./source.cu"], 1, "this is source", "nvcc -cudart shared"),
              (["exec", "--", "./module.ll"], 1, "LLVM IR", "cannot run it"),
              (["opt", "--extract", "program"], 1, "there is no PTX in it", "program"),
              (["opt", "--extract", "kernel.ptx"], 1, "no PTX in it", "kernel.ptx")]
    for words, code, *wanted in cases:
        child = place.run(words)
        if child.returncode != code or not all(what in child.stderr for what in wanted):
            failures.append(f"{words}: exit code {child.returncode}: {child.stderr[:300]}")


def check_options(place, failures):
    """Each long option without its last but one letter; another option may be equally similar."""
    count = 0
    for name in place.command_names():
        options = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]{4,})", place.run([name, "--help"]).stdout.split("Example:")[0]))
        for option in sorted(options - {"--help"}):
            wrong = option[:-2] + option[-1]
            if wrong in options:
                continue
            child = place.run([name, wrong, *INVOCATIONS.get(name, [name])[1:]])
            count += 1
            if child.returncode != 2 or "did you mean '--" not in child.stderr:
                failures.append(f"{name} {wrong}: {child.returncode}: {child.stderr[:200]}")
            elif re.search(r"mean '(\S+?)'", child.stderr).group(1) not in options:
                failures.append(f"{name} {wrong}: {child.stderr[:200]}")
    if count < 150:
        failures.append(f"only {count} options")
    print(f"{count} options misspelt")


def check_names(place, failures):
    for words, meant in (
            (["anlyze", "kernel.ptx"], "analyze"), (["help", "scroe"], "score"),
            (["opt", "kernel.ptx", "-p", "r2d3"], "r2d2"), (["opt", "kernel.ptx", "-p", "r2d2(limt=3)"], "limit"),
            (["opt", "kernel.ptx", "-k", "vecad"], "vecadd"), (["analyze", "kernel.ptx", "-k", "vecadds"], "vecadd"),
            (["opt", "kernel.ptx", "-p", "r2d2", "--form", "hardwre"], "hardware"),
            (["opt", "kernel.ptx", "-p", "r2d2", "--assume", "no-index-overflw"], "no-index-overflow"),
            (["opt", "kernel.ptx", "-O", "--gpu", "titnv"], "titanv"), (["lower", "kernel.ptx", "--gpu", "h2000"], "h200"),
            (["score", "samples/vecadd/vecadd.toml", "--gpu", "gtx48"], "gtx480"), (["machines", "a10"], "a100"),
            (["exec", "--emulate", "a10", "--", "true"], "a100"),
            (["run", "samples/vecadd/vecadd.toml", "--size", "smal"], "small"),
            (["run", "samples/vecadd/vecadd.toml", "-k", "vecad"], "vecadd"),
            (["study", "samples/vecadd/vecadd.toml", "--only", "DARSEI"], "DARSIE"),
            (["isa", "setpp"], "setp"), (["opt", "kernel.ptx", "--color", "nevr"], "never")):
        child = place.run(words)
        if child.returncode not in (1, 2) or f"did you mean '{meant}'" not in child.stderr:
            failures.append(f"{words}: exit code {child.returncode}: {child.stderr[:300]}")
    child = place.run(["opt", "kernel.ptx", "-O", "--gpu", "sm_8", "-o", "/dev/null"])
    if child.returncode != 2 or "target 'sm_8'" not in child.stderr:
        failures.append(f"--gpu sm_8: {child.returncode}: {child.stderr[:300]}")
    # A key of a launch file, a name in it, and a kernel's.
    with open(place.path("samples/vecadd/vecadd.toml"), encoding="utf-8") as file:
        text = file.read()
    for old, new, meant in (("grid =", "gird =", "grid"), ("[buffer.", "[bufer.", "buffer"),
                            ('kernel = "vecadd"', 'kernel = "vecad"', "vecadd")):
        if old not in text:
            failures.append(f"the sample has no {old}")
        with open(place.path("samples/vecadd/wrong.toml"), "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
        child = place.run(["run", "samples/vecadd/wrong.toml"])
        if child.returncode != 1 or f"did you mean '{meant}'" not in child.stderr:
            failures.append(f"{new}: exit code {child.returncode}: {child.stderr[:300]}")


def check_said(place, failures):
    """The legend of linear forms, and the note of `opt` to standard output about launch conditions in a side file."""
    shown = place.run(["analyze", "kernel.ptx"]).stdout
    if "{constant, tid.x, tid.y, tid.z, ctaid.x, ctaid.y, ctaid.z}" not in shown or not re.search(r"\{P\d, 4, 0, 0,", shown):
        failures.append(f"analyze: no legend beside the forms: {shown[:300]}")
    conditional = ["-p", "r2d2(force)", "--no-ptxas"]
    child = place.run(["opt", "kernel.ptx", *conditional])
    if "side file" not in child.stderr or child.returncode != 0 or ".version" not in child.stdout:
        failures.append(f"opt {conditional}: {child.stderr[:300]}")
    child = place.run(["opt", "kernel.ptx", *conditional, "-o", "out.ptx"])
    if "side file" in child.stderr:
        failures.append(f"opt -o: {child.stderr[:300]}")
    with open(place.path("out.launch.json"), encoding="utf-8") as file:
        if '"when"' not in file.read():
            failures.append("the side file has no condition")


def main():
    failures = []
    with Place(*sys.argv[1:3]) as place:
        check_files(place, failures)
        check_each_for_the_other(place, failures)
        check_options(place, failures)
        check_names(place, failures)
        check_said(place, failures)
    finish(failures)


main()
