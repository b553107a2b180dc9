#!/usr/bin/env python3
"""Compiles a CUDA program with nvcc and runs it under `ptxrewrite exec`: it must check itself, exit with the expected code, and
leave neither processes nor files.

usage: run_application.py --tool PTXREWRITE --nvcc NVCC --libraries FOLDER --folder FOLDER SOURCE [--fault NAME]
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
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
    "missing_driver_call": "cuIpcOpenMemHandle_v2 is not emulated",
    "fork": "a process was forked after its first CUDA call",
    "fork_beside_launches": "a process was forked after its first CUDA call",
    "exit_beside_waiting_kernel": "the program has exited, and all blocks of the kernel wait",
    "exit_beside_counting_kernel": "the program has exited, and the kernel goes on for too long",
    "static_runtime": "link it with the shared one: nvcc -cudart shared",
}
# Programs that exit in the middle, by themselves.
EXITS = {"exit_early": 3, "exit_beside_kernel": 3, "exit_beside_waiting_kernel": 3, "exit_beside_counting_kernel": 3}
# The report is missing if a kernel still runs when the program exits.
UNREPORTED = ("exit_beside_kernel", )
# Programs whose kernels require more than sm_80.
TARGETS = {"clusters": "sm_90", "tensor_maps": "sm_90", "tensor_pipeline": "sm_90a"}
# Programs in which --check must not find anything.
CHECKED = ("tensor_pipeline", )
# Additional output of a program.
PRINTS = {"printf_malloc": "before\nthread 3 has 190, and 0.50\n"}
# Options of nvcc for faults that are made by them.
COMPILED_AS = {"no_ptx": ["-gencode", "arch=compute_80,code=sm_80"],
               "relocatable": ["-rdc=true", "-gencode", "arch=compute_80,code=compute_80"],
               "static_runtime": ["-gencode", "arch=compute_80,code=[sm_80,compute_80]"]}
LINKED = {"driver": ("-lcuda", ), "driver_calls": ("-lcuda", ), "mipmaps": ("-lcuda", ),
          "texture_references_of_modules": ("-lcuda", ), "nvrtc": ("-lcuda", "-lnvrtc")}


def program_name(options):
    return os.path.splitext(os.path.basename(options.source))[0]


def is_newer(program, sources):
    return os.path.exists(program) and all(os.path.getmtime(program) > os.path.getmtime(source) for source in sources)


def compile_program(options):
    """Faults that do not depend on how the program is compiled share one program."""
    name = program_name(options) + (f"_{options.fault}" if options.fault in COMPILED_AS else "")
    program = os.path.join(options.folder, name)
    if options.fault and is_newer(program, [options.source, os.path.join(HERE, "check.h"), __file__]):
        return program
    target = TARGETS.get(program_name(options), "sm_80").removeprefix("sm_")
    with_ptx = ["-gencode", f"arch=compute_{target},code=[sm_{target},compute_{target}]"]
    libraries = ["-L" + options.libraries, *LINKED.get(name, ())]
    runtime = "static" if options.fault == "static_runtime" else "shared"
    made = f"{program}.{os.getpid()}"
    subprocess.run([options.nvcc, "-cudart", runtime, *COMPILED_AS.get(options.fault, with_ptx), options.source, "-o", made,
                    *libraries], check=True)
    os.replace(made, program)
    return program


def check_refused(child, words):
    """Programs that ignore errors end all the same, before they print results."""
    if child.returncode == 1 and child.stdout == "" and child.stderr.count(words) == 1:
        return 0
    print(f"FAILED: exit code {child.returncode}, not 1, or it goes on, or does not say {words!r}")
    return 1


def run_alone(command):
    """Runs a command in a session and folder of its own. Returns its result, and the processes and files that it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TMPDIR": folder, "PTXREWRITE_CACHE": folder}
        child = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        output, errors = child.communicate()
        left = os.listdir(folder)
    try:
        os.killpg(child.pid, 0)
        left.append("a process")
    except ProcessLookupError:
        pass
    return subprocess.CompletedProcess(command, child.returncode, output, errors), left


def main():
    parser = argparse.ArgumentParser()
    for name in ("--tool", "--nvcc", "--libraries", "--folder", "--fault"):
        parser.add_argument(name, default="")
    parser.add_argument("source")
    options = parser.parse_args()
    if not os.path.exists(options.nvcc):
        print("skipped: there is no nvcc")
        return 0
    program = compile_program(options)
    command = [options.tool, "exec", "--counters"] + (["--check"] if program_name(options) in CHECKED else [])
    if options.fault == "hang":
        command += ["--fuel", "100000"]
    child, left = run_alone([*command, "--", program, *([options.fault] if options.fault else [])])
    sys.stdout.write(child.stdout + child.stderr)
    if left:
        print(f"FAILED: left behind: {left}")
        return 1
    if options.fault == "static_runtime":
        return check_refused(child, SAYS[options.fault])
    name = program_name(options)
    code = EXITS.get(options.fault, 0)
    expected = "" if code else PRINTS.get(name, "") + "right\n"
    if child.returncode != code or child.stdout != expected:
        print(f"FAILED: exit code {child.returncode}, standard output {child.stdout!r} where {expected!r} is right")
        return 1
    if options.fault in UNREPORTED:
        return 0
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
