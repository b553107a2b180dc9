#!/usr/bin/env python3
"""Time and memory of reading and printing PTX, against ptxas on the same file.

usage: parse_bench.py --tool PATH/ptxrewrite [--sizes 0.1,3,30] [--rounds N] [--json FILE] [--keep DIRECTORY]

Makes one PTX file of each size (in megabytes) by repeating the samples under fresh kernel names, then runs, in
interleaved rounds, `opt --no-ssa` (parse + print), `opt` without passes (identity, through SSA), `ptxas -O3` and
`ptxas -O0`, and prints the median of user seconds with the ratio to ptxas and the peak memory per source byte, beside
the bars: parse + print <= 0.20 x ptxas -O3 (goal 0.12), <= 25 bytes of peak memory per source byte, cost per byte flat.
Files below 10 MB also run every pass in its legal form, and -O, where the machine model chooses (bars: a pass <= 0.10 x
ptxas -O3 with reading and printing, -O <= 0.25 x).
Then files with many labels, branch targets, parameters, registers and so on, through SSA, at two sizes: the growth of
time with their number (bar: exponent 1.2).
Without ptxas on PATH, only the tool is measured. Always exits 0 if every run succeeded: speed fails no test.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.normpath(os.path.join(HERE, "..", "..", "samples"))
# A fixed set, so that figures of different days are comparable; modules of kernels only, which can be repeated.
REPEATED = ["backprop", "dac_example", "hotspot", "matmul", "pathfinder", "vecadd", "warp_reduction"]
TIME_BAR, TIME_GOAL, MEMORY_BAR, GROWTH_BAR = 0.20, 0.12, 25.0, 1.2
PASS_BAR, ALL_BAR = 0.10, 0.25
# Passes that do nothing without an option.
PASS_OPTIONS = {"spill": "limit=24", "darsie": "specialise=block=128"}
MEGABYTE = 1_000_000


def sample_bodies():
    """The header that all samples share, and each repeated sample's text after it with its kernel names."""
    header, bodies = None, []
    for name in REPEATED:
        with open(os.path.join(SAMPLES, name, name + ".ptx")) as file:
            text = file.read()
        end = re.search(r"^\.address_size\s+\d+\s*$", text, re.M).end()
        header = header or text[:end] + "\n"
        bodies.append((text[end:], re.findall(r"\.entry\s+(\w+)", text)))
    return header, bodies


def fresh_names(text, kernels, copy):
    """The text with its kernels' names, and all names derived from them, replaced by names of this copy.

    The copy's number ends with an underscore: `matmul_tiled` of copy 332 is not `matmul_tiled32` of copy 3."""
    names = "|".join(sorted(map(re.escape, kernels), key=len, reverse=True))
    return re.sub(names, lambda name: f"{name[0]}_copy{copy}_", text)


def check_names(bodies, copies=500):
    """Checks that no two kernels of any copies have the same name."""
    seen = set()
    for _text, kernels in bodies:
        for copy in range(copies):
            for name in fresh_names(" ".join(kernels), kernels, copy).split():
                if name in seen:
                    sys.exit(f"parse_bench: two copies have a kernel {name}")
                seen.add(name)


def make_file(path, size):
    """Writes at least `size` bytes of PTX, one copy at a time so that this process stays small."""
    header, bodies = sample_bodies()
    check_names(bodies)
    with open(path, "w") as file:
        written = file.write(header)
        copy = 0
        while written < size:
            for text, kernels in bodies:
                written += file.write(fresh_names(text, kernels, copy))
            copy += 1
    return written


def run(command, log):
    """(user seconds, peak bytes) of one process; exits with its message if it fails."""
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    pid = os.posix_spawnp(command[0], command, os.environ,
                          file_actions=[(os.POSIX_SPAWN_DUP2, errors, 1), (os.POSIX_SPAWN_DUP2, errors, 2)])
    os.close(errors)
    _pid, status, usage = os.wait4(pid, 0)
    if status != 0:
        with open(log, errors="replace") as file:
            sys.exit(f"{' '.join(command)}: status {status}: {file.read(500)}")
    return usage.ru_utime, usage.ru_maxrss * 1024


def pass_commands(tool):
    """name -> arguments of `opt` for every pass alone, and for -O."""
    listed = subprocess.run([tool, "passes", "--json"], capture_output=True, check=True)
    names = [one["name"] for one in json.loads(listed.stdout)]
    passes = {f"-p {name}": ["-p", f"{name}({PASS_OPTIONS[name]})" if name in PASS_OPTIONS else name] for name in names}
    return {**passes, "-O": ["-O"]}


def measure(tool, path, rounds, scratch, with_passes):
    """name -> (median user seconds, median peak bytes), the commands interleaved round by round."""
    output = os.path.join(scratch, "output")
    commands = {"parse + print": [tool, "opt", "--no-ssa", path, "-o", output + ".ptx"],
                "identity": [tool, "opt", path, "-o", output + ".ptx"]}
    if with_passes:
        for name, options in pass_commands(tool).items():
            commands[name] = [tool, "opt", *options, "--no-ptxas", path, "-o", output + ".ptx"]
    if shutil.which("ptxas"):
        commands["ptxas -O3"] = ["ptxas", "-arch=sm_80", "-O3", path, "-o", output + ".cubin"]
        commands["ptxas -O0"] = ["ptxas", "-arch=sm_80", "-O0", path, "-o", output + ".cubin"]
    runs = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command, os.path.join(scratch, "log")))
    return {name: tuple(statistics.median(column) for column in zip(*values)) for name, values in runs.items()}


def many(count):
    """kind -> PTX with `count` of it."""
    each = lambda text, separator="\n": separator.join(text.format(i=i) for i in range(count))
    header = ".version 8.0\n.target sm_80\n.address_size 64\n"
    entry = lambda body, parameters="": (f"{header}.entry k({parameters})\n{{\n.reg .pred %p; .reg .b32 %r; "
                                         f".reg .b64 %l;\nsetp.eq.u32 %p, %r, 1;\n{body}\nret;\n}}\n")
    labels = each("L{i}:\nadd.u32 %r, %r, 1;")
    return {
        "labels": entry(labels),
        "branches": entry(each("@%p bra L{i};") + labels),
        "branch targets": entry(f"T: .branchtargets {each('L{i}', ', ')};\nbrx.idx %r, T;\n{labels}"),
        "parameters": entry(each("ld.param.u32 %r, [p{i}];"), each(".param .u32 p{i}", ",\n")),
        "registers": entry(each(".reg .b32 x{i};\nmov.u32 x{i}, %r;")),
        "local variables": entry(each(".local .b32 v{i};\nmov.u64 %l, v{i};")),
        "calls": header + ".func f(.param .b32 a) { ret; }\n" + entry(
            each("{{ .param .b32 a; st.param.b32 [a], %r; call.uni f, (a); }}"))[len(header):],
        "variables": header + each(".global .b32 g{i};") + entry(each("mov.u64 %l, g{i};"))[len(header):],
        "functions": header + each(".func f{i}() {{ ret; }}"),
    }


def growth(tool, count, scratch):
    """Prints the growth of user seconds from `count` of a kind to ten times as many."""
    path = os.path.join(scratch, "many.ptx")
    seconds = {}
    for number in (count, 10 * count):
        for kind, text in many(number).items():
            with open(path, "w") as file:
                file.write(text)
            taken, _peak = run([tool, "opt", path, "-o", path + ".out"], os.path.join(scratch, "log"))
            seconds.setdefault(kind, []).append(max(taken, 0.001))
    for kind, (small, large) in seconds.items():
        print(f"{kind:16} {count:8,}: {small:7.3f} s   {10 * count:8,}: {large:7.3f} s   "
              f"exponent {math.log10(large / small):.2f} (bar {GROWTH_BAR})")


def table_row(name, size, seconds, memory, measured):
    cells = [f"{name:14}", f"{seconds:9.3f} s", f"{size / MEGABYTE / max(seconds, 1e-6):8.2f} MB/s"]
    for peer in ("ptxas -O3", "ptxas -O0"):
        ratio = seconds / measured[peer][0] if peer in measured and measured[peer][0] > 0 else None
        cells.append(f"{ratio:7.3f} x {peer[-2:]}" if ratio is not None and not name.startswith("ptxas") else " " * 12)
    cells.append(f"{memory / size:7.1f} B/B  {memory / MEGABYTE:7.1f} MB")
    return "  ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--sizes", default="0.1,3,30", help="megabytes, separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="rounds for files below 10 MB; larger ones get half")
    parser.add_argument("--many", type=int, default=30000, help="labels, parameters and so on in the smaller file")
    parser.add_argument("--json")
    parser.add_argument("--keep", help="make the files here and keep them")
    arguments = parser.parse_args()

    tool = os.path.abspath(arguments.tool)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or scratch
        os.makedirs(folder, exist_ok=True)
        for megabytes in arguments.sizes.split(","):
            path = os.path.join(folder, f"samples_{megabytes}MB.ptx")
            size = make_file(path, float(megabytes) * MEGABYTE)
            rounds = arguments.rounds if size < 10 * MEGABYTE else max(2, arguments.rounds // 2)
            measured = measure(tool, path, rounds, scratch, size < 10 * MEGABYTE)
            print(f"{size / MEGABYTE:.1f} MB, median of {rounds}")
            for name, (seconds, memory) in measured.items():
                print("  " + table_row(name, size, seconds, memory, measured))
            results.append({"bytes": size, "rounds": rounds,
                            "runs": {n: {"user_seconds": s, "peak_bytes": m} for n, (s, m) in measured.items()}})
        growth(tool, arguments.many, scratch)
    for result in results:
        runs, size = result["runs"], result["bytes"]
        ours = runs["parse + print"]
        peer = runs.get("ptxas -O3", {}).get("user_seconds")
        ratio = f"{ours['user_seconds'] / peer:.3f}" if peer else "no ptxas"
        print(f"bars at {size / MEGABYTE:.1f} MB: parse + print / ptxas -O3 {ratio} (bar {TIME_BAR}, goal {TIME_GOAL}); "
              f"peak {ours['peak_bytes'] / size:.1f} bytes per byte (bar {MEMORY_BAR}); "
              f"{ours['user_seconds'] / size * 1e9:.0f} ns per byte, identity {runs['identity']['user_seconds'] / size * 1e9:.0f}")
        passes = {name: run["user_seconds"] for name, run in runs.items() if name.startswith("-")}
        if peer and passes:
            over = [f"{name[3:]} {seconds / peer:.3f}" for name, seconds in passes.items()
                    if name != "-O" and seconds > PASS_BAR * peer]
            print(f"     passes above {PASS_BAR:.2f} x ptxas -O3: {', '.join(over) or 'none'}; "
                  f"-O {passes['-O'] / peer:.3f} (bar {ALL_BAR})")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
