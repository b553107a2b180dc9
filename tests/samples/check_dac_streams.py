#!/usr/bin/env python3
"""The hardware form of pass dac on all samples: the two streams verify, print, and read back as the same text.

usage: check_dac_streams.py [--table] PATH/ptxrewrite FILE.ptx...

--table: the values that cross between the streams of each file, and the share of static instructions on scalars and
thread indices (dac-isca17 Fig. 6: about half).
"""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

COLUMNS = ("instructions", "potentially-affine", "data", "addresses", "predicates", "given-predicates",
           "body-instructions-before", "body-instructions-after", "affine-instructions")


def run(arguments):
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=3600)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: exit code {child.returncode}\n{child.stderr}")
    return child


def check(tool, ptx, folder):
    once, again, twice, thrice = (folder / f"{ptx.stem}.{i}.ptx" for i in range(4))
    child = run([tool, "opt", ptx, "-p", "dac", "--form", "hardware", "--verify-each", "--stats", "--json", "-o", once])
    run([tool, "opt", once, "--no-ssa", "-o", again])
    if once.read_text() != again.read_text():
        raise RuntimeError(f"{ptx.name}: the printed text is not what was made")
    # The first pass through SSA form may reorder and drop declarations, the second changes nothing.
    run([tool, "opt", once, "--verify-each", "-o", twice])
    run([tool, "opt", twice, "--verify-each", "-o", thrice])
    if twice.read_text() != thrice.read_text():
        raise RuntimeError(f"{ptx.name}: the text changes when it is read and printed again")
    counts = json.loads(child.stdout or child.stderr)[0]["statistics"]
    return ptx.stem, [counts.get("dac." + column, 0) for column in COLUMNS]


def main():
    arguments = sys.argv[1:]
    wants_table = arguments[:1] == ["--table"]
    tool, *files = arguments[wants_table:]
    failed = False
    rows = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check, tool, pathlib.Path(file), pathlib.Path(folder)) for file in files]
        for job in jobs:
            try:
                rows.append(job.result())
            except (RuntimeError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
                print(error)
                failed = True
    if wants_table:
        print(f"{'file':24}" + "".join(f"{column.removeprefix('body-'):>20}" for column in COLUMNS))
        for name, counts in rows:
            print(f"{name:24}" + "".join(f"{count:20}" for count in counts))
    all_counts = [sum(column) for column in zip(*(counts for _, counts in rows))]
    split = sum(counts[8] != 0 for _, counts in rows)
    shares = [counts[1] / counts[0] for _, counts in rows if counts[0]]
    print(f"{split} of {len(rows)} files have kernels of two streams; potentially affine: "
          f"{100 * sum(shares) / len(shares):.1f} % of a file's static instructions, "
          f"{100 * all_counts[1] / all_counts[0]:.1f} % of all (paper, Fig. 6: about half); "
          f"bodies {all_counts[6]} to {all_counts[7]} instructions, affine streams {all_counts[8]}")
    # The paper's observation is the reason why there is anything to split.
    return failed or split * 10 < len(rows) * 9


if __name__ == "__main__":
    sys.exit(main())
