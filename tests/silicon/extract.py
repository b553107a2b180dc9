#!/usr/bin/env python3
"""Extracts figures of public measurements from a copy of their repository, as the tables of this folder.

usage: extract.py SET REPOSITORY > tables/SET.tsv     SET: a, b, c, d; REPOSITORY: its git directory, bare or not

Only figures are extracted, with the repository and the commit in the table's head; README.md lists the rows.
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
    """The same rows in every run: chosen by a hash of the name."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % one_in == 0


def number(text):
    return f"{float(text):.7g}"


def write(about, columns, rows):
    for line in about.strip().splitlines():
        print("#", line)
    print("\t".join(columns))
    for row in rows:
        print("\t".join(str(cell) for cell in row))


# By benchmark of set A: its name in the table of watts. gen_sim_power_csv.py there names the kernels "_k1" and "_k2".
SET_A_POWER = {"b+tree-rodinia-3.1": "btree", "parboil-sad": "parboil_sad", "parboil-sgemm": "parboil_sgemm",
               "parboil-mri-q": "parboil_mriq"}
SET_A_SECOND = {"findK", "bpnn_adjust_weights_cuda", "CUDAkernel2DCT", "fwtBatch1Kernel", "mergeSortSharedKernel",
                "inverseCNDKernel"}


def set_a(path):
    copy = Copy(path, "2260456ea5e6a1420f5734f145a4b7d8ab1d4737")
    watts = {row[""]: row["mean HW_power"]
             for row in copy.rows_of("util/accelwattch/accelwattch_hw_profiler/hw_power_validation_volta.csv")}
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
        program = SET_A_POWER.get(benchmark, benchmark.split("-")[0])
        watt = watts.get(f"{program}_k{2 if name in SET_A_SECOND else 1}")
        rows[-1].append(number(watt) if watt else "")
    write("""
Quadro GV100, clocks and counters of single launches, means over the launches of a kernel; watts of the board while the
kernel is launched again and again at 65 degrees Celsius, means of 5 runs.
Source: github.com/accel-sim/accel-sim-framework, commit 2260456ea5e6a1420f5734f145a4b7d8ab1d4737,
util/accelwattch/accelwattch_hw_profiler/hw_perf.csv and hw_power_validation_volta.csv (AccelWattch, Kandiah et al.,
MICRO 2021). Sectors of 32 bytes.
""", ["name", "clocks", "l1_read_hits", "l1_read_misses", "l2_read_hits", "l2_read_misses", "dram_read_sectors",
      "dram_write_sectors", "pipeline_duty", "idle_sms", "watt"], rows)


# GPU in set B's file names: machine of the program, its SMs. "Quadro" is left out because the model is not given.
SET_B_GPUS = {"GTX-680": ("gtx680", 8), "GTX-970": ("gtx970", 13), "GTX-980": ("gtx980", 16),
              "Titan": ("gtxtitan", 14), "TitanX": ("gtxtitanx", 24), "Tesla-K20": ("k20", 13),
              "Tesla-K40": ("k40", 15), "Tesla-P100": ("p100", 56)}
SET_B_SIZES = {"bpnn_layerforward_CUDA": (8192, 16384, 32768, 65536),
               "bpnn_adjust_weights_cuda": (8192, 16384, 32768, 65536), "calculate_temp": (256, 512, 1024),
               "lud_diagonal": (256, 512, 1024), "lud_perimeter": (256, 512, 1024)}


def set_b(path):
    copy = Copy(path, "35b81711089273c775f143ecaeadae03ebf5910a")
    rows = []
    for kernel, sizes in SET_B_SIZES.items():
        for gpu, (machine, sms) in SET_B_GPUS.items():
            measured = copy.rows_of(f"datasets/{kernel}-{gpu}.csv")
            for size in sizes:
                same = [row for row in measured if row["input.size.1"] == str(size)]
                if not same:
                    continue
                means = [sum(float(row[key]) for row in same) / len(same)
                         for key in ("elapsed_cycles_sm", "inst_executed", "duration")]
                rows.append([kernel, machine, size, len(same), number(means[0] / sms), number(means[1]),
                             number(means[2] * 1e6)])
    write("""
Kernels of Rodinia on GPUs from Kepler to Pascal: means over the launches of a size of clocks (elapsed_cycles_sm over the
SMs of the GPU), warp instructions executed and microseconds.
Source: github.com/marcosamaris/gpuperfpredict, commit 35b81711089273c775f143ecaeadae03ebf5910a, datasets/*.csv. The
sizes of SET_B_SIZES in extract.py; files that a copy lacks (large ones are kept elsewhere) have no rows.
""", ["kernel", "gpu", "size", "launches", "clocks", "warp_instructions", "us"], rows)


def set_c(path):
    copy = Copy(path, "db54a508953880ad3dfb20194a2d5cb39c4af33c")
    clocks = [("810", "1164"), ("3505", "1164"), ("3505", "595")]
    times, watts, program = {}, {}, None
    name = "datasets/gtxtitanx/realbenchmarks/aggregated_dataset_gtxtitanx.csv"
    for line in copy.bytes_of(name).decode().split():
        cells = line.split(",")
        if len(cells) == 1:
            program = cells[0]
        else:
            times.setdefault(program, {}).setdefault((cells[0], cells[1]), cells[2])
            watts.setdefault(program, {}).setdefault((cells[0], cells[1]), cells[3])
    write("""
Programs on a GTX Titan X at several clocks: milliseconds and watts of the board, by MHz of memory and core.
Source: github.com/hpc-ulisboa/gpuPTXModel, commit db54a508953880ad3dfb20194a2d5cb39c4af33c,
datasets/gtxtitanx/realbenchmarks/aggregated_dataset_gtxtitanx.csv.
""", ["program"] + [f"{unit}_{memory}_{core}" for unit in ("ms", "watt") for memory, core in clocks],
          [[program] + [number(figures[program][pair]) for figures in (times, watts) for pair in clocks]
           for program, known in times.items() if all(pair in known for pair in clocks)])


def cache_of(copy, name):
    """The timed variants of a Kernel Tuner cache file, whose last brackets may be missing."""
    text = gzip.decompress(copy.bytes_of(name)).decode()
    try:
        return json.loads(text)["cache"]
    except json.JSONDecodeError:
        return json.loads(text.rstrip().rstrip(",") + "}}")["cache"]


def older_convolution(copy, keys):
    """Rows of set D from before `use_shmem` was a parameter: all variants stage their input."""
    folder = "currently_unused/cachefiles/KernelTuner data/convolution/"
    for gpu, file in (("RTX2080Ti", "RTX_2080_Ti.json.gz"), ("RTX3090", "RTX_3090.json.gz")):
        for variant in cache_of(copy, folder + file).values():
            name = ",".join(f"{key}={variant.get(key, 1)}" for key in keys)
            if isinstance(variant["time"], float) and chosen(f"convolution {name}", 80):
                yield ["convolution", gpu, name, number(variant["time"])]


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
    rows += older_convolution(copy, keys["convolution"])
    write("""
Times in milliseconds, means of 32 runs, of variants of one kernel on NVIDIA A100-PCIE-40GB, RTX A4000 and RTX A6000;
means of 10 runs of an older version of the convolution on GeForce RTX 2080 Ti and RTX 3090, which always stages.
Source: github.com/AutoTuningAssociation/benchmark_hub, commit 8eeb99e7179e6838af95d392ac6c60cebfd8c434,
cachefiles/convolution_milo, cachefiles/dedispersion_milo and currently_unused/cachefiles/KernelTuner data/convolution.
One variant in 40 of the convolution, in 80 of the older one, in 160 of the dedispersion, by a hash of its parameters;
variants that failed there have no row.
""", ["kernel", "gpu", "variant", "ms"], rows)


def main():
    makers = {"a": set_a, "b": set_b, "c": set_c, "d": set_d}
    if len(sys.argv) != 3 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    makers[sys.argv[1]](sys.argv[2])


main()
