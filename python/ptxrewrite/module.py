"""A module of PTX: its contents, and passes over it."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Callable, Dict, List, Sequence, Tuple, Union

from . import _core
from .emulator import Kernel
from .rewrite import _options, _pipeline_of


class Module:
    """PTX as read. Its kernels are launched as `module["name"][grid, block](...)`.

    >>> from ptxrewrite import EXAMPLE
    >>> module = Module.parse(EXAMPLE, "saxpy.ptx")
    >>> module.version, module.targets
    ((7, 0), ['sm_70'])
    >>> [instruction.opcode for instruction in module.functions[0].instructions][-3:]
    ['fma', 'st', 'ret']
    """

    def __init__(self, core: _core.Module, source: str) -> None:
        self._core = core
        self._source = source  # the text that diagnostics' lines refer to; the printed text once passes have run
        self._kernels: Dict[str, Kernel] = {}

    @classmethod
    def parse(cls, text: str, name: str = "<text>") -> Module:
        """Reads PTX. Raises PtxError, whose diagnostics have line and column.

        >>> try:
        ...     Module.parse(".version 7.0\\n.target sm_70\\nwrong", "x.ptx")
        ... except ValueError as error:
        ...     print(error.diagnostics[0].line, error.diagnostics[0].column)
        3 1
        """
        return cls(_core.Module.parse(text, name), text)

    @classmethod
    def load(cls, path: Union[str, Path]) -> Module:
        """Reads a file of PTX."""
        return cls.parse(Path(path).read_bytes().decode("utf-8", "surrogateescape"), str(path))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def version(self) -> Tuple[int, int]:
        return self._core.version

    @property
    def targets(self) -> List[str]:
        return self._core.targets

    @property
    def functions(self) -> List[_core.Function]:
        """Kernels and device functions in the order of the text. They are valid until passes run over the module."""
        return self._core.functions

    @property
    def text(self) -> str:
        """The module as PTX."""
        return self._core.text

    def function(self, name: str) -> _core.Function:
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = Kernel(self._source, self.name, name)
        return self._kernels[name]

    def apply(self, passes: Union[str, Callable, Sequence[Union[str, Callable]]], *, form: str = "legal",
              kernels: str = "*", assume: Sequence[str] = ()) -> dict:
        """Runs passes over the module, in place: names with options, or Python functions that take a function in SSA
        form and a context (see register_pass). Returns the report: remarks, ledger, statistics, times.

        >>> from ptxrewrite import EXAMPLE
        >>> def count_loads(function, context):
        ...     context.count("loads", sum(one.opcode == "ld" for one in function.instructions))
        >>> Module.parse(EXAMPLE).apply(count_loads)["statistics"]
        {'loads': 6}
        """
        self._kernels.clear()
        report = _core.apply(self._core, _options(_pipeline_of(passes), form, "", kernels, assume, False, True))
        self._source = self.text
        return json.loads(report)

    def __repr__(self) -> str:
        return f"<ptxrewrite.Module {self.name}>"
