"""Sweeps: kernels x sizes x machines x passes x parameters, on one machine or many, into one table.

    python -m ptxrewrite.sweep run sweep.toml --scheduler processes
    python -m ptxrewrite.sweep report results/ -o page.html

A point is one launch file with one size on one machine with one pipeline. Its key is a hash of everything that its
result depends on, so that a sweep continues where it stopped, and a repeated point is one row. See docs/scale.md.
"""
from .plan import Point, Sweep
from .point import run_point
from .run import run
from .store import Store

__all__ = ["Point", "Store", "Sweep", "run", "run_point"]
