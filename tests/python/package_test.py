"""The package against NumPy, the command line's figures, and the rules of the interpreter."""
import glob
import json
import os
import pickle
import re
import subprocess
import threading
import time

import numpy

import ptxrewrite
from ptxrewrite import EXAMPLE, Builder, KernelFault, Launch, Module, PtxError

SAMPLES = os.environ["PTXREWRITE_SAMPLES"]
TOOL = os.environ["PTXREWRITE_TOOL"]
SPIN = """.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u32 n)
{
  .reg .pred %p;
  .reg .u32 %r<3>;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
loop:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p, %r2, %r1;
  @%p bra loop;
  ret;
}
"""


def raised(kind, run):
    try:
        run()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def test_launch_agrees_with_numpy():
    saxpy = Module.parse(EXAMPLE)["saxpy"]
    random = numpy.random.default_rng(1)
    for n in (1, 31, 1000):
        x, y = random.random(n, dtype=numpy.float32), random.random(n, dtype=numpy.float32)
        # One rounding, like fma: in double precision the product is exact.
        expected = (2.5 * x.astype(numpy.float64) + y).astype(numpy.float32)
        saxpy[(n + 63) // 64, 64](x, y, 2.5, n)
        assert (y == expected).all(), n


def test_arguments():
    saxpy = Module.parse(EXAMPLE)["saxpy"]
    x = numpy.zeros(8, numpy.float32)
    assert "line" not in str(raised(TypeError, lambda: saxpy[1, 32](x, x, 1.0)))
    raised(OverflowError, lambda: saxpy[1, 32](x, x, 1.0, 2**32))
    raised(TypeError, lambda: saxpy[1, 32](x, x, 1.0, 1.5))
    raised(ValueError, lambda: saxpy[1, 32](x[:4], x, 1.0, 4))  # the arrays overlap
    raised(PtxError, lambda: saxpy[1, 2048](x, x, 1.0, 4))
    raised(KeyError, lambda: Module.parse(EXAMPLE)["saxpi"])
    strided = numpy.zeros((8, 2), numpy.float32)[:, 0]
    saxpy[1, 32](numpy.ones(8, numpy.float32), strided, 3.0, 8)
    assert strided.tolist() == [3.0] * 8


def test_faults_have_places():
    saxpy = Module.parse(EXAMPLE, "saxpy.ptx")["saxpy"]
    x = numpy.zeros(8, numpy.float32)
    error = raised(KernelFault, lambda: saxpy[1, 32](x, x, 1.0, 9))
    [diagnostic] = error.diagnostics
    line = EXAMPLE.splitlines()[diagnostic.line - 1]
    assert diagnostic.file == "saxpy.ptx" and "ld.global.f32 %f2" in line, diagnostic
    again = pickle.loads(pickle.dumps(error))
    assert again.diagnostics == error.diagnostics and isinstance(again, KernelFault)


def test_errors_have_places():
    text = EXAMPLE.replace("%f1, %f2, %f3;", "%f1, %f2;")
    error = raised(PtxError, lambda: Module.parse(text, "x.ptx"))
    place = error.diagnostics[0]
    assert (place.file, place.line) == ("x.ptx", 1 + EXAMPLE[:EXAMPLE.index("fma.rn")].count("\n")), place
    raised(PtxError, lambda: ptxrewrite.optimize(EXAMPLE, passes="there-is-none"))
    raised(PtxError, lambda: ptxrewrite.optimize(EXAMPLE, form="illegal"))
    [diagnostic] = raised(PtxError, lambda: Launch.from_file("/nonexistent/x.toml")).diagnostics
    assert "/nonexistent/x.toml" in diagnostic.message


def test_optimize_is_the_command_line():
    path = os.path.join(SAMPLES, "backprop", "backprop.ptx")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    result = ptxrewrite.optimize(text, passes="r2d2", run_ptxas=False, name=path)
    printed = subprocess.run([TOOL, "opt", path, "-p", "r2d2", "--no-ptxas"], capture_output=True, text=True, check=True)
    assert result.ptx == printed.stdout and result.ptx != text
    shown = subprocess.run([TOOL, "diff", path, "-p", "r2d2", "--no-ptxas"], capture_output=True, text=True, check=True)
    assert f"{path}, rewritten" in result.diff().html
    difference = ptxrewrite.diff(text, passes="r2d2", name=path)
    assert difference.text.strip() in shown.stdout and difference.text
    assert "<html" in difference.html and "srcdoc" in difference._repr_html_()


def test_score_study_verify_are_the_command_line():
    path = os.path.join(SAMPLES, "vecadd", "vecadd.toml")
    launch = Launch.from_file(path)
    score = launch.score("titanv", run_ptxas=False)
    printed = subprocess.run([TOOL, "score", path, "--gpu", "titanv", "--json"], capture_output=True, text=True,
                             check=True, env={**os.environ, "PTXREWRITE_PTXAS": "/nonexistent"})
    assert score.report == json.loads(printed.stdout)["files"][0]
    assert score.rows()[0]["clocks"] > 0 and "srcdoc" in score._repr_html_()
    study = json.loads(subprocess.run([TOOL, "study", path, "--json"], capture_output=True, text=True,
                                      check=True).stdout)["files"][0]
    assert launch.study()["rows"] == study["rows"]
    [case] = launch.verify("r2d2")
    assert case["result"] in ("identical", "unchanged"), case


def test_python_pass_changes_and_is_checked():
    def double_store(function, context):
        for one in function.instructions:
            if one.mnemonic == "st.global.f32":
                address, value = one.operands
                builder = Builder(function).before(one)
                twice = builder.emit_value("add.f32", "f32", [value, value])
                ptxrewrite.set_operands(one, [address, ptxrewrite._core.operand(twice)])
                context.remark("doubled", one)

    result = ptxrewrite.optimize(EXAMPLE, passes=double_store, run_ptxas=False)
    line = 1 + EXAMPLE[:EXAMPLE.index("st.global")].count("\n")
    assert result.remarks[0]["text"] == "doubled" and result.remarks[0]["line"] == line, result.remarks
    x, y = numpy.arange(8, dtype=numpy.float32), numpy.ones(8, numpy.float32)
    result.kernel("saxpy")[1, 8](x, y, 1.0, 8)
    assert y.tolist() == [2 * (i + 1) for i in range(8)]

    kept = []

    def broken(function, context):
        kept.append(function)
        one = next(one for one in function.instructions if one.opcode == "fma")
        ptxrewrite.remove(function, one)  # the value that it defines is used

    assert "breaks a rule" in str(raised(PtxError, lambda: ptxrewrite.optimize(EXAMPLE, passes=broken, run_ptxas=False)))
    raised(PtxError, lambda: kept[0].name)  # the pass has ended

    def own_error(function, context):
        raise LookupError("mine")

    raised(LookupError, lambda: ptxrewrite.optimize(EXAMPLE, passes=own_error, run_ptxas=False))
    ptxrewrite.optimize(EXAMPLE, passes="dce", run_ptxas=False)  # the exception has left no state behind


def test_exceptions_of_passes_leave_every_engine():
    ran = []

    @ptxrewrite.register_pass("raises-always")
    def raises_always(function, context):
        raise LookupError("mine")

    @ptxrewrite.register_pass("counts-its-runs")
    def counts(function, context):
        ran.append(function.name)

    path = os.path.join(SAMPLES, "vecadd", "vecadd.toml")
    for engine in (lambda name: ptxrewrite.optimize(EXAMPLE, passes=name, run_ptxas=False),
                   lambda name: ptxrewrite.diff(EXAMPLE, passes=name),
                   lambda name: ptxrewrite.prove(EXAMPLE, name),
                   lambda name: ptxrewrite.verify(path, name),
                   lambda name: ptxrewrite.score(path, "titanv", passes=[name], run_ptxas=False)):
        assert "mine" in str(raised(LookupError, lambda: engine("raises-always")))
        ran.clear()
        engine("counts-its-runs")
        assert ran
    raised(PtxError, lambda: ptxrewrite.verify(path, "r2d2", form="illegal"))


def test_builder_refuses():
    messages = []

    def tries(function, context):
        fma = next(one for one in function.instructions if one.opcode == "fma")
        out, a, b, c = fma.operands
        for attempt in (lambda: Builder(function).emit("add.f32", [out, a, b]),
                        lambda: Builder(function).before(fma).emit("no.such", [a]),
                        lambda: Builder(function).before(fma).emit("add.s32", [Builder(function).new_value("b32"), a, b]),
                        lambda: Builder(function).before(fma).emit("bra", [a]),
                        lambda: Builder(function).before(fma).emit("add.f32", [a, a, b]),
                        lambda: Builder(function).new_value("x32")):
            messages.append(str(raised(PtxError, attempt)))

    Module.parse(EXAMPLE).apply(tries)
    assert len(messages) == 6, messages


def test_handles_end():
    module = Module.parse(EXAMPLE)
    function = module.functions[0]
    instruction = function.instructions[0]
    module.apply("dce")
    raised(PtxError, lambda: instruction.text)
    assert module.functions[0].instructions[0].opcode == "ld"


def test_interpreter_is_free_while_kernels_run():
    kernel = Module.parse(SPIN)["spin"]
    launch = kernel[1, 32].bind(3_000_000)
    ended = threading.Event()
    thread = threading.Thread(target=lambda: (launch.run(), ended.set()))
    thread.start()
    turns = 0
    while not ended.is_set():
        time.sleep(0)
        turns += 1
    thread.join()
    assert turns > 100, turns  # only one or two if the other thread holds the lock


def test_threads_at_once():
    expected = ptxrewrite.optimize(EXAMPLE, passes="r2d2,dce", run_ptxas=False).ptx
    found = []
    threads = [threading.Thread(target=lambda: found.extend(
        ptxrewrite.optimize(EXAMPLE, passes="r2d2,dce", run_ptxas=False).ptx for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20 and set(found) == {expected}


def test_stubs_name_what_there_is():
    folder = os.path.dirname(ptxrewrite.__file__)
    with open(os.path.join(folder, "_core.pyi"), encoding="utf-8") as file:
        stub = file.read()
    named = set(re.findall(r"^(?:class|def) (\w+)|^(\w+):", stub, re.MULTILINE))
    named = {one or other for one, other in named}
    there = {name for name in dir(ptxrewrite._core) if not name.startswith("_")} - {"PtxError", "KernelFault"}
    assert named == there, named ^ there
    for kind in ("Function", "Instruction", "Builder", "PassContext", "LaunchInput", "Module", "Operand", "Value"):
        body = re.search(rf"^class {kind}[^\n]*\n((?:    [^\n]*\n|\n)*)", stub, re.MULTILINE).group(1)
        methods = set(re.findall(r"    def (\w+)", body)) - {"__init__"}
        real = {name for name in vars(getattr(ptxrewrite._core, kind)) if not name.startswith("_")}
        assert {name for name in methods if not name.startswith("_")} == real, (kind, methods ^ real)


def test_every_sample_is_read():
    files = sorted(glob.glob(os.path.join(SAMPLES, "*", "*.ptx")))
    assert len(files) > 50
    for path in files[::10]:
        assert Module.load(path).functions
