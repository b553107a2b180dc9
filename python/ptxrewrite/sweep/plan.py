"""From sweep.toml to points, and the keys of points."""
from __future__ import annotations

import functools
import glob
import hashlib
import importlib
import itertools
import json
import os
import string
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from .. import _core
from ..diagnostics import PtxError
from . import commands

TOOLS = {  # with the allowed options of [options]
    "score": {"form", "darsie", "regless", "exact", "run_ptxas"},
    "study": {"only", "sample"},
    "verify": {"form", "given_shapes"},
    "prove": {"form", "effort"},
    "run": {"check", "fuel"},
    "command": set(),
}
TABLES = {
    "sweep": {"tool", "results", "retries", "modules"},
    "kernels": {"launch", "sizes", "kernels"},
    "axes": {"machines", "passes"},
}


class SweepError(ValueError):
    """An error in a sweep file."""


@dataclass(frozen=True)
class Point:
    """One point: plain data, which is sent to workers as JSON."""

    key: str
    tool: str
    name: str  # of the launch file, as in the sweep file
    launch: str  # its path for workers
    size: str
    kernels: str
    machine: str
    passes: str
    parameters: Dict[str, Any] = field(default_factory=dict)
    options: Dict[str, Any] = field(default_factory=dict)
    modules: Tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Point:
        values = json.loads(text)
        return cls(**{**values, "modules": tuple(values["modules"])})


def _hash_of(*parts: bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()


@functools.lru_cache(maxsize=None)
def tool_hash() -> str:
    """Hash of the extension module and of this package's code that makes rows."""
    here = Path(__file__).parent
    return _hash_of(Path(_core.__file__).read_bytes(), (here / "point.py").read_bytes())


@functools.lru_cache(maxsize=None)
def _command_tool_hash() -> str:
    here = Path(__file__).parent
    return _hash_of((here / "point.py").read_bytes(), (here / "commands.py").read_bytes())


@functools.lru_cache(maxsize=None)
def assembler() -> str:
    """The release of ptxas, without its path, which is each machine's own."""
    return _core.ptxas().split(" (")[0]


@functools.lru_cache(maxsize=None)
def file_hash(path: str) -> str:
    return _hash_of(Path(path).read_bytes())


@functools.lru_cache(maxsize=4096)
def _content_hash(launch: str, size: str, kernels: str) -> str:
    """Hash of a launch file, its module, and all files that it names. If one cannot be read, only its text counts: the
    point then has a row with the error."""
    text = file_hash(launch)
    try:
        read = _core.LaunchInput.from_file(launch, size, "", "", kernels)
    except PtxError:
        return _hash_of(text.encode())
    files = [file_hash(path) for path in read.files if Path(path).is_file()]
    return _hash_of(text.encode(), read.ptx_text.encode("utf-8", "surrogateescape"), "".join(files).encode())


def _machine_hash(machine: str) -> str:
    return machine if not machine.endswith(".toml") or not Path(machine).is_file() else file_hash(machine)


def _names_in(text: str) -> List[str]:
    return sorted({name for _, name, _, _ in string.Formatter().parse(text) if name})


def _unknown(table: Dict[str, Any], known, what: str) -> None:
    for name in table:
        if name not in known:
            raise SweepError(f"{what}: there is no '{name}'; there are: {', '.join(sorted(known))}")


class Sweep:
    """A sweep file. Paths in it are relative to its folder."""

    def __init__(self, document: Dict[str, Any], folder: Path) -> None:
        _unknown(document, {*TABLES, "parameters", "options", "command"}, "sweep file")
        self.folder = folder
        settings = document.get("sweep", {})
        _unknown(settings, TABLES["sweep"], "[sweep]")
        self.tool = settings.get("tool", "score")
        if self.tool not in TOOLS:
            raise SweepError(f"tool: there is no '{self.tool}'; there are: {', '.join(TOOLS)}")
        self.results = folder / settings.get("results", "results")
        self.retries = int(settings.get("retries", 2))
        self.modules = tuple(str(folder / name) for name in settings.get("modules", []))
        self.options = document.get("options", {})
        _unknown(self.options, TOOLS[self.tool], f"[options] of {self.tool}")
        self.parameters: Dict[str, List[Any]] = document.get("parameters", {})
        axes = document.get("axes", {})
        _unknown(axes, TABLES["axes"], "[axes]")
        self.machines = axes.get("machines", ["h200"])
        self.passes = axes.get("passes", [""])
        self.kernels = document.get("kernels", [])
        self.command = document.get("command", {})
        if (self.tool == "command") != bool(self.command):
            raise SweepError("[command] and tool = \"command\" go together")
        if self.command:
            self._check_command(document)
            return
        for table in self.kernels:
            _unknown(table, TABLES["kernels"], "[[kernels]]")
        if not self.kernels:
            raise SweepError("[[kernels]] is missing: launch = \"FILE\", a file or a pattern of files")
        for text in self.passes:
            for name in _names_in(text):
                if name not in self.parameters:
                    raise SweepError(f"passes: {{{name}}} in '{text}' is not in [parameters]")

    def _check_command(self, document: Dict[str, Any]) -> None:
        for name in ("kernels", "axes", "parameters"):
            if name in document:
                raise SweepError(f"{name}: a command has none")
        complaint = commands.complaint_about(self.command)
        if complaint:
            raise SweepError(complaint)

    @classmethod
    def load(cls, path) -> Sweep:
        tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
        path = Path(path)
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SweepError(f"{path}: {error}") from None
        try:
            return cls(document, path.resolve().parent)
        except SweepError as error:
            raise SweepError(f"{path}: {error}") from None

    def _launches(self) -> Iterator[Tuple[str, str, str]]:
        for table in self.kernels:
            pattern = str(self.folder / table["launch"])
            files = sorted(glob.glob(pattern)) or [pattern]
            for path, size in itertools.product(files, table.get("sizes", [""])):
                yield path, size, table.get("kernels", "*")

    def _pipelines(self) -> List[Tuple[str, Dict[str, Any]]]:
        """Texts of pipelines with the parameters that they use."""
        pipelines = {}
        for text in self.passes:
            names = _names_in(text)
            for values in itertools.product(*(self.parameters[name] for name in names)):
                chosen = dict(zip(names, values))
                pipelines[text.format(**chosen)] = chosen
        return list(pipelines.items())

    def _command_points(self) -> Iterator[Point]:
        """Keys include the words, and the contents of the files among them: program, scripts, inputs."""
        limit = float(self.command.get("seconds", 0))
        for name, words in commands.shards(self.command, self.folder):
            paths = [self.folder / word for word in words]
            described = [file_hash(str(path)) if path.is_file() else word for word, path in zip(words, paths)]
            key = _hash_of(*(text.encode() for text in [_command_tool_hash(), str(limit), *described]))[:32]
            # A name with a folder in it, also "./x", is a file; other names are looked up in PATH.
            program = str(paths[0]) if "/" in words[0] else words[0]
            options = {"words": [program, *words[1:]], "folder": str(self.folder), "seconds": limit}
            yield Point(key, "command", name, "", "", "", "", "", {}, options, ())

    def points(self) -> Iterator[Point]:
        """Yields every point once, ordered by launch, so that workers reuse files that they have read."""
        if self.tool == "command":
            yield from self._command_points()
            return
        seen = set()
        modules = [file_hash(path) for path in self.modules]
        options = json.dumps(self.options, sort_keys=True)
        pipelines = self._pipelines()
        asks_ptxas = self.tool == "score" and self.options.get("run_ptxas", True)
        release = assembler() if asks_ptxas else ""
        machines = self.machines if self.tool in ("score", "study") else [""]
        for launch, size, kernels in self._launches():
            content = _content_hash(launch, size, kernels) if Path(launch).is_file() else launch
            for machine, (passes, parameters) in itertools.product(machines, pipelines):
                described = [tool_hash(), self.tool, content, size, kernels, _machine_hash(machine), passes, options,
                             release, *modules]
                key = _hash_of(*(text.encode() for text in described))[:32]
                if key in seen:
                    continue
                seen.add(key)
                path = str(self.folder / machine) if machine.endswith(".toml") else machine
                name = os.path.relpath(launch, self.folder)
                yield Point(key, self.tool, name, launch, size, kernels, path, passes, parameters, self.options, self.modules)
