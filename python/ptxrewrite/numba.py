"""numba-cuda's kernels without a GPU.

    from ptxrewrite.numba import kernel

    @kernel
    def add(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] + b[i]

    add[8, 128](a, b, c)      # NumPy arrays

numba compiles as for a GPU; the emulator runs its PTX. Whole programs run under `ptxrewrite exec`.
"""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy

from . import rewrite
from .diagnostics import PtxError
from .emulator import Kernel, Launch, Run


def _flat(value: Any) -> List[Any]:
    """The values that numba passes for an argument: for an array also its size, shape and strides (array structure)."""
    if not isinstance(value, numpy.ndarray):
        return [value]
    if not value.flags.c_contiguous:
        raise TypeError("arrays are contiguous, row by row")
    return [None, None, value.size, value.itemsize, value, *value.shape, *value.strides]


class NumbaKernel:
    """A Python function, compiled for each combination of argument types of its launches."""

    def __init__(self, function, gpu: str, passes: str, options: Dict[str, Any]) -> None:
        self._function, self._passes, self._options = function, passes, options
        digits = "".join(digit for digit in gpu if digit.isdigit())
        self._capability = int(digits[:-1]), int(digits[-1])
        self._compiled: Dict[Tuple[Any, ...], Kernel] = {}

    def __getitem__(self, shape) -> "_OnGrid":
        return _OnGrid(self, shape)

    def compile(self, *arguments: Any) -> Kernel:
        """Returns the kernel for arguments of these types."""
        from numba import cuda, types, typeof
        kinds = tuple(typeof(argument) for argument in arguments)
        if kinds not in self._compiled:
            text, _ = cuda.compile_ptx(self._function, types.void(*kinds), cc=self._capability, device=False,
                                       abi="numba", **self._options)
            name = self._function.__name__
            from .module import Module
            entries = [one.name for one in Module.parse(text, name).functions if one.is_entry]
            if len(entries) != 1:
                raise PtxError(f"{name}: one kernel is wanted, not {len(entries)}")
            if self._passes:
                self._compiled[kinds] = rewrite.optimize(text, self._passes, name=name,
                                                         run_ptxas=False).kernel(entries[0])
            else:
                self._compiled[kinds] = Kernel(text, name, entries[0])
        return self._compiled[kinds]


class _OnGrid:
    def __init__(self, kernel: NumbaKernel, shape) -> None:
        self._kernel, self._shape = kernel, shape

    def bind(self, *arguments: Any) -> Launch:
        """Returns a launch to run, score, study or verify."""
        kernel = self._kernel.compile(*arguments)
        return kernel[self._shape].bind(*(part for argument in arguments for part in _flat(argument)))

    def __call__(self, *arguments: Any) -> Run:
        return self.bind(*arguments).run()


def kernel(function=None, *, gpu: str = "sm_80", passes: str = "", **options: Any):
    """Makes a kernel on the emulator from a Python function, rewritten by `passes`; also as a decorator."""
    if function is None:
        return lambda one: kernel(one, gpu=gpu, passes=passes, **options)
    return NumbaKernel(function, gpu, passes, options)
