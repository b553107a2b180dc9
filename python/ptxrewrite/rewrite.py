"""Passes over PTX and reports about them: optimize, diff, analyze, prove, and passes written in Python."""
from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _core
from .diagnostics import Diagnostic

Passes = Union[str, Callable, Sequence[Union[str, Callable]]]


@dataclass(frozen=True)
class Result:
    """A rewritten module. A launcher needs `side_file` if a rewriting is valid for some launches only."""

    ptx: str
    side_file: Optional[str]
    remarks: List[Dict[str, Any]]
    report: Dict[str, Any] = field(repr=False)
    warnings: Tuple[Diagnostic, ...] = ()
    original: str = field(default="", repr=False)
    name: str = "<text>"

    def save(self, path: Union[str, Path]) -> None:
        """Writes the module, and its side file beside it."""
        path = Path(path)
        path.write_text(self.ptx, encoding="utf-8", errors="surrogateescape")
        if self.side_file:
            path.with_suffix(".launch.json").write_text(self.side_file, encoding="utf-8")

    def kernel(self, name: str):
        """The kernel for launches of `name`: the variant whose conditions hold, else the original."""
        from .emulator import Kernel
        return Kernel(self.ptx, self.name, name, self.side_file or "")

    def diff(self) -> Difference:
        return diff(self.original, self.ptx, name=self.name, other_name=f"{self.name}, rewritten")

    def _repr_html_(self) -> str:
        return self.diff()._repr_html_()


def _options(passes: str, form: str, gpu: str, kernels: str, assume: Sequence[str], run_ptxas: bool,
             verify_each: bool) -> _core.RewriteOptions:
    return _core.RewriteOptions(passes=passes, form=form, gpu=gpu, kernels=kernels, assume=list(assume),
                                run_ptxas=run_ptxas, verify_each=verify_each)


def _pipeline_of(passes: Passes) -> str:
    """Returns one text; functions are registered under their names."""
    if isinstance(passes, str):
        return passes
    if callable(passes):
        return _name_of_pass(passes)
    return ",".join(_pipeline_of(one) for one in passes)


def _name_of_pass(run: Callable) -> str:
    name = getattr(run, "pass_name", None)
    if name is None:
        name = getattr(run, "__name__", "pass").strip("<>").replace("_", "-")
        register_pass(name)(run)
    return name


def register_pass(name: str, doc: str = "", options: Sequence[str] = ()) -> Callable[[Callable], Callable]:
    """Registers a Python function as a pass, which pipelines can name. It gets each function in SSA form and a
    PassContext; it makes changes with Builder, remove and set_operands, and they are checked after it returns.

    >>> from ptxrewrite import EXAMPLE, Builder, optimize, remove
    >>> @register_pass("fma-to-mul-add", "splits fused multiplications")
    ... def split(function, context):
    ...     for one in function.instructions:
    ...         if one.mnemonic == "fma.rn.f32":
    ...             out, a, b, c = one.operands
    ...             builder = Builder(function).before(one)
    ...             product = builder.emit_value("mul.rn.f32", "f32", [a, b])
    ...             builder.emit("add.rn.f32", [out, product, c])
    ...             remove(function, one)
    ...             context.count("split")
    >>> result = optimize(EXAMPLE, passes="fma-to-mul-add", run_ptxas=False)
    >>> result.report["statistics"]["split"], "fma" in result.ptx, "add.rn.f32" in result.ptx
    (1, False, True)
    """

    def register(run: Callable) -> Callable:
        _core.register_pass(name, doc or (run.__doc__ or "").strip().split("\n")[0], run, list(options))
        try:
            run.pass_name = name  # type: ignore[attr-defined]
        except AttributeError:
            pass  # a callable without settable attributes
        return run

    return register


def optimize(ptx: str, passes: Passes = "-O", *, form: str = "legal", gpu: str = "", kernels: str = "*",
             assume: Sequence[str] = (), run_ptxas: bool = True, verify_each: bool = False,
             name: str = "<text>") -> Result:
    """Runs passes over PTX: "-O" is the best combination for today's GPUs; otherwise a pipeline such as
    "r2d2(limit=8),dce", functions of Python, or a list of both.

    >>> from ptxrewrite import EXAMPLE
    >>> result = optimize(EXAMPLE, passes="r2d2", run_ptxas=False)
    >>> sorted(result.report)[:3]
    ['file', 'functions', 'ledger']
    """
    text, side_file, report, warnings = _core.optimize(
        ptx, name, _options(_pipeline_of(passes), form, gpu, kernels, assume, run_ptxas, verify_each))
    document = json.loads(report)
    return Result(text, side_file or None, document.get("remarks", []), document, warnings, ptx, name)


class Difference:
    """The differences between two texts of PTX, by instructions."""

    def __init__(self, texts: Tuple[str, str, str, str]) -> None:
        self.report: Dict[str, Any] = json.loads(texts[0])
        self.html, self.text, self.summary = texts[1:]

    def __str__(self) -> str:
        return self.text + self.summary

    def _repr_html_(self) -> str:
        # The page has its own styles, which must not affect those of the notebook.
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:30em;border:0"></iframe>'


def diff(ptx: str, other: Optional[str] = None, *, passes: Optional[Passes] = None, form: str = "legal",
         kernels: str = "*", assume: Sequence[str] = (), run_ptxas: bool = False, name: str = "<text>",
         other_name: str = "<other>") -> Difference:
    """Compares two texts, or one text with the result of passes.

    >>> from ptxrewrite import EXAMPLE
    >>> print(diff(EXAMPLE, EXAMPLE.replace("fma.rn", "fma.rz")).text.splitlines()[6])
    -    fma.rn.f32 %f4, %f1, %f2, %f3;
    """
    if (other is None) == (passes is None):
        raise TypeError("give another text, or passes")
    if other is not None:
        return Difference(_core.diff_texts(ptx, name, other, other_name))
    options = _options(_pipeline_of(passes or ""), form, "", kernels, assume, run_ptxas, False)
    return Difference(_core.diff_passes(ptx, name, options))


def analyze(ptx: str, *, kernels: str = "*", name: str = "<text>") -> List[Dict[str, Any]]:
    """Returns for each function its blocks, the class and linear form of each instruction's result, and obligations.

    >>> from ptxrewrite import EXAMPLE
    >>> [function] = analyze(EXAMPLE)
    >>> function["function"], len(function["blocks"])
    ('saxpy', 3)
    """
    return json.loads(_core.analyze(ptx, name, kernels))


@dataclass(frozen=True)
class Proof:
    """Whether a rewritten kernel uses the same addresses and values as the original, in all launches."""

    kernel: str
    verdict: str  # "unchanged", "identical", "proved", "not equal" or "not proved"
    report: Dict[str, Any] = field(repr=False)

    @property
    def holds(self) -> bool:
        return not self.report["problems"]


def prove(ptx: str, passes: Passes, *, form: str = "legal", kernels: str = "*", assume: Sequence[str] = (),
          effort: int = 20, name: str = "<text>") -> List[Proof]:
    """Proves each kernel's rewriting by passes; `effort`: million steps of the solver for one expression.

    >>> from ptxrewrite import EXAMPLE
    >>> [proof] = prove(EXAMPLE, "r2d2")
    >>> proof.holds
    True
    """
    options = _options(_pipeline_of(passes), form, "", kernels, assume, False, False)
    return [Proof(one["kernel"], one["verdict"], one) for one in json.loads(_core.prove(ptx, name, options, effort))]


def passes() -> List[Dict[str, Any]]:
    """Returns all passes with their options, including those in Python."""
    return json.loads(_core.passes())


def ptxas() -> str:
    """Release and path of the assembler that passes and scores ask, or why there is none: PTXREWRITE_PTXAS and PTXAS,
    PATH, toolkits, and NVIDIA's wheel nvidia-cuda-nvcc in this environment are searched for it, in this order."""
    return _core.ptxas()


def machines() -> List[str]:
    """Returns the names of the built-in machines."""
    return _core.machines()
