"""ptxrewrite.triton.install with a real Triton, which compiles a kernel and calls ptxrewrite-ptxas as its assembler.

The drop-in calls Triton's own ptxas: without passes the machine code is identical; with passes ptxas gets
the output of `ptxrewrite opt` for Triton's PTX; emulated, the cubin contains Triton's PTX, and Triton's launcher runs it
under `ptxrewrite exec`."""
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

import triton.backends.nvidia

TOOL = os.environ["PTXREWRITE_TOOL"]
OWN_PTXAS = os.path.join(os.path.dirname(triton.backends.nvidia.__file__), "bin", "ptxas-blackwell")  # for sm_90 and later
CLIENT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "applications", "python", "triton_kernels.py")
PASSES = "schedule(force)"
# Compiles one kernel. sys.argv: paths of cubin and PTX, arguments of install() as JSON or "none".
COMPILE = """
import json, sys
if sys.argv[2] != "none":
    import ptxrewrite.triton
    ptxrewrite.triton.install(**json.loads(sys.argv[2]))
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)

source = ASTSource(fn=add, signature={"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"},
                   constexprs={"BLOCK": 256})
made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
open(sys.argv[1] + ".cubin", "wb").write(made.asm["cubin"])
open(sys.argv[1] + ".ptx", "w").write(made.asm["ptx"])
"""
LAUNCH = f"""
import runpy
import ptxrewrite.triton
ptxrewrite.triton.install(emulated=True)
runpy.run_path({CLIENT!r}, run_name="__main__")
"""
# Replaces Triton's ptxas: keeps its input.
RECORDER = """#!/bin/sh
for word; do case $word in *.ptx) cp "$word" "{kept}";; esac; done
exec "{ptxas}" "$@"
"""


def environment(folder, **more):
    return {**os.environ, "PATH": os.path.dirname(TOOL) + os.pathsep + os.environ["PATH"], "TRITON_CACHE_DIR": folder,
            "TRITON_DISABLE_LINE_INFO": "1", **more}


def program(folder, text):
    path = os.path.join(folder, "program.py")  # Triton reads the source of kernels from their files
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def compiled(folder, name, installed, **more):
    out = os.path.join(folder, name)
    child = subprocess.run([sys.executable, "-B", program(folder, COMPILE), out, json.dumps(installed) if installed is not None else
                            "none"], env=environment(os.path.join(folder, "cache"), **more), capture_output=True, text=True,
                           check=False)
    assert child.returncode == 0, child.stderr
    with open(out + ".cubin", "rb") as cubin, open(out + ".ptx", encoding="utf-8") as ptx:
        return cubin.read(), ptx.read()


def printed(*words):
    return subprocess.run([TOOL, "opt", *words], capture_output=True, text=True, check=True).stdout


def test_without_passes_nothing_changes():
    with tempfile.TemporaryDirectory() as folder:
        before, ptx = compiled(folder, "before", None)
        after, same = compiled(folder, "after", {})
        assert ptx == same and before == after and before[:4] == b"\x7fELF"


def test_ptxas_gets_what_opt_prints():
    with tempfile.TemporaryDirectory() as folder:
        recorder, kept = os.path.join(folder, "recorder"), os.path.join(folder, "kept.ptx")
        with open(recorder, "w", encoding="ascii") as file:
            file.write(RECORDER.format(kept=kept, ptxas=OWN_PTXAS))
        os.chmod(recorder, os.stat(recorder).st_mode | stat.S_IXUSR)
        before, _ = compiled(folder, "before", {}, PTXREWRITE_PTXAS=recorder)
        # The same cache: Triton must notice that another assembler makes the code.
        after, ptx = compiled(folder, "after", {"passes": PASSES}, PTXREWRITE_PTXAS=recorder)
        with open(kept, encoding="utf-8") as file:
            assert file.read() == printed(os.path.join(folder, "after.ptx"), "-p", PASSES, "--no-ptxas")
        assert before != after and "add" in ptx


def test_emulated_cubins_carry_the_text():
    with tempfile.TemporaryDirectory() as folder:
        cubin, ptx = compiled(folder, "emulated", {"emulated": True})
        path = os.path.join(folder, "emulated")
        assert printed("--extract", path + ".cubin", "--no-ssa") == printed(path + ".ptx", "--no-ssa") and "add" in ptx
        assert len(cubin) > len(ptx)


def test_triton_launches_under_exec():
    try:
        from cuda.bindings import driver  # noqa: F401
    except ImportError:
        raise unittest.SkipTest("no cuda.bindings") from None
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run([TOOL, "exec", "--emulate", "a100", "--counters", "--", sys.executable, "-B", program(folder, LAUNCH)],
                               env=environment(os.path.join(folder, "cache")), capture_output=True, text=True, check=False)
        assert child.returncode == 0, child.stdout + child.stderr
        assert "softmax" in child.stdout + child.stderr, child.stdout + child.stderr


def test_missing_program_is_said():
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run([sys.executable, "-c", "import ptxrewrite.triton; ptxrewrite.triton.install()"],
                               env={**environment(folder), "PATH": folder}, capture_output=True, text=True, check=False)
        assert child.returncode == 1 and "ptxrewrite-ptxas is not in PATH" in child.stderr, child.stderr
