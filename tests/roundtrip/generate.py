#!/usr/bin/env python3
"""Makes PTX to test with: compiles the samples and the feature kernels with nvcc for many targets and flags.

usage: generate.py OUTPUT_DIRECTORY [--short] [--all-targets] [--jobs N] [--only NAME]

Every file OUTPUT/NAME.sm_TARGET.FLAGS.ptx is one compilation. Feature files state requirements in their first lines:
`// targets: >=80` or `// targets: 90a 100a` (also means: compile for these as well), and `// flags: -rdc=true` for
flags that they need. Combinations that a file does not support are counted as skipped; a combination that it
should support and nvcc refuses is a failure. OUTPUT/manifest.json lists what was made. --short compiles a few files
with a few flags in under a minute, for continuous integration. Exit code 77: no nvcc on PATH.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.normpath(os.path.join(HERE, "..", "..", "samples"))
FEATURES = os.path.join(HERE, "features")

TARGETS = ["75", "80", "90", "90a", "100", "120"]
FURTHER_TARGETS = ["86", "87", "88", "89", "100a", "100f", "103", "110", "120a", "121"]
VARIANTS = {
    "plain": [],
    "debug": ["-G"],
    "lineinfo": ["-lineinfo"],
    "relocatable": ["-rdc=true"],
    "relocatable_debug": ["-rdc=true", "-G"],
    "relocatable_lineinfo": ["-rdc=true", "-lineinfo"],
}
FURTHER_VARIANTS = {"fast_math": ["-use_fast_math"]}

SHORT_FILES = {"backprop", "matmul", "warp_reduction", "calls", "control_flow", "inline_assembly", "memory_spaces", "names",
               "bulk_copies"}
SHORT_COMBINATIONS = {("80", "plain"), ("80", "debug"), ("80", "lineinfo"), ("90", "relocatable"), ("75", "plain")}


def number_of(target):
    return int(re.match(r"\d+", target).group())


class Source:
    """A CUDA file and the targets and flags of its header comment."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        with open(path) as file:
            head = file.read(600)
        targets = re.search(r"^// targets: (.*)$", head, re.M)
        flags = re.search(r"^// flags: (.*)$", head, re.M)
        self.flags = flags.group(1).split() if flags else []
        self.minimum, self.exact = 75, None
        if targets:
            words = targets.group(1).split()
            if words[0].startswith(">="):
                self.minimum = int(words[0][2:])
            else:
                self.exact = words

    def supports(self, target):
        if self.exact is not None:
            return target in self.exact
        return number_of(target) >= self.minimum

    def targets_of(self, targets):
        return targets + [t for t in self.exact or [] if t not in targets]


def sources(only):
    found = [os.path.join(SAMPLES, d, d + ".cu") for d in sorted(os.listdir(SAMPLES))]
    found += [os.path.join(FEATURES, f) for f in sorted(os.listdir(FEATURES)) if f.endswith(".cu")]
    found = [Source(path) for path in found if os.path.exists(path)]
    return [s for s in found if only is None or s.name == only]


def jobs_of(arguments):
    """(source, target, variant name, flags) for every combination to compile, and the number of skipped ones."""
    jobs, skipped = [], 0
    targets = TARGETS + (FURTHER_TARGETS if arguments.all_targets else [])
    variants = dict(VARIANTS, **(FURTHER_VARIANTS if arguments.all_targets else {}))
    for source in sources(arguments.only):
        if arguments.short and source.name not in SHORT_FILES:
            continue
        made = set()
        for target in source.targets_of(targets):
            for variant, flags in variants.items():
                if arguments.short and (target, variant) not in SHORT_COMBINATIONS:
                    continue
                all_flags = sorted(set(source.flags + flags))
                key = (target, tuple(all_flags))
                if not source.supports(target):
                    skipped += 1
                elif key not in made:
                    made.add(key)
                    jobs.append((source, target, variant, all_flags))
    return jobs, skipped


def compile_one(job, output):
    source, target, variant, flags = job
    path = os.path.join(output, f"{source.name}.sm_{target}.{variant}.ptx")
    command = ["nvcc", "-ptx", f"-arch=sm_{target}", "-O3", "-std=c++17", "-w", *flags, os.path.basename(source.path), "-o", path]
    result = subprocess.run(command, cwd=os.path.dirname(source.path), capture_output=True, text=True)
    entry = {"path": path, "source": source.name, "target": f"sm_{target}", "variant": variant, "flags": flags}
    if result.returncode != 0:
        entry["error"] = (result.stderr or result.stdout).strip()[:2000]
        if os.path.exists(path):
            os.unlink(path)
    return entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--all-targets", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="one sample or feature file by name")
    arguments = parser.parse_args()
    if shutil.which("nvcc") is None:
        print("generate: nvcc is not on PATH; install the CUDA toolkit to make round-trip inputs", file=sys.stderr)
        return 77

    output = os.path.abspath(arguments.output)
    os.makedirs(output, exist_ok=True)
    jobs, skipped = jobs_of(arguments)
    start = time.time()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        entries = list(pool.map(lambda job: compile_one(job, output), jobs))
    failed = [e for e in entries if "error" in e]
    made = [e for e in entries if "error" not in e]
    with open(os.path.join(output, "manifest.json"), "w") as file:
        json.dump({"made": made, "failed": failed, "skipped": skipped}, file, indent=1)
    for entry in failed:
        print(f"FAILED {os.path.basename(entry['path'])}: {entry['error'].splitlines()[0] if entry['error'] else '?'}")
    print(f"{len(made)} PTX files made, {len(failed)} failed, {skipped} combinations not supported by their file, "
          f"{time.time() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
