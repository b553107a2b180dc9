"""Schedulers of points. Each is a function that takes points and yields lists of rows, in any order; a point whose
worker died runs again, alone in its chunk, at most `retries` times, and then becomes a row "lost"."""
from __future__ import annotations

import collections
import multiprocessing
import os
import shlex
import subprocess
import sys
import time
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Callable, Dict, Iterator, List

from .plan import Point, SweepError
from .point import Row, failed, run_point, run_points
from .store import Store

Chunk = List[Point]


def chunks_of(points: List[Point], size: int) -> Iterator[Chunk]:
    for begin in range(0, len(points), max(1, size)):
        yield points[begin:begin + max(1, size)]


class Attempts:
    """Counts the deaths of workers by point."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._deaths: Dict[str, int] = collections.Counter()

    def after_death(self, chunk: Chunk, rows: List[Row]) -> List[Chunk]:
        """Returns the points to run again, each alone, since the chunk has no results. Points that died too often go to
        `rows`."""
        again = []
        for point in chunk:
            self._deaths[point.key] += 1
            if self._deaths[point.key] > self._retries + (len(chunk) > 1):
                rows.append(failed(point, "lost", f"its worker died {self._deaths[point.key]} times"))
            else:
                again.append([point])
        return again


def local(points: List[Point], **ignored) -> Iterator[List[Row]]:
    """In this process, one after another; the emulator uses all cores."""
    for point in points:
        yield run_point(point)


def processes(points: List[Point], *, retries: int = 2, workers: int = 0, chunk: int = 1, **ignored) -> Iterator[List[Row]]:
    """A pool of processes. If one dies, the pool is restarted; the running points then run again one by one, so that a
    point that kills its process affects no others."""
    attempts = Attempts(retries)
    workers = workers or os.cpu_count() or 1
    waiting = collections.deque(chunks_of(points, chunk))
    suspects: collections.deque = collections.deque()
    spawn = multiprocessing.get_context("spawn")
    while waiting or suspects:
        source, width = (suspects, 1) if suspects else (waiting, workers)
        running: Dict[futures.Future, Chunk] = {}
        with futures.ProcessPoolExecutor(width, mp_context=spawn) as pool:
            try:
                while source or running:
                    while source and len(running) < (1 if width == 1 and source is suspects else 2 * width):
                        running[pool.submit(run_points, [one.to_json() for one in source[0]])] = source[0]
                        source.popleft()
                    done, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
                    for future in done:
                        rows = future.result()
                        del running[future]
                        yield rows
            except BrokenProcessPool:
                lost: List[Row] = []
                for one in running.values():
                    suspects.extend(attempts.after_death(one, lost))
                if lost:
                    yield lost


def _on_client(client, points: List[Point], retries: int, chunk: int) -> Iterator[List[Row]]:
    from distributed import KilledWorker, as_completed
    attempts = Attempts(retries)
    waiting = collections.deque(chunks_of(points, chunk))
    running: Dict[str, Chunk] = {}
    completed = as_completed()
    number = 0

    def submit() -> None:
        # A scheduler with a million tasks is slow: it gets some for each thread of its workers.
        nonlocal number
        threads = sum(client.nthreads().values())
        while waiting and len(running) < max(16, 4 * threads):
            one = waiting.popleft()
            number += 1
            future = client.submit(run_points, [point.to_json() for point in one], pure=False, retries=retries,
                                   key=f"points-{one[0].key}-{number}")
            running[future.key] = one
            completed.add(future)

    submit()
    for future in completed:
        one = running.pop(future.key)
        rows: List[Row] = []
        try:
            # If the worker has died since it announced the result, this waits for another worker's.
            rows = future.result()
        except (KilledWorker, futures.CancelledError):
            waiting.extend(attempts.after_death(one, rows))
        except Exception as error:  # pylint: disable=broad-except
            rows = [failed(point, "failed", f"{type(error).__name__}: {error}") for point in one]
        if rows:
            yield rows
        submit()


def dask(address: str) -> Callable:
    """The workers of a Dask scheduler; "" is a cluster on this machine."""

    def run(points: List[Point], *, retries: int = 2, workers: int = 0, chunk: int = 1, **ignored) -> Iterator[List[Row]]:
        from distributed import Client, LocalCluster
        if address:
            with Client(address) as client:
                print(f"dashboard: {client.dashboard_link}", file=sys.stderr)
                yield from _on_client(client, points, retries, chunk)
            return
        with LocalCluster(n_workers=workers or None, threads_per_worker=1, dashboard_address=":0") as cluster:
            with Client(cluster) as client:
                print(f"dashboard: {client.dashboard_link}", file=sys.stderr)
                yield from _on_client(client, points, retries, chunk)

    return run


def jobqueue(system: str) -> Callable:
    """Dask's workers as jobs of a batch system: slurm, pbs, lsf, sge ..., configured as for dask-jobqueue."""

    def run(points: List[Point], *, retries: int = 2, workers: int = 0, chunk: int = 1, **ignored) -> Iterator[List[Row]]:
        import dask_jobqueue
        from distributed import Client
        cluster_type = getattr(dask_jobqueue, f"{system.upper()}Cluster", None)
        if cluster_type is None:
            raise SweepError(f"dask-jobqueue has no {system.upper()}Cluster")
        with cluster_type() as cluster, Client(cluster) as client:
            cluster.scale(jobs=workers or 2)
            yield from _on_client(client, points, retries, chunk)

    return run


def slurm(points: List[Point], *, store: Store, workers: int = 0, retries: int = 2, **ignored) -> Iterator[List[Row]]:
    """An array of Slurm jobs that share a file system with this machine: element I takes each N-th point and writes
    its own parts. $SBATCH_* and ~/.slurm configure where they run. Points without rows at the end run again."""
    for attempt in range(retries + 1):
        if attempt:
            done = store.done()
            points = [point for point in points if point.key not in done]
        if not points:
            return
        count = min(workers or 20, len(points))
        listed = store.folder / f"points-{os.getpid()}-{attempt}.jsonl"
        listed.write_text("".join(point.to_json() + "\n" for point in points), encoding="utf-8")
        command = [sys.executable, "-m", "ptxrewrite.sweep", "shard", str(store.folder.resolve()), str(listed.resolve()),
                   "--of", str(count)]
        subprocess.run(["sbatch", "--wait", "--quiet", "--export=ALL", f"--array=0-{count - 1}",
                        f"--output={store.folder.resolve()}/slurm-%A_%a.log", "--wrap",
                        shlex.join(command) + " --index $SLURM_ARRAY_TASK_ID"], check=False)
        listed.unlink()
        _wait_for_files(store.folder)
    done = store.done()
    yield [failed(point, "lost", "its jobs ended without rows") for point in points if point.key not in done]


def _wait_for_files(folder: Path) -> None:
    """A network file system may show files late."""
    os.listdir(folder)
    time.sleep(0.1)


def shard(folder: Path, listed: Path, index: int, count: int) -> None:
    """The work of one element of the array."""
    store = Store(folder)
    with open(listed, encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number % count == index:
                store.add(run_point(Point.from_json(line)))
    store.flush()


def scheduler_named(name: str) -> Callable:
    """Accepts local, processes, dask, dask://HOST:PORT, slurm, jobqueue:SYSTEM."""
    known: Dict[str, Callable] = {"local": local, "processes": processes, "dask": dask(""), "slurm": slurm}
    if name in known:
        return known[name]
    if name.startswith("dask://"):
        return dask("tcp://" + name[len("dask://"):])
    if name.startswith("jobqueue:"):
        return jobqueue(name[len("jobqueue:"):])
    raise SweepError(f"there is no scheduler '{name}'; there are: {', '.join(known)}, dask://HOST:PORT, jobqueue:SYSTEM")
