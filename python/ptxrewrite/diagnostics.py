"""Errors in an input, and the exceptions that report them."""
from __future__ import annotations

from typing import NamedTuple, Optional, Tuple


class Diagnostic(NamedTuple):
    """One finding about a file. Lines and columns start at 1; None if no position is known."""

    severity: str  # "note", "warning" or "error"
    file: str
    line: Optional[int]
    column: Optional[int]
    message: str
    notes: Tuple[str, ...] = ()

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{place}: {self.severity}: {self.message}" if place else f"{self.severity}: {self.message}"


class PtxError(ValueError):
    """An input that cannot be read or processed; `diagnostics` has reasons and positions."""

    diagnostics: Tuple[Diagnostic, ...] = ()

    def __reduce__(self):
        return _remade, (type(self), self.args, self.diagnostics)


class KernelFault(PtxError, RuntimeError):
    """A kernel that faulted, hung or ran out of fuel on the emulator."""


def _remade(kind, arguments, diagnostics):
    """Restores an exception that was sent to another process."""
    error = kind(*arguments)
    error.diagnostics = diagnostics
    return error
