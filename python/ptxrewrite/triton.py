"""Triton's kernels without a GPU, and Triton's ptxas replaced by ours.

    from ptxrewrite.triton import kernel

    softmax = kernel(softmax_function, gpu="sm_90", num_warps=4)
    run = softmax[(rows,)](x, out, columns, BLOCK=128)      # x and out are NumPy arrays

Triton compiles as for a GPU; the emulator runs its PTX. `install` is for programs that launch on a GPU through
Triton itself, or under `ptxrewrite exec`.
"""
from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy

from . import rewrite
from .diagnostics import PtxError
from .emulator import Kernel, Launch, Run

_POINTERS = {"float16": "*fp16", "bfloat16": "*bf16", "float32": "*fp32", "float64": "*fp64", "bool": "*i1",
             "int8": "*i8", "int16": "*i16", "int32": "*i32", "int64": "*i64",
             "uint8": "*u8", "uint16": "*u16", "uint32": "*u32", "uint64": "*u64"}

_OWN_PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def _own_ptxas() -> Optional[str]:
    """Returns the newest assembler that comes with Triton."""
    found = importlib.util.find_spec("triton")
    for folder in found.submodule_search_locations or () if found else ():
        for name in ("ptxas-blackwell", "ptxas"):
            path = os.path.join(folder, "backends", "nvidia", "bin", name)
            if os.access(path, os.X_OK):
                return path
    return None


def install(passes: str = "", *, emulated: bool = False, ptxas: Optional[str] = None) -> str:
    """Makes Triton call ptxrewrite-ptxas, which rewrites the PTX with `passes` and calls the real ptxas: the one that
    PTXREWRITE_PTXAS names, else Triton's own. `emulated`: it makes no machine code but packs the PTX, for programs under
    `ptxrewrite exec`. `ptxas`: the path of ptxrewrite-ptxas, by default that in PATH or the wheel's. Returns it. For this
    process and those that it starts, before Triton compiles anything; Triton's cache knows the passes apart."""
    path = ptxas or shutil.which("ptxrewrite-ptxas") or shutil.which("ptxrewrite-ptxas", path=_OWN_PROGRAMS)
    if not path:
        raise PtxError("ptxrewrite-ptxas is not in PATH, nor in this package: it comes with the program and with wheels")
    for variable in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        os.environ[variable] = path
    os.environ["PTXREWRITE_PASSES"] = passes
    os.environ.pop("PTXREWRITE_EMULATED", None)
    if emulated:
        os.environ["PTXREWRITE_EMULATED"] = "1"
    own = _own_ptxas()
    if own and not emulated:
        os.environ.setdefault("PTXREWRITE_PTXAS", own)
    return path


def _type_of(value: Any, name: str) -> str:
    if isinstance(value, numpy.ndarray):
        if value.dtype.name not in _POINTERS:
            raise TypeError(f"argument {name}: Triton has no pointer to {value.dtype}")
        return _POINTERS[value.dtype.name]
    if isinstance(value, (bool, numpy.bool_)):
        return "i1"
    if isinstance(value, (int, numpy.integer)):
        return "i32" if -2**31 <= value < 2**31 else "i64" if value < 2**63 else "u64"
    if isinstance(value, (float, numpy.floating)):
        return "fp32"
    raise TypeError(f"argument {name}: an array or a number is wanted, not {type(value).__name__}")


class TritonKernel:
    """A function under triton.jit, compiled for each combination of types and constants of its launches."""

    def __init__(self, function, gpu: str, passes: str, options: Dict[str, Any]) -> None:
        self._function, self._passes, self._options = function, passes, options
        self._capability = int("".join(digit for digit in gpu if digit.isdigit()))
        self._compiled: Dict[Any, Tuple[Kernel, Any]] = {}

    def __getitem__(self, grid: Union[int, Sequence[int]]) -> "_OnGrid":
        return _OnGrid(self, grid)

    def compile(self, arguments: Dict[str, Any]) -> Tuple[Kernel, Any]:
        """Returns the kernel and Triton's metadata for it."""
        constants = {parameter.name: arguments[parameter.name] for parameter in self._function.params
                     if parameter.is_constexpr}
        signature, hints = {}, {}
        for number, parameter in enumerate(self._function.params):
            value = arguments[parameter.name]
            if parameter.is_constexpr:
                signature[parameter.name] = "constexpr"
                continue
            signature[parameter.name] = _type_of(value, parameter.name)
            # Assumption of Triton's launcher about a GPU's memory: buffers begin at multiples of 256.
            if isinstance(value, numpy.ndarray) or (isinstance(value, (int, numpy.integer)) and value % 16 == 0):
                hints[number, ] = [["tt.divisibility", 16]]
        key = repr((sorted(signature.items()), sorted(constants.items()), sorted(hints)))
        if key not in self._compiled:
            from triton.backends.compiler import GPUTarget
            from triton.compiler import ASTSource, compile as compile_triton
            source = ASTSource(fn=self._function, signature=signature, constexprs=constants, attrs=hints)
            made = compile_triton(source, target=GPUTarget("cuda", self._capability, 32), options=self._options)
            text = made.asm["ptx"]
            if self._passes:
                result = rewrite.optimize(text, self._passes, name=made.metadata.name, run_ptxas=False)
                kernel = result.kernel(made.metadata.name)
            else:
                kernel = Kernel(text, f"{made.metadata.name}.ptx", made.metadata.name)
            self._compiled[key] = kernel, made.metadata
        return self._compiled[key]


class _OnGrid:
    def __init__(self, kernel: TritonKernel, grid) -> None:
        self._kernel, self._grid = kernel, grid

    def bind(self, *values: Any, **named: Any) -> Launch:
        """Returns a launch to run, score, study or verify."""
        names = [parameter.name for parameter in self._kernel._function.params]
        if len(values) > len(names):
            raise TypeError(f"{len(names)} arguments are wanted, not {len(values)}")
        arguments = {**dict(zip(names, values)), **named}
        for parameter in self._kernel._function.params:
            if parameter.has_default:
                arguments.setdefault(parameter.name, parameter.default)
        if set(arguments) != set(names):
            raise TypeError(f"arguments that are missing or unknown: {', '.join(sorted(set(names) ^ set(arguments)))}")
        kernel, metadata = self._kernel.compile(arguments)
        grid = self._grid(arguments) if callable(self._grid) else self._grid
        given = [arguments[parameter.name] for parameter in self._kernel._function.params if not parameter.is_constexpr]
        if metadata.global_scratch_size or metadata.num_ctas != 1:
            raise PtxError("kernels with scratch memory or clusters are not launched here: ptxrewrite exec does")
        given += [None] * (len(kernel.parameters) - len(given))  # scratch memory that the kernel does not use
        return kernel[grid, 32 * metadata.num_warps, metadata.shared].bind(*given)

    def __call__(self, *values: Any, **named: Any) -> Run:
        return self.bind(*values, **named).run()


def kernel(function, *, gpu: str = "sm_80", passes: str = "", **options: Any) -> TritonKernel:
    """A function under triton.jit that runs on the emulator, rewritten by `passes`. `options`: num_warps, num_stages and
    others that Triton's compiler takes."""
    return TritonKernel(function, gpu, passes, options)
