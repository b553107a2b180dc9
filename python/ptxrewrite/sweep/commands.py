"""Sweeps of a program: a fuzzer by seeds, a script by files. Each point is one run of it.

    [sweep]
    tool = "command"
    [command]
    run = ["../build/release/tests/fuzz/fuzz_rewrites", "--first", "{first}", "--count", "{count}"]
    seeds = { first = 1, count = 5000, shard = 100 }    # {first} and {count}: 50 points
    # files = "corpus/**/*.ptx"                         # or {file}: a point a file
    seconds = 600                                       # that a run may take; none: as long as it likes

Paths are relative to the sweep file's folder, in which the program runs; {python} is the worker's interpreter. Exit code
0 is "ok" with the last line of standard output as `result`, 77 is "ok" and "skipped"; all else is a failure, with the end
of what the program said as `error`.
"""
from __future__ import annotations

import glob
import os
import signal
import string
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from ..diagnostics import PtxError

TABLE = {"run", "seeds", "files", "seconds"}
SEEDS = {"first", "count", "shard"}
EXIT_SKIPPED = 77
_MOST_OUTPUT = 4000  # characters of it in a row


def complaint_about(table: Dict[str, Any]) -> str:
    """Returns the error in a [command] table, or an empty string."""
    for known, names, what in ((TABLE, table, "[command]"), (SEEDS, table.get("seeds", {}), "seeds")):
        unknown = sorted(set(names) - known)
        if unknown:
            return f"{what}: there is no '{unknown[0]}'; there are: {', '.join(sorted(known))}"
    words = table.get("run")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return "[command]: run is missing: a list of words"
    if ("seeds" in table) == ("files" in table):
        return "[command]: either seeds or files says which points there are"
    if "seeds" in table and not all(isinstance(table["seeds"].get(name), int) and table["seeds"][name] > 0
                                    for name in ("count", "shard")):
        return "seeds: count and shard are numbers from 1 on"
    values = {"python": "", **({"first": 0, "count": 0} if "seeds" in table else {"file": ""})}
    for word in words:
        try:
            names = {name for _, name, _, _ in string.Formatter().parse(word) if name is not None}
        except ValueError as error:
            return f"run: '{word}': {error}"
        if not names <= set(values):
            return f"run: '{word}': there is no {{{sorted(names - set(values))[0]}}}; there are: {', '.join(values)}"
    return ""


def shards(table: Dict[str, Any], folder: Path) -> Iterator[Tuple[str, List[str]]]:
    """Returns name and words of each point. {python} is not replaced: workers have their own."""
    if "files" in table:
        names = sorted(glob.glob(table["files"], root_dir=folder, recursive=True)) or [table["files"]]
        for name in names:
            yield name, [word.format(file=name, python="{python}") for word in table["run"]]
        return
    seeds = table["seeds"]
    first, end = seeds.get("first", 1), seeds.get("first", 1) + seeds["count"]
    for begin in range(first, end, seeds["shard"]):
        count = min(seeds["shard"], end - begin)
        yield f"seeds {begin} to {begin + count - 1}", [word.format(first=begin, count=count, python="{python}")
                                                       for word in table["run"]]


def run_command(words: List[str], folder: str, seconds: float) -> Dict[str, Any]:
    """Returns the columns of the row. Raises PtxError if the command fails."""
    words = [sys.executable if word == "{python}" else word for word in words]
    try:
        # In its own session, so that processes that it has started end with it.
        child = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        raise PtxError(f"{words[0]}: {error.strerror}") from None
    try:
        output = child.communicate(timeout=seconds or None)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output = child.communicate()[0].decode("utf-8", "replace")
        raise PtxError(f"took longer than {seconds:g} s: {output[-_MOST_OUTPUT:]}") from None
    if child.returncode == EXIT_SKIPPED:
        return {"result": "skipped", "report": output[-_MOST_OUTPUT:]}
    if child.returncode != 0:
        how = f"signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        raise PtxError(f"{how}: {output[-_MOST_OUTPUT:]}")
    lines = output.strip().splitlines()
    return {"result": lines[-1] if lines else "", "report": output[-_MOST_OUTPUT:]}
