"""A Dask cluster of two workers, one of which is killed during the run: the same table, nothing lost or duplicated."""
import os
import signal
import tempfile
from concurrent.futures import CancelledError
from unittest import mock

from distributed import Client, KilledWorker, LocalCluster

from ptxrewrite.sweep import Store, run, schedulers
from sweep_test import rows_of, sweep_in


def test_worker_killed():
    with tempfile.TemporaryDirectory() as folder:
        sweep = sweep_in(folder)
        points = list(sweep.points())
        expected = rows_of(run(sweep, progress=False))
        store = Store(os.path.join(folder, "cluster"))
        received = []
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            victims = list(client.run(os.getpid).values())
            for rows in schedulers._on_client(client, points, retries=2, chunk=3):
                if len(received) == 3:
                    os.kill(victims[0], signal.SIGKILL)
                received.append(rows)
                store.add(rows)
            workers = {row["worker"].rpartition(":")[2] for rows in received for row in rows}
        keys = [key for rows in received for key in dict.fromkeys(row["key"] for row in rows)]
        assert len(keys) == len(set(keys)) == len(points), (len(keys), len(set(keys)), len(points))
        assert rows_of(store.finish()) == expected
        print(f"{len(points)} points by processes {workers}, of which {victims[0]} was killed")
        assert workers - {str(victims[0])}


class AnnouncedFuture:
    """A future of Dask as as_completed returns it. If its worker has died since, it is pending again: exception() then
    waits and returns None, result() waits and returns the rows of another worker."""

    def __init__(self, key, status, outcome):
        self.key, self.status, self._outcome = key, status, outcome

    def exception(self):
        return self._outcome if isinstance(self._outcome, Exception) else None

    def result(self):
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class ScriptedClient:
    """Hands the outcomes of `script` to the tasks in their order; None is the task's own result."""

    def __init__(self, script):
        self._script = list(script)

    def nthreads(self):
        return {"worker": 1}

    def submit(self, function, points, *, key, **ignored):
        status, outcome = self._script.pop(0) if self._script else ("finished", None)
        return AnnouncedFuture(key, status, function(points) if outcome is None else outcome)


class Announced(list):
    """as_completed: yields what is added, also while it is read."""

    add = list.append


def test_outcomes_of_futures():
    with tempfile.TemporaryDirectory() as folder:
        points = list(sweep_in(folder).points())[:6]
        client = ScriptedClient([("pending", None), ("error", KilledWorker("task", None, [])), ("cancelled", CancelledError()),
                                 ("error", ValueError("out of luck")), ("finished", None), ("finished", None)])
        with mock.patch("distributed.as_completed", Announced):
            rows = [row for rows in schedulers._on_client(client, points, retries=2, chunk=1) for row in rows]
        statuses = {row["key"]: (row["status"], row.get("error")) for row in rows}
        assert len(statuses) == len(points)
        wrong = {key: one for key, one in statuses.items() if one[0] != "ok"}
        assert wrong == {points[3].key: ("failed", "ValueError: out of luck")}, wrong
