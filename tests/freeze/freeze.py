#!/usr/bin/env python3
"""Compares the program's results for samples, feature kernels and random kernels with a committed list of hashes.

usage: freeze.py --dump-tool FREEZE_DUMP --tool PTXREWRITE --root SOURCE_ROOT --list HASHES --output FOLDER
                 [--every N] [--bless] [--jobs N]

Writes all results as text to OUTPUT/now and prints those whose hash differs from the list's. If nothing differs, the
dump moves to OUTPUT/same, to which a later, different dump can be compared: diff -ru OUTPUT/same OUTPUT/now. --every:
one item of N. --bless rewrites the list. Feature kernels need the nvcc that they were blessed with: if its PTX is
different, or there is no nvcc, they are left out, and the last line says so. Exit code 1 if something differs.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SEEDS, SEEDS_OF_ITEM = 300, 10
DIGITS = 24  # of a hash: 96 bits
# Launches of random kernels on the emulator and its machines.
LAUNCHES = range(1, SEEDS, 5)
MACHINES = ["--darsie", "--regless", "--with", "cae,mta,dac-ideal,scalar,sliced,scalar+sliced"]
HARDWARE = ["--form", "hardware", "-p", "r2d2", "-p", "dac", "-p", "composite"]
LEGAL = ["-p", "r2d2", "-p", "dac", "-p", "composite", "-p", "darsie"]
OF_A_LAUNCH = {
    "run.counters": ["run", "{launch}", "--json", "--counters", "--check"],
    "run.late_copies": ["run", "{launch}", "--json", "--all", "--late-copies"],
    "run.darsie": ["run", "{launch}", "--json", "--darsie"],
    "run.darsie_ignore_store": ["run", "{launch}", "--json", "--darsie=ignore-store", "--check"],
    "run.darsie_no_cf_sync": ["run", "{launch}", "--json", "--darsie=no-cf-sync"],
    "run.regless": ["run", "{launch}", "--json", "--regless"],
    "run.regless_small": ["run", "{launch}", "--json", "--regless=128", "--compressor", "0"],
    "score.hardware": ["score", "{launch}", "--json", "--terms", *HARDWARE, *MACHINES],
    "study": ["study", "{launch}", "--json"],
}
OF_A_SAMPLE = {
    "score.legal": ["score", "{launch}", "--json", "--terms", "--sensitivity", "--estimators", *LEGAL],
    "score.exact": ["score", "{launch}", "--json", "--exact", "--gpu", "titanv,gtx480", *HARDWARE, *MACHINES],
    "score.text": ["score", "{launch}", "--gpu", "sm_80", "--form", "hardware", "-p", "r2d2", "--darsie"],
    "study.text": ["study", "{launch}", "--gpu", "fx5800"],
    "verify": ["verify", "{launch}", "--json", "-p", "all", "--no-ptxas", "--given-shapes"],
    "prove": ["prove", "{ptx}", "--json", "-p", "r2d2", "--no-ptxas"],
    "prove.composite": ["prove", "{ptx}", "--json", "-p", "composite", "--effort", "1", "--no-ptxas"],
    "analyze": ["analyze", "{ptx}", "--json"],
    "mark": ["mark", "{ptx}"],
    "opt.best": ["opt", "{ptx}", "-O", "--no-ptxas", "--explain"],
    "diff": ["diff", "{ptx}", "-p", "r2d2", "--form", "hardware", "--no-ptxas"],
    "launch_template": ["launch-template", "{ptx}"],
}
OF_RUNS_WITH_PASSES = {  # the same launch, its PTX replaced by the hardware form of a pass
    "run.dac": ["dac", "--json", "--all"],
    "run.dac_entries": ["dac", "--json", "--dac-entries", "2", "--check"],
    "run.r2d2": ["r2d2", "--json", "--all", "--counters"],
    "run.composite": ["composite", "--json", "--all", "--counters"],
}
LISTINGS = {"passes": ["passes"], "machines": ["machines", "--json"], "isa": ["isa", "--json"]}


def environment():
    """No assembler, no colours, nothing from the caller's environment: results depend only on the program."""
    return {"PATH": "/usr/bin:/bin", "PTXREWRITE_PTXAS": "/nonexistent", "NO_COLOR": "1", "LC_ALL": "C"}


def run(command, folder):
    result = subprocess.run(command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                            check=False)
    output = re.sub(rb'"seconds": [-+.e0-9]+', b'"seconds": 0', result.stdout)  # of proofs
    return output + b"==== standard error\n" + result.stderr + b"==== exit code %d\n" % result.returncode


def keep(output, item, kind, contents):
    path = os.path.join(output, item, kind)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(contents)


class Dumper:
    """Makes the dump; one method per kind of item. Items are named by their subject, never by a path."""

    def __init__(self, arguments):
        # Copies: the programs may be linked again while they run.
        tools = os.path.join(arguments.output, "tools")
        os.makedirs(tools, exist_ok=True)
        self.dump_tool, self.tool = (shutil.copy2(path, tools) for path in (arguments.dump_tool, arguments.tool))
        self.root, self.output = arguments.root, os.path.join(arguments.output, "now")
        self.work = os.path.join(arguments.output, "work")
        self.missing_features = 0

    def items(self):
        names = [name for name in os.listdir(os.path.join(self.root, "samples"))
                 if os.path.exists(os.path.join(self.root, "samples", name, name + ".toml"))]
        items = [("samples/" + name, self.sample, name) for name in names]
        items += [(f"fuzz/{seed}", self.seeds, seed) for seed in range(0, SEEDS, SEEDS_OF_ITEM)]
        items += [(f"launches/{seed}", self.launch_of_seed, seed) for seed in LAUNCHES]
        items += [("features/" + name, self.feature, name) for name in self.features()]
        items += [("program", self.program, None)]
        return sorted(items, key=lambda item: item[0])

    def program(self, item, _):
        """Help of all commands, and tables."""
        overview = run([self.tool, "--help"], self.root)
        keep(self.output, item, "help", overview)
        commands = re.findall(r"^  ([a-z-]+) {2,}", overview.decode().split("Subcommands:")[1], re.M)
        for command in commands:
            keep(self.output, item, "help." + command, run([self.tool, command, "--help"], self.root))
        for name, words in LISTINGS.items():
            keep(self.output, item, name, run([self.tool, *words], self.root))

    def dump_tool_on(self, folder, what):
        result = subprocess.run([self.dump_tool, folder, what], env=environment(), check=False, capture_output=True)
        if result.returncode != 0:
            raise RuntimeError(f"freeze_dump {what}: code {result.returncode}: {result.stderr.decode()[:2000]}")

    def seeds(self, _, first):
        self.dump_tool_on(self.output, f"fuzz={first}-{first + SEEDS_OF_ITEM - 1}")

    def launch_of_seed(self, item, seed):
        folder = os.path.join(self.work, str(seed))
        self.dump_tool_on(folder, f"launches={seed}")
        self.launch(item, folder, f"fuzz_{seed}.ptx", f"fuzz_{seed}.toml", OF_A_LAUNCH)

    def sample(self, item, name):
        folder = os.path.join(self.root, "samples", name)
        self.dump_tool_on(self.output, f"{item}={folder}/{name}.ptx")
        self.launch(item, folder, name + ".ptx", name + ".toml", OF_A_LAUNCH | OF_A_SAMPLE)

    def launch(self, item, folder, ptx, launch, commands):
        for kind, words in commands.items():
            words = [word.format(ptx=ptx, launch=launch) for word in words]
            keep(self.output, item, kind, run([self.tool, *words], folder))
        # Always under the same name, because results contain the name of their file.
        for kind, (passes, *words) in OF_RUNS_WITH_PASSES.items():
            path = os.path.join(self.work, item, passes, "rewritten.ptx")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            run([self.tool, "opt", ptx, "-p", passes, "--form", "hardware", "--no-ptxas", "-o", path], folder)
            result = run([self.tool, "run", launch, "--ptx", path, *words], folder)
            keep(self.output, item, kind, result.replace(path.encode(), b"rewritten.ptx"))

    def features(self):
        folder = os.path.join(self.root, "tests", "roundtrip", "features")
        return sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".cu")) if os.path.isdir(folder) else []

    def feature(self, item, name):
        """The PTX of the newest target that the file requests, or of sm_80."""
        source = os.path.join(self.root, "tests", "roundtrip", "features", name + ".cu")
        with open(source, encoding="utf-8") as file:
            head = file.read(600)
        targets = re.search(r"^// targets: >?=?(.*)$", head, re.M)
        flags = re.search(r"^// flags: (.*)$", head, re.M)
        target = targets.group(1).split()[0] if targets else "80"
        ptx = os.path.join(self.work, name + ".ptx")
        os.makedirs(self.work, exist_ok=True)
        if not os.path.exists(ptx) or os.path.getmtime(ptx) < os.path.getmtime(source):
            compiler = shutil.which("nvcc")
            if compiler is None:
                return
            command = [compiler, "-ptx", "-arch=sm_" + target, "-O3", "-std=c++17", "-w",
                       *(flags.group(1).split() if flags else []), os.path.basename(source), "-o", ptx]
            if subprocess.run(command, cwd=os.path.dirname(source), capture_output=True, check=False).returncode != 0:
                return
        self.dump_tool_on(self.output, f"{item}={ptx}")


def hashes_below(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()[:DIGITS]
    return found


def read_list(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {name: value for value, name in (line.rstrip("\n").split("\t") for line in file)}


def write_list(path, hashes):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{hashes[name]}\t{name}\n" for name in sorted(hashes))


def item_of(name):
    return name.rsplit("/", 1)[0]


def comparable(expected, found):
    """Both without features whose text another compiler has changed, or that no compiler has made."""
    features = {item_of(name) for name in expected | found if name.startswith("features/")}
    left_out = {item for item in features if expected.get(item + "/input") != found.get(item + "/input")}
    return ({name: value for name, value in expected.items() if item_of(name) not in left_out},
            {name: value for name, value in found.items() if item_of(name) not in left_out}, left_out)


def differences(expected, found):
    for name in sorted(expected | found):
        if name not in found:
            yield f"missing: {name}"
        elif name not in expected:
            yield f"new: {name}"
        elif expected[name] != found[name]:
            yield f"differs: {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--dump-tool", "--tool", "--root", "--list", "--output"):
        parser.add_argument(option, required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    arguments.output = os.path.abspath(arguments.output)
    now, same = os.path.join(arguments.output, "now"), os.path.join(arguments.output, "same")
    shutil.rmtree(now, ignore_errors=True)

    dumper = Dumper(arguments)
    items = dumper.items()[::arguments.every]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda item: item[1](item[0], item[2]), items))
    found = hashes_below(now)
    if arguments.bless:
        before, after, left_out = comparable(read_list(arguments.list), found)
        changed = list(differences(before, after))
        # Features that could not be made here keep their hashes.
        kept = {name: value for name, value in read_list(arguments.list).items()
                if item_of(name) in left_out and item_of(name) + "/input" not in found}
        write_list(arguments.list, found | kept)
    else:
        names = {item[0] for item in items}
        expected = {name: value for name, value in read_list(arguments.list).items()
                    if arguments.every == 1 or item_of(name) in names}
        expected, found, left_out = comparable(expected, found)
        changed = list(differences(expected, found))
    for line in changed[:200]:
        print(line)
    print(f"{len(items)} items, {len(found)} results, {len(changed)} differ{' and are blessed' * arguments.bless}"
          + (f"; without {len(left_out)} features, which need the nvcc of the list" if left_out else ""))
    if changed and not arguments.bless:
        print(f"diff -ru {same} {now}")
        return 1
    shutil.rmtree(same, ignore_errors=True)
    os.rename(now, same)
    return 0


if __name__ == "__main__":
    sys.exit(main())
