#!/usr/bin/env python3
"""Compiles a CUDA program with nvcc and runs it under `ptxrewrite exec`: it must check itself and exit with 0.

usage: run_application.py --tool PTXREWRITE --nvcc NVCC --libraries FOLDER --folder FOLDER SOURCE [--fault NAME]
"""
import argparse
import os
import subprocess
import sys

# Expected texts on standard error, and cases in which a fault does not change the program's exit code or output.
SAYS = {
    "out_of_bounds": "is out of bounds",
    "misaligned": "is not a multiple of 4",
    "assertion": "assertion `*data == 5' failed",
    "trap": "the kernel executed a trap",
    "hang": "out of fuel",
    "wrong_shape": "launch of",
    "no_ptx": "no PTX for sm_90",
    "relocatable": "relocatable code (nvcc -rdc=true",
    "missing_call": "cudaIpcOpenMemHandle is not emulated",
    "static_runtime": "link it with the shared one: nvcc -cudart shared",
}
# Programs whose kernels require more than sm_80.
TARGETS = {"clusters": "sm_90", "tensor_maps": "sm_90", "tensor_pipeline": "sm_90a"}
# Programs in which --check must not find anything.
CHECKED = ("tensor_pipeline", )
# Additional output of a program.
PRINTS = {"printf_malloc": "before\nthread 3 has 190, and 0.50\n"}


LINKED = {"driver": ("-lcuda", ), "nvrtc": ("-lcuda", "-lnvrtc")}


def program_name(options):
    return os.path.splitext(os.path.basename(options.source))[0]


def compile_program(options, arguments):
    name = program_name(options) + (f"_{options.fault}" if options.fault else "")
    program = os.path.join(options.folder, name)
    libraries = ["-L" + options.libraries, *LINKED.get(name, ())]
    runtime = "static" if options.fault == "static_runtime" else "shared"
    subprocess.run([options.nvcc, "-cudart", runtime, *arguments, options.source, "-o", program, *libraries], check=True)
    return program


def check_refused(child, words):
    """Programs that ignore errors end all the same, before they print results."""
    if child.returncode == 1 and child.stdout == "" and child.stderr.count(words) == 1:
        return 0
    print(f"FAILED: exit code {child.returncode}, not 1, or it goes on, or does not say {words!r}")
    return 1


def main():
    parser = argparse.ArgumentParser()
    for name in ("--tool", "--nvcc", "--libraries", "--folder", "--fault"):
        parser.add_argument(name, default="")
    parser.add_argument("source")
    options = parser.parse_args()
    if not os.path.exists(options.nvcc):
        print("skipped: there is no nvcc")
        return 0
    of_fault = {"no_ptx": ["-gencode", "arch=compute_80,code=sm_80"],
                "relocatable": ["-rdc=true", "-gencode", "arch=compute_80,code=compute_80"]}
    target = TARGETS.get(program_name(options), "sm_80").removeprefix("sm_")
    with_ptx = ["-gencode", f"arch=compute_{target},code=[sm_{target},compute_{target}]"]
    program = compile_program(options, of_fault.get(options.fault, with_ptx))
    command = [options.tool, "exec", "--counters"] + (["--check"] if program_name(options) in CHECKED else [])
    if options.fault == "hang":
        command += ["--fuel", "100000"]
    child = subprocess.run([*command, "--", program, *([options.fault] if options.fault else [])],
                           capture_output=True, text=True, check=False)
    sys.stdout.write(child.stdout + child.stderr)
    if options.fault == "static_runtime":
        return check_refused(child, SAYS[options.fault])
    name = program_name(options)
    expected = "" if options.fault == "exit_early" else PRINTS.get(name, "") + "right\n"
    if child.returncode != 0 or child.stdout != expected:
        print(f"FAILED: exit code {child.returncode}, standard output {child.stdout!r} where {expected!r} is right")
        return 1
    for wanted in (SAYS.get(options.fault, ""), "warp instructions"):
        if wanted not in child.stderr:
            print(f"FAILED: standard error does not say {wanted!r}")
            return 1
    if program_name(options) in CHECKED and "error:" in child.stderr:
        print("FAILED: --check found something")
        return 1
    if child.stderr.count("warp instructions  ") != 1:
        print("FAILED: not one table at the end")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
