"""Kernels on the emulator, with NumPy arrays as their memory."""
from __future__ import annotations

import html
import json
import struct
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy

from . import _core
from .diagnostics import Diagnostic, PtxError

Size = Union[int, Sequence[int]]
_FORMATS = {"f32": "<f", "f64": "<d"}
_HALVES = {"f16": "<e", "b16": "<H"}


def _dimensions(size: Size) -> Tuple[int, int, int]:
    numbers = (size, ) if isinstance(size, (int, numpy.integer)) else tuple(size)
    if not 1 <= len(numbers) <= 3 or any(not 0 < int(one) < 2**32 for one in numbers):
        raise ValueError(f"one to three positive numbers are wanted, not {size!r}")
    x, y, z = (tuple(int(one) for one in numbers) + (1, 1))[:3]
    return x, y, z


class Run:
    """The result of a launch. `counters` has blocks, warp and thread instructions; `functions` has them by instruction."""

    def __init__(self, report: Dict[str, Any], findings: Tuple[Diagnostic, ...], buffers: Dict[str, numpy.ndarray]):
        self.report = report
        self.findings = findings
        self.printed: str = report.get("printed", "")
        self.buffers = buffers

    @property
    def counters(self) -> Dict[str, int]:
        """Totals of all launches."""
        names = ("blocks", "warp_instructions", "thread_instructions")
        return {name: sum(launch.get(name, 0) for launch in self.report["launches"]) for name in names}

    @property
    def entries(self) -> List[str]:
        """The kernels that ran: a variant, or the original."""
        return [launch.get("entry", launch["kernel"]) for launch in self.report["launches"]]

    @property
    def functions(self) -> List[Dict[str, Any]]:
        """Executions, lanes and memory transactions of each instruction; with counters=True."""
        return self.report.get("functions", [])

    def __repr__(self) -> str:
        counters = self.counters
        return f"<ptxrewrite.Run {counters['blocks']} blocks, {counters['warp_instructions']} warp instructions>"


class Score:
    """The time of kernels on a machine, by the timing model."""

    def __init__(self, texts: Tuple[str, str, str]) -> None:
        self.report: Dict[str, Any] = json.loads(texts[0])
        self.html, self.text = texts[1:]

    @property
    def versions(self) -> List[Dict[str, Any]]:
        """The original, then the result of each pipeline."""
        return self.report["versions"]

    def rows(self) -> List[Dict[str, Any]]:
        """One row for each version and kernel; pandas.DataFrame(score.rows()) makes a table of them."""
        return [{"version": version["version"], **{key: value for key, value in kernel.items()
                                                 if isinstance(value, (str, int, float))}}
                for version in self.versions for kernel in version["kernels"]]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:40em;border:0"></iframe>'


class Launch:
    """A launch with its data, which can be run, scored, studied and verified."""

    def __init__(self, core: _core.LaunchInput, name: str, arrays: Sequence[Tuple[str, numpy.ndarray]] = ()) -> None:
        self._core = core
        self._name = name
        self._arrays = dict(arrays)

    @classmethod
    def from_file(cls, path: str, *, size: str = "", target: str = "", ptx: str = "", kernels: str = "*") -> Launch:
        """A launch file (docs/launch_files.md); `ptx` replaces the module that it names."""
        return cls(_core.LaunchInput.from_file(str(path), size, target, str(ptx), kernels), str(path))

    @property
    def ptx(self) -> str:
        """The module's text."""
        return self._core.ptx_text

    def run(self, *, check: bool = False, counters: bool = False, host_threads: int = 0, fuel: int = 0,
            gpu: str = "") -> Run:
        """Runs on the emulator. `check`: also looks for races and uninitialised reads, Run.findings; `fuel`: warp
        instructions that a block may execute. Raises KernelFault."""
        report, findings, buffers = self._core.run(check, counters, host_threads, fuel, gpu)
        made = {}
        for name, kind, memory in buffers:
            array = self._arrays.get(name)
            if array is None:
                made[name] = memory.view(_dtype_of(kind))
                continue
            made[name] = array
            if array.flags.writeable:
                numpy.copyto(array, memory.view(array.dtype).reshape(array.shape))
        return Run(json.loads(report), findings, made)

    def score(self, gpu: str = "h200", *, passes: Sequence[str] = (), form: str = "legal", darsie: bool = False,
              regless: bool = False, exact: bool = False, run_ptxas: bool = True) -> Score:
        """Time, CPI stack and energy on a machine, of the original and of each pipeline's result."""
        passes = [passes] if isinstance(passes, str) else list(passes)
        return Score(self._core.score(self._name, gpu, passes, form, darsie, regless, exact, run_ptxas))

    def study(self, gpu: str = "titanv", *, only: Sequence[str] = (), sample: Optional[int] = None) -> Dict[str, Any]:
        """The redundant part of the run, and the part that remains with the papers' techniques."""
        return json.loads(self._core.study(self._name, gpu, list(only), sample))

    def verify(self, passes: Union[str, Sequence[str]], *, form: str = "legal",
               given_shapes: bool = False) -> List[Dict[str, Any]]:
        """Original against rewritten on the same data, bit for bit, in several launch shapes: one row per pipeline,
        whose "result" is identical, unchanged, differs or not run."""
        cases = [(one, form) for one in ([passes] if isinstance(passes, str) else passes)]
        return json.loads(self._core.verify(cases, given_shapes))["cases"]


class Kernel:
    """A kernel that is launched with arrays and numbers, as in CUDA: stores of the kernel change the arrays.

    >>> import numpy
    >>> from ptxrewrite import EXAMPLE, Module
    >>> saxpy = Module.parse(EXAMPLE)["saxpy"]
    >>> x = numpy.arange(100, dtype=numpy.float32)
    >>> y = numpy.ones(100, dtype=numpy.float32)
    >>> run = saxpy[4, 32](x, y, 2.0, 100)
    >>> y[:4].tolist(), run.counters["blocks"]
    ([1.0, 3.0, 5.0, 7.0], 4)
    """

    def __init__(self, text: str, name: str, kernel: str, side_file: str = "") -> None:
        self.name = kernel
        self._text, self._module_name, self._side_file = text, name, side_file
        for function in _core.Module.parse(text, name).functions:
            if function.is_entry and function.has_body and function.name == kernel:
                self.parameters = function.parameters
                break
        else:
            raise KeyError(f"{name} has no kernel {kernel!r}")

    def __getitem__(self, shape: Tuple[Any, ...]) -> Configured:
        """Grid, block and bytes of dynamic shared memory."""
        if not isinstance(shape, tuple) or not 2 <= len(shape) <= 3:
            raise TypeError("a launch is kernel[grid, block] or kernel[grid, block, shared]")
        shared = int(shape[2]) if len(shape) == 3 else 0
        return Configured(self, _dimensions(shape[0]), _dimensions(shape[1]), shared)

    def __repr__(self) -> str:
        return f"<ptxrewrite.Kernel {self.name}>"


class Configured:
    """A kernel with grid and block. Calling it runs it; `bind` gives a Launch to score, study or verify."""

    def __init__(self, kernel: Kernel, grid: Tuple[int, int, int], block: Tuple[int, int, int], shared: int) -> None:
        self._kernel, self._grid, self._block, self._shared = kernel, grid, block, shared

    def bind(self, *arguments: Any, cooperative: bool = False) -> Launch:
        kernel = self._kernel
        if len(arguments) != len(kernel.parameters):
            raise TypeError(f"{kernel.name} takes {len(kernel.parameters)} arguments, not {len(arguments)}")
        memory = _Memory()
        packed = [memory.argument(value, *parameter) for value, parameter in zip(arguments, kernel.parameters)]
        core = _core.LaunchInput.from_text(kernel._text, kernel._module_name, kernel._side_file)
        core.set_launch(kernel.name, self._grid, self._block, self._shared, cooperative, memory.buffers(), packed)
        return Launch(core, kernel.name, memory.arrays)

    def __call__(self, *arguments: Any, check: bool = False, counters: bool = False, host_threads: int = 0,
                 fuel: int = 0, cooperative: bool = False) -> Run:
        launch = self.bind(*arguments, cooperative=cooperative)
        return launch.run(check=check, counters=counters, host_threads=host_threads, fuel=fuel)


class _Memory:
    """The arrays of one launch: an array that is passed twice is one buffer."""

    def __init__(self) -> None:
        self.arrays: List[Tuple[str, numpy.ndarray]] = []

    def buffers(self) -> List[Tuple[str, str, numpy.ndarray]]:
        return [(name, _type_of(array), numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8))
                for name, array in self.arrays]

    def argument(self, value: Any, name: str, kind: str, size: int, is_array: bool):
        if isinstance(value, numpy.ndarray) and not (is_array and value.nbytes == size and not value.flags.writeable):
            if size != 8 and size != 4:
                raise TypeError(f"parameter {name} takes {size} bytes: it is no pointer")
            return "buffer", self._place(name, value), 0, "", b""
        if is_array or isinstance(value, (bytes, bytearray, numpy.void)):
            data = value.tobytes() if isinstance(value, (numpy.ndarray, numpy.void)) else bytes(value)
            if len(data) != size:
                raise TypeError(f"parameter {name} takes {size} bytes, not {len(data)}")
            return "bytes", 0, 0, "", data
        return "bytes", 0, 0, kind, _scalar(value, name, kind, size)

    def _place(self, name: str, array: numpy.ndarray) -> int:
        for index, (_, known) in enumerate(self.arrays):
            if known is array:
                return index
            if numpy.may_share_memory(known, array) and (known.flags.writeable or array.flags.writeable):
                raise ValueError(f"the arrays of {self.arrays[index][0]} and {name} share memory: pass the same array")
        if array.dtype.hasobject:
            raise TypeError(f"parameter {name}: an array of Python's objects")
        self.arrays.append((name, array))
        return len(self.arrays) - 1


def _scalar(value: Any, name: str, kind: str, size: int) -> bytes:
    """A number in the layout of the parameter's type; numbers that do not fit raise an exception."""
    if value is None:
        return bytes(size)
    try:
        if isinstance(value, (float, numpy.floating)):
            if kind in _FORMATS or kind == "f16":
                return struct.pack({**_FORMATS, **_HALVES}[kind], float(value))
            if kind in ("b32", "b64"):  # numba and others declare floats as bits
                return struct.pack("<f" if kind == "b32" else "<d", float(value))
            raise TypeError(f"parameter {name} is of type .{kind}: {value!r} is no whole number")
        number = int(value)
        if kind in _FORMATS:
            return struct.pack(_FORMATS[kind], float(number))
        return number.to_bytes(size, "little", signed=number < 0)
    except (OverflowError, struct.error):
        raise OverflowError(f"parameter {name}: {value!r} does not fit .{kind}") from None


def _type_of(array: numpy.ndarray) -> str:
    kinds = {"f": "f", "i": "s", "u": "u"}
    kind = kinds.get(array.dtype.kind)
    width = array.dtype.itemsize
    return f"{kind}{8 * width}" if kind and width in (1, 2, 4, 8) and (kind != "f" or width > 1) else "b8"


def _dtype_of(kind: str) -> numpy.dtype:
    letters = {"f": "f", "s": "i", "u": "u", "b": "u"}
    try:
        return numpy.dtype(f"{letters[kind[0]]}{int(kind[1:]) // 8}")
    except (KeyError, ValueError, TypeError):
        return numpy.dtype(numpy.uint8)


__all__ = ["Configured", "Kernel", "Launch", "PtxError", "Run", "Score"]
