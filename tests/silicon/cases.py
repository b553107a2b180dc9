"""Maps each row of a table to one of our kernels and the size at which it was measured."""
import dataclasses
import os
import re

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(FOLDER, "..", "..")
SAMPLES = os.path.join(ROOT, "samples")
SETS = ["a", "b", "d"]


@dataclasses.dataclass
class Case:
    name: str     # of the row
    hashed: str   # determines the half
    group: str    # variants of one kernel, or the unit of reported figures
    gpu: str      # a machine of the program
    clocks: float # or any other unit, the same within a group
    launch: str   # launch file; "": only the original can be scored
    kernel: str
    sizes: dict   # variables of the launch file, and their values
    ptx: str = ""                                   # beside the launch file
    source_file: str = ""                           # source from which nvcc makes the PTX instead
    macros: dict = dataclasses.field(default_factory=dict)
    flags: list = dataclasses.field(default_factory=list)
    original: str = ""                              # name of the captured launch
    short: bool = False
    cold: bool = False                              # measured by a profiler that flushes L2 before each launch
    source: str = "ours"


def table(name):
    """Rows of a table as dictionaries."""
    with open(os.path.join(FOLDER, "tables", name + ".tsv")) as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


# By row of set A: sample, kernel, sizes. Problem sizes are the arguments in define-power.yml of the set's repository;
# where it names a file, the counters in the table give the size (sectors of all buffers).
SET_A = {
    "b+tree-rodinia-3.1/findK": ("bplus_tree", "find_record",
                                 {"root_children": 16, "inner_children": 244, "queries": 10000}),
    "b+tree-rodinia-3.1/findRangeK": ("bplus_tree", "find_range",
                                      {"root_children": 16, "inner_children": 244, "queries": 6000}),
    "backprop-rodinia-3.1/bpnn_layerforward_CUDA": ("backprop", "bp_layerforward", {"inputs": 65536}),
    "backprop-rodinia-3.1/bpnn_adjust_weights_cuda": ("backprop", "bp_adjust_weights", {"inputs": 65536}),
    "hotspot-rodinia-3.1/calculate_temp": ("hotspot", "hotspot", {"side": 1024, "launches": 1}),
    "kmeans-rodinia-3.1/kmeansPoint": ("kmeans", "kmeans_assign", {"points": 819200}),
    "srad_v1-rodinia-3.1/srad": ("srad_v1", "srad_coefficients", {"rows": 502, "columns": 458, "iterations": 1}),
    "parboil-sad/mb_sad_calc": ("sad", "sad_4x4", {"width": 1920, "height": 1088}),
    "parboil-sgemm/mysgemmNT": ("sgemm", "sgemm_nt", {"m": 1024, "n": 1056, "k": 992}),
    "parboil-mri-q/ComputeQ_GPU": ("mri_q", "mri_q", {"voxels": 262144, "samples": 1024}),
    "dct8x8/CUDAkernel1DCT": ("dct8x8", "dct_by_matrices", {"width": 512, "height": 512}),
    "dct8x8/CUDAkernel2DCT": ("dct8x8", "dct_by_vectors", {"width": 512, "height": 512}),
    "fastWalshTransform/fwtBatch2Kernel": ("fast_walsh", "walsh_global", {"log_n": 23, "passes": 6}),
    "fastWalshTransform/fwtBatch1Kernel": ("fast_walsh", "walsh_shared", {"log_n": 23, "passes": 6}),
}
KERNELS = os.path.join(FOLDER, "kernels")
# By sample's kernel: our source that matches the benchmark's kernel where the sample does not, and the flags that the
# benchmark is built with. A launch file of the same name beside it replaces the sample's.
CLOSER = {
    "bp_layerforward": (os.path.join(KERNELS, "backprop.cu"), []),
    "hotspot": (os.path.join(KERNELS, "hotspot.cu"), []),
    "sad_4x4": (os.path.join(KERNELS, "sad.cu"), []),
    "srad_coefficients": (os.path.join(KERNELS, "srad_v1.cu"), []),
    "mri_q": (os.path.join(SAMPLES, "mri_q", "mri_q.cu"), ["-use_fast_math"]),
    "lud_diagonal": (os.path.join(SAMPLES, "lud", "lud.cu"), ["-use_fast_math"]),
    "lud_perimeter": (os.path.join(SAMPLES, "lud", "lud.cu"), ["-use_fast_math"]),
}


def closer(case):
    """The case with the kernel that is closer to the benchmark than the sample, if there is one."""
    if case.kernel in CLOSER:
        case.source_file, case.flags = CLOSER[case.kernel]
        launch = case.source_file.replace(".cu", ".toml")
        if os.path.exists(launch):
            case.launch = launch
    return case


def cases_of_a():
    for row in table("a"):
        case = Case(row["name"], row["name"].split("/")[1], "QV100", "qv100", float(row["clocks"]), "", "*", {},
                    original=row["name"].replace("/", "-"), cold=True)
        if row["name"] in SET_A:
            sample, case.kernel, case.sizes = SET_A[row["name"]]
            case.launch, case.ptx = os.path.join(SAMPLES, sample, sample + ".toml"), sample + ".ptx"
            case.short = sample == "dct8x8"
        yield closer(case)


# By kernel of set B: sample, its kernel, sizes for a size of the table.
SET_B = {
    "bpnn_layerforward_CUDA": ("backprop", "bp_layerforward", lambda size: {"inputs": size}),
    "bpnn_adjust_weights_cuda": ("backprop", "bp_adjust_weights", lambda size: {"inputs": size}),
    "calculate_temp": ("hotspot", "hotspot", lambda size: {"side": size, "launches": 1}),
    "lud_diagonal": ("lud", "lud_diagonal", lambda size: {"n": size}),
    "lud_perimeter": ("lud", "lud_perimeter", lambda size: {"n": size}),
}


def cases_of_b():
    for row in table("b"):
        sample, kernel, sizes = SET_B[row["kernel"]]
        name = f"{row['gpu']} {row['kernel']} {row['size']}"
        yield closer(Case(name, row["kernel"], row["gpu"], row["gpu"],
                          float(row["us"]) * 1e-6 * CLOCK_HZ[row["gpu"]],
                          os.path.join(SAMPLES, sample, sample + ".toml"), kernel, sizes(int(row["size"])),
                          ptx=sample + ".ptx", original=name.replace(" ", "-"),
                          short=row["gpu"] == "p100" and row["size"] == "8192"))


MACRO_OF = {"block_size_x": "BLOCK_X", "block_size_y": "BLOCK_Y", "tile_size_x": "TILE_X", "tile_size_y": "TILE_Y",
            "read_only": "READ_ONLY", "use_padding": "PADDED", "use_shmem": "STAGED", "tile_stride_x": "STRIDE_X",
            "tile_stride_y": "STRIDE_Y"}


def cases_of_d():
    for row in table("d"):
        macros = {MACRO_OF[name]: int(value) for name, value in (part.split("=") for part in row["variant"].split(","))}
        sizes = {name.lower(): macros[name] for name in ("BLOCK_X", "BLOCK_Y", "TILE_X", "TILE_Y")}
        name = f"{row['gpu']} {row['kernel']} " + ",".join(str(value) for value in macros.values())
        launch = os.path.join(FOLDER, "kernels", row["kernel"] + ".toml")
        milliseconds = float(row["ms"])
        yield Case(name, row["variant"], f"{row['gpu']} {row['kernel']}", row["gpu"].lower(),
                   milliseconds * 1e-3 * CLOCK_HZ[row["gpu"].lower()], launch, row["kernel"], sizes,
                   source_file=launch.replace(".toml", ".cu"), macros=macros,
                   short=name == "A100 convolution 48,4,1,4,1,0,1")


def clock_hz(gpu):
    """Clock of a machine of the program: silicon's times are shown in its clocks."""
    with open(os.path.join(FOLDER, "..", "..", "ir", "machine", "figures", "machines", gpu + ".toml")) as file:
        return float(re.search(r"^clock_mhz = (\d+)", file.read(), re.M).group(1)) * 1e6


GPUS = ["gtx680", "gtx970", "gtx980", "gtxtitan", "gtxtitanx", "k20", "k40", "p100", "rtx2080ti", "a100", "a4000", "a6000",
        "rtx3090"]
CLOCK_HZ = {gpu: clock_hz(gpu) for gpu in GPUS}


def cases_of(name):
    return list({"a": cases_of_a, "b": cases_of_b, "d": cases_of_d}[name]())
