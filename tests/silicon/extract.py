#!/usr/bin/env python3
"""Figures of public measurements, from a copy of the repository that has them, as the tables of this folder.

usage: extract.py SET REPOSITORY > tables/SET.tsv     SET: a, b, c, d; REPOSITORY: its git directory, bare or not

Figures alone are carried over, with the repository and the commit in the table's head; README.md says which rows.
"""
import csv
import gzip
import hashlib
import io
import json
import subprocess
import sys


class Copy:
    """One commit of a repository."""

    def __init__(self, path, commit):
        self.path, self.commit = path, commit

    def bytes_of(self, name):
        command = ["git", "-C", self.path, "show", f"{self.commit}:{name}"]
        done = subprocess.run(command, capture_output=True)
        return done.stdout if done.returncode == 0 else None

    def rows_of(self, name):
        content = self.bytes_of(name)
        return [] if content is None else list(csv.DictReader(io.StringIO(content.decode())))


def chosen(name, one_in):
    """The same rows whenever and wherever they are chosen: by a hash of the name."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % one_in == 0


def number(text):
    return f"{float(text):.7g}"


def write(about, columns, rows):
    for line in about.strip().splitlines():
        print("#", line)
    print("\t".join(columns))
    for row in rows:
        print("\t".join(str(cell) for cell in row))


def set_a(path):
    copy = Copy(path, "2260456ea5e6a1420f5734f145a4b7d8ab1d4737")
    short = {"findRangeK": "findRangeK", "findK": "findK"}
    rows = []
    for row in copy.rows_of("util/accelwattch/accelwattch_hw_profiler/hw_perf.csv"):
        benchmark, symbol = row["Benchmark"], row["Kernel"]
        name = short.get(symbol, "")
        if benchmark.startswith("cutlass"):
            name = "gemm"
        elif not name:  # _Z14calculate_tempiPf...: the name and its length
            digits = len(symbol[2:]) - len(symbol[2:].lstrip("0123456789"))
            name = symbol[2 + digits:2 + digits + int(symbol[2:2 + digits])]
        rows.append([f"{benchmark}/{name}"] + [number(row[key]) for key in (
            "Elapsed_Cycles", "L1_RH", "L1_RM", "L2_RH", "L2_RM", "DRAM_Rd", "DRAM_Wr", "Pipeline_Duty",
            "Num_Idle_SMs")])
    write("""
Quadro GV100, clocks and counters of single launches, means over the launches of a kernel.
Source: github.com/accel-sim/accel-sim-framework, commit 2260456ea5e6a1420f5734f145a4b7d8ab1d4737,
util/accelwattch/accelwattch_hw_profiler/hw_perf.csv (AccelWattch, Kandiah et al., MICRO 2021). Sectors of 32 bytes.
""", ["name", "clocks", "l1_read_hits", "l1_read_misses", "l2_read_hits", "l2_read_misses", "dram_read_sectors",
      "dram_write_sectors", "pipeline_duty", "idle_sms"], rows)


def cache_of(copy, name):
    """The timed variants of a Kernel Tuner cache file, which may lack its last brackets."""
    text = gzip.decompress(copy.bytes_of(name)).decode()
    try:
        return json.loads(text)["cache"]
    except json.JSONDecodeError:
        return json.loads(text.rstrip().rstrip(",") + "}}")["cache"]


def set_d(path):
    copy = Copy(path, "8eeb99e7179e6838af95d392ac6c60cebfd8c434")
    keys = {"convolution": ["block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "read_only", "use_padding",
                            "use_shmem"],
            "dedispersion": ["block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "tile_stride_x",
                             "tile_stride_y"]}
    one_in = {"convolution": 40, "dedispersion": 160}
    rows = []
    for kernel, parameters in keys.items():
        caches = {gpu: cache_of(copy, f"cachefiles/{kernel}_milo/{gpu}.json.gz") for gpu in ("A100", "A4000", "A6000")}
        for variant in caches["A100"].values():
            name = ",".join(f"{key}={variant[key]}" for key in parameters)
            if not chosen(f"{kernel} {name}", one_in[kernel]):
                continue
            for gpu, cache in caches.items():
                same = [other for other in cache.values() if all(other[key] == variant[key] for key in parameters)]
                times = [other["time"] for other in same if isinstance(other["time"], float)]
                if times:
                    rows.append([kernel, gpu, name, number(times[0])])
    write("""
Times in milliseconds, means of 32 runs, of variants of one kernel on NVIDIA A100-PCIE-40GB, RTX A4000 and RTX A6000.
Source: github.com/AutoTuningAssociation/benchmark_hub, commit 8eeb99e7179e6838af95d392ac6c60cebfd8c434,
cachefiles/convolution_milo and cachefiles/dedispersion_milo. One variant in 40 of the convolution, in 160 of the
dedispersion, by a hash of its parameters; variants that failed there have no row.
""", ["kernel", "gpu", "variant", "ms"], rows)


def main():
    makers = {"a": set_a, "d": set_d}
    if len(sys.argv) != 3 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    makers[sys.argv[1]](sys.argv[2])


main()
