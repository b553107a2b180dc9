"""Results as Parquet: part files while a sweep runs, one table at its end.

A part is written under another name and then renamed, so that every part is complete. If several parts have rows of
one point, the first is used: they are equal.
"""
from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Set

if TYPE_CHECKING:
    import pyarrow

Row = Dict[str, Any]
FIRST = ["key", "tool", "launch", "size", "machine", "passes", "kernel", "status", "error", "diagnostics"]


def _pyarrow():
    """Loaded on first use: points are listed without it, and the command names it if it is missing."""
    import pyarrow.parquet
    return pyarrow


class Store:
    def __init__(self, folder, *, most_rows: int = 2000, most_seconds: float = 10) -> None:
        _pyarrow()  # missing: known before points run
        self.folder = Path(folder)
        self.parts = self.folder / "parts"
        self.parts.mkdir(parents=True, exist_ok=True)
        self._most_rows, self._most_seconds = most_rows, most_seconds
        self._rows: List[Row] = []
        self._last = time.monotonic()

    @property
    def table_path(self) -> Path:
        return self.folder / "table.parquet"

    def done(self, *, retry_failed: bool = False) -> Set[str]:
        """Returns the keys of points that have rows. Lost points run again; failed ones if requested."""
        keys: Set[str] = set()
        again = {"lost", "failed"} if retry_failed else {"lost"}
        for part in self._files():
            columns = _pyarrow().parquet.read_table(part, columns=["key", "status"]).to_pydict()
            keys.update(key for key, status in zip(columns["key"], columns["status"]) if status not in again)
        return keys

    def add(self, rows: Iterable[Row]) -> None:
        self._rows.extend(rows)
        if len(self._rows) >= self._most_rows or time.monotonic() - self._last >= self._most_seconds:
            self.flush()

    def flush(self) -> None:
        self._last = time.monotonic()
        if not self._rows:
            return
        name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}.parquet"
        _write(_table_of(self._rows), self.parts / name)
        self._rows = []

    def _files(self) -> List[Path]:
        return sorted(self.parts.glob("*.parquet"))

    def table(self) -> pyarrow.Table:
        """Returns all rows, ordered by launch, size, machine, passes and kernel."""
        tables = [_pyarrow().parquet.read_table(part) for part in self._files()]
        if not tables:
            return _table_of([])
        rows = _pyarrow().concat_tables(tables, promote_options="default")
        keys, statuses = rows["key"].to_pylist(), rows["status"].to_pylist()
        part_of = [number for number, table in enumerate(tables) for _ in range(len(table))]
        # A result takes precedence over a failure, and a failure over a loss; among equals the first is used.
        rank = {"ok": 0, "failed": 1, "lost": 2}
        chosen: Dict[str, Any] = {}
        for key, status, part in zip(keys, statuses, part_of):
            chosen[key] = min(chosen.get(key, (9, 0)), (rank[status], part))
        kept = [number for number, (key, status, part) in enumerate(zip(keys, statuses, part_of))
                if chosen[key] == (rank[status], part)]
        return rows.take(kept).sort_by([(name, "ascending") for name in
                                        ("launch", "size", "machine", "passes", "kernel", "key")])

    def finish(self) -> pyarrow.Table:
        """Writes the remaining rows, and the table."""
        self.flush()
        table = self.table()
        _write(table, self.table_path)
        return table


def _table_of(rows: List[Row]) -> pyarrow.Table:
    pyarrow = _pyarrow()
    names = list(dict.fromkeys([*FIRST, *(name for row in rows for name in row)]))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        is_text = name in FIRST or any(isinstance(value, str) for value in values)
        columns[name] = pyarrow.array([str(value) if is_text and value is not None else value for value in values],
                                      pyarrow.string() if is_text else pyarrow.float64())
    return pyarrow.table(columns)


def _write(table: pyarrow.Table, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    _pyarrow().parquet.write_table(table, temporary, compression="zstd")
    os.replace(temporary, path)
