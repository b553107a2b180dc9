"""python -m ptxrewrite.sweep: run, points, report."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .plan import Sweep, SweepError


_MOST_SHOWN = 10  # failures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ptxrewrite.sweep", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the points that have no rows yet")
    run.add_argument("sweep", help="sweep.toml")
    run.add_argument("--scheduler", default="local",
                     help="local, processes, dask, dask://HOST:PORT, slurm, jobqueue:SYSTEM")
    run.add_argument("--workers", type=int, default=0, help="processes or jobs; 0: as many as the machine has cores")
    run.add_argument("--chunk", type=int, default=0, help="points that go to a worker at once; 0: 16 of many, 1 of few")
    run.add_argument("--retry-failed", action="store_true", help="run points again that failed")
    points = commands.add_parser("points", help="show the points")
    points.add_argument("sweep")
    report = commands.add_parser("report", help="write one page with plots")
    report.add_argument("results", help="the folder of the results")
    report.add_argument("-o", "--output", default="sweep.html")
    shard = commands.add_parser("shard", help="one element of an array of jobs")
    shard.add_argument("results")
    shard.add_argument("points")
    shard.add_argument("--index", type=int, required=True)
    shard.add_argument("--of", type=int, required=True)
    return parser


def _run(options: argparse.Namespace) -> int:
    from .run import run
    sweep = Sweep.load(options.sweep)
    table = run(sweep, options.scheduler, retry_failed=options.retry_failed, workers=options.workers,
                chunk=options.chunk)
    failures = [row for row in table.select(["launch", "machine", "passes", "status", "error"]).to_pylist()
                if row["status"] != "ok"]
    for row in failures[:_MOST_SHOWN]:
        point = ", ".join(row[name] for name in ("launch", "machine", "passes") if row[name])
        print(f"{row['status']}: {point}: {(row['error'] or '-').splitlines()[0][:200]}")
    print(f"{len(table)} rows, {len(failures)} of them failures, in {sweep.results / 'table.parquet'}")
    return 1 if failures else 0


def main() -> int:
    options = _parser().parse_args()
    try:
        if options.command == "run":
            return _run(options)
        if options.command == "points":
            for point in Sweep.load(options.sweep).points():
                print(point.to_json())
        elif options.command == "report":
            from .plots import write_page
            write_page(Path(options.results), Path(options.output))
        else:
            from .schedulers import shard
            shard(Path(options.results), Path(options.points), options.index, options.of)
        return 0
    except SweepError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed: pip install 'ptxrewrite[sweep,cluster,plots]'", file=sys.stderr)
        return 77
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
