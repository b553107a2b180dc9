"""Runs the points of a sweep that have no rows yet."""
from __future__ import annotations

import sys
import time
from typing import Any, Callable, Dict, Iterable, List, Set, TextIO

from .plan import Point, Sweep
from .schedulers import scheduler_named
from .store import Store


class Progress:
    """One line on a terminal, which is updated; elsewhere one line every ten seconds."""

    def __init__(self, total: int, stream: TextIO = sys.stderr) -> None:
        self._total, self._stream = total, stream
        self._done = self._failed = 0
        self._started = self._last = time.monotonic()

    def add(self, rows: Iterable[Dict[str, Any]]) -> None:
        statuses = {row["key"]: row["status"] for row in rows}
        self._done += len(statuses)
        self._failed += sum(status != "ok" for status in statuses.values())
        now = time.monotonic()
        if now - self._last >= (0.2 if self._stream.isatty() else 10):
            self._last = now
            self.show("\r" if self._stream.isatty() else "\n")

    def finish(self, statuses: Dict[str, str], keys: Set[str]) -> None:
        """Counts by the table, because jobs elsewhere write their own parts."""
        self._done = sum(key in statuses for key in keys)
        self._failed = sum(statuses.get(key, "ok") != "ok" for key in keys)
        self.show()

    def show(self, end: str = "\n") -> None:
        seconds = max(time.monotonic() - self._started, 1e-9)
        rate = self._done / seconds
        left = (self._total - self._done) / rate if rate else 0
        self._stream.write(f"{self._done} of {self._total} points, {self._failed} failed, {rate:.1f}/s, "
                           f"{left:.0f} s left   {end}")
        self._stream.flush()


def run(sweep: Sweep, scheduler: str = "local", *, retry_failed: bool = False, workers: int = 0, chunk: int = 0,
        progress: bool = True, on_points: Callable[[List[Point]], None] = lambda points: None):
    """Runs points without rows; returns the whole table. Rows are stored as they arrive, so that an interrupted sweep
    continues where it was."""
    store = Store(sweep.results)
    points = list(sweep.points())
    done = store.done(retry_failed=retry_failed)
    todo = [point for point in points if point.key not in done]
    on_points(todo)
    shown = Progress(len(todo))
    chunk = chunk or (16 if len(todo) > 500 else 1)  # Dask needs some milliseconds for each task
    if progress and len(points) > len(todo):
        print(f"{len(points) - len(todo)} of {len(points)} points are there already", file=sys.stderr)
    try:
        for rows in scheduler_named(scheduler)(todo, store=store, retries=sweep.retries, workers=workers, chunk=chunk):
            store.add(rows)
            if progress:
                shown.add(rows)
    finally:
        store.flush()
    keys = {point.key for point in points}
    table = store.finish()
    table = table.filter([key in keys for key in table["key"].to_pylist()])
    if progress and todo:
        shown.finish(dict(zip(table["key"].to_pylist(), table["status"].to_pylist())), {point.key for point in todo})
    return table
