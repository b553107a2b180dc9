"""A Dask cluster of two workers, one of which is killed during the run: the same table, nothing lost or duplicated."""
import os
import signal
import tempfile

from distributed import Client, LocalCluster

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
