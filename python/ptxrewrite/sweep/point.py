"""The rows of a point. Runs on workers."""
from __future__ import annotations

import functools
import json
import os
import runpy
import socket
import time
from typing import Any, Dict, List

from .. import rewrite
from ..diagnostics import PtxError
from ..emulator import Launch
from .commands import run_command
from .plan import Point

Row = Dict[str, Any]
# Columns that differ from run to run: where and how fast a row was computed.
CIRCUMSTANCES = ("wall_seconds", "worker")


@functools.lru_cache(maxsize=64)
def _launch(path: str, size: str, kernels: str) -> Launch:
    return Launch.from_file(path, size=size, kernels=kernels)


@functools.lru_cache(maxsize=None)
def _load_module(path: str) -> None:
    """A file of Python with passes, which register themselves."""
    runpy.run_path(path)


def _score(point: Point) -> List[Row]:
    passes = [point.passes] if point.passes else []
    score = _launch(point.launch, point.size, point.kernels).score(point.machine, passes=passes, **point.options)
    rows = []
    version = score.versions[-1]
    for kernel in version["kernels"]:
        row = {"kernel": kernel["kernel"], "launches": kernel["launches"]}
        for name in ("rewritten_launches", "registers", "resident_warps", "warp_instructions", "clocks", "seconds",
                     "cpi", "dram_bytes", "l2_bytes"):
            row[name] = float(kernel[name]) if kernel.get(name) is not None else None
        for name, clocks in kernel.get("stack_clocks", {}).items():
            row[f"stack.{name}"] = float(clocks)
        energy = kernel.get("energy") or {}
        if energy:
            row["energy_set"] = next(iter(energy))
            row["joule"] = float(energy[row["energy_set"]]["joule"])
        rows.append(row)
    return rows


def _study(point: Point) -> List[Row]:
    if point.passes:
        raise PtxError("a study is of the original: leave out passes")
    report = _launch(point.launch, point.size, point.kernels).study(point.machine, **point.options)
    return [{"kernel": "*", "report": json.dumps(report)}]


def _verify(point: Point) -> List[Row]:
    [case] = _launch(point.launch, point.size, point.kernels).verify(point.passes, **point.options)
    return [{"kernel": "*", "result": case["result"], "shapes": float(case["shapes"]),
             "fallbacks": float(case["fallbacks"]), "report": json.dumps(case)}]


def _prove(point: Point) -> List[Row]:
    proofs = rewrite.prove(_launch(point.launch, point.size, point.kernels).ptx, point.passes, **point.options)
    return [{"kernel": proof.kernel, "result": proof.verdict, "report": json.dumps(proof.report)} for proof in proofs]


def _run(point: Point) -> List[Row]:
    run = _launch(point.launch, point.size, point.kernels).run(**point.options)
    return [{"kernel": "*", "result": "findings" if run.findings else "clean",
             **{name: float(count) for name, count in run.counters.items()}}]


def _command(point: Point) -> List[Row]:
    return [{"kernel": "*", **run_command(**point.options)}]


_TOOLS = {"command": _command, "score": _score, "study": _study, "verify": _verify, "prove": _prove, "run": _run}


def _described(point: Point) -> Row:
    return {"key": point.key, "tool": point.tool, "launch": point.name, "size": point.size,
            "machine": point.machine, "passes": point.passes,
            **{f"parameter.{name}": str(value) for name, value in point.parameters.items()}}


def failed(point: Point, status: str, error: str, diagnostics: str = "[]") -> Row:
    """The row of a point without a result. "failed": by its own fault; "lost": its workers died."""
    return {**_described(point), "kernel": "*", "status": status, "error": error, "diagnostics": diagnostics}


def run_point(point: Point) -> List[Row]:
    """At least one row. Inputs that are wrong and kernels that fault are rows, too."""
    started = time.perf_counter()
    try:
        for path in point.modules:
            _load_module(path)
        rows = [{**_described(point), "status": "ok", **row} for row in _TOOLS[point.tool](point)]
        rows = rows or [{**_described(point), "status": "ok", "kernel": "*"}]
    except PtxError as error:
        diagnostics = json.dumps([one._asdict() for one in error.diagnostics])
        rows = [failed(point, "failed", str(error), diagnostics)]
    except Exception as error:  # a defect, or a pass of the user's own
        rows = [failed(point, "failed", f"{type(error).__name__}: {error}")]
    worker = f"{socket.gethostname()}:{os.getpid()}"
    return [{**row, "wall_seconds": time.perf_counter() - started, "worker": worker} for row in rows]


def run_points(points: List[str]) -> List[Row]:
    """Runs points, given as JSON, one after another: one task of a worker."""
    return [row for text in points for row in run_point(Point.from_json(text))]
