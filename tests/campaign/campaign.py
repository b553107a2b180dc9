#!/usr/bin/env python3
"""Runs all of ptxrewrite's commands on every PTX file of a folder.

usage: campaign.py --tool PATH/ptxrewrite --results FILE.jsonl [options] FILE_OR_DIRECTORY...

For each file that ptxas accepts:
  read      `opt --no-ssa`: a fixed point, and the same machine code
  identity  `opt`, through SSA and back: a fixed point, and the same machine code
  rewrites  every pass in every form, and forced: exit code 0; legal forms assemble, all forms read back
  reports   analyze, mark, diff --html
    launches  launch-template, then `run --check` and `verify -p all` of the unedited launch file

Each command has limits of processor time and memory. A row for each file and step is written to FILE.jsonl as soon as
the file is done; a later run with the same executable continues where the last one ended. Groups in the summary are the
folders directly below a given directory. Exit code 1 if a step failed.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "roundtrip"))
from assembler import Assembler  # noqa: E402
from report import print_summary, summarise  # noqa: E402
from steps import Steps  # noqa: E402
from tool import Tool  # noqa: E402

ALL_STEPS = ["read", "identity", "rewrites", "reports", "launches"]
# Options without which a pass does nothing.
NEEDED = {"spill": "limit=24", "darsie": "specialise=block=128", "regless": ""}


def rewrites_of(tool, with_ptxas):
    """(name, arguments of opt, form) for every pass in every form, and for passes with force."""
    listed = tool.run("passes", "--json")
    if not listed.ok:
        raise SystemExit(f"campaign: `passes --json` fails: {listed.kind} {listed.message}")
    choice = [] if with_ptxas else ["--no-ptxas"]
    rewrites = [("-O", ["-O", *choice], "legal")]
    for one in json.loads(listed.stdout):
        name = one["name"]
        options = {option["name"] for option in one["options"]}
        needed = [NEEDED[name]] if NEEDED.get(name) else []
        plain = f"{name}({','.join(needed)})" if needed else name
        for form in ("legal", "annotated", "hardware"):
            rewrites.append((plain, ["-p", plain, *choice], form))
        if "force" in options:
            forced = f"{name}({','.join([*needed, 'force'])})"
            rewrites.append((forced, ["-p", forced], "legal"))
        if "persistent" in options:
            rewrites.append((f"{name}(force,persistent)", ["-p", f"{name}(force,persistent)"], "legal"))
        if name == "dac":
            rewrites += [(f"dac(force,form={form})", ["-p", f"dac(force,form={form})"], "legal")
                         for form in ("ring", "registers", "prefetch", "producer")]
    return rewrites


class Settings:
    def __init__(self, arguments, tool):
        self.steps = arguments.steps
        self.fuel = arguments.fuel
        self.rewrites = rewrites_of(tool, arguments.choose_with_ptxas) if "rewrites" in self.steps else []
        self.verify_takes_fuel = tool.has_option("verify", "--fuel")


def files_below(paths):
    """(file, group) of every .ptx file, small ones first."""
    found = {}
    for path in paths:
        if not os.path.isdir(path):
            found[os.path.abspath(path)] = "files"
            continue
        for folder, _folders, names in os.walk(path):
            relative = os.path.relpath(folder, path)
            group = os.path.basename(os.path.abspath(path)) if relative == "." else relative.split(os.sep)[0]
            for name in names:
                if name.endswith(".ptx"):
                    found[os.path.abspath(os.path.join(folder, name))] = group
    return sorted(found.items(), key=lambda item: (os.path.getsize(item[0]), item[0]))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def load_results(path):
    """The last row of each file."""
    rows = {}
    if path and os.path.exists(path):
        with open(path) as file:
            for line in file:
                if line.endswith("\n"):  # an interrupted run may leave half a line
                    row = json.loads(line)
                    rows[row["path"]] = row
    return rows


def run_file(path, group, identity, tool, assembler, settings):
    start = time.time()
    with tempfile.TemporaryDirectory(prefix="campaign-") as scratch:
        rows = Steps(tool, assembler, path, scratch, settings).all()
    return {"path": path, "group": group, "identity": identity, "steps": rows,
            "failed": any(row["failed"] for row in rows), "seconds": round(time.time() - start, 2)}


def pending(files, known, identity_of, only_failed):
    for path, group in files:
        old = known.get(path)
        if only_failed and old and not old["failed"]:
            continue
        if old and old["identity"] == identity_of(path):
            continue
        yield path, group


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--tool", required=True, help="the ptxrewrite executable")
    parser.add_argument("--results", required=True, help="rows of JSON; gone on with if it exists")
    parser.add_argument("--steps", type=lambda text: text.split(","), default=ALL_STEPS, help=",".join(ALL_STEPS))
    parser.add_argument("--only-failed", action="store_true", help="of files with a result only those that failed")
    parser.add_argument("--summary", help="write the summary as tab-separated values here")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=0, help="stop after so many files")
    parser.add_argument("--seconds", type=int, default=60, help="of processor time for one command")
    parser.add_argument("--megabytes", type=int, default=100_000,
                        help="of address space for one command, of which the emulator reserves 64 GiB; 0: no limit")
    parser.add_argument("--fuel", type=int, default=2_000_000, help="warp instructions of a block, where kernels run")
    parser.add_argument("--choose-with-ptxas", action="store_true", help="without --no-ptxas: much slower")
    parser.add_argument("--no-assembler", action="store_true", help="without ptxas; nothing is assembled")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "ptxrewrite-campaign-cache"))
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if not arguments.no_assembler and shutil.which("ptxas") is None:
        print("campaign: ptxas is not on PATH; install the CUDA toolkit, or say --no-assembler", file=sys.stderr)
        return 77
    unknown = set(arguments.steps) - set(ALL_STEPS)
    files = files_below(arguments.paths)
    if unknown or not files:
        print(f"campaign: unknown steps {unknown}" if unknown else "campaign: no .ptx files given", file=sys.stderr)
        return 2
    tool = Tool(os.path.abspath(arguments.tool), arguments.seconds, arguments.megabytes)
    assembler = None if arguments.no_assembler else Assembler(arguments.cache)
    settings = Settings(arguments, tool)
    known = load_results(arguments.results)
    executable = digest(tool.path) + ",".join(arguments.steps)
    todo = list(pending(files, known, lambda path: executable + digest(path), arguments.only_failed))
    if arguments.most:
        todo = todo[:arguments.most]
    with ThreadPoolExecutor(arguments.jobs) as pool, open(arguments.results, "a") as results:
        jobs = [pool.submit(run_file, path, group, executable + digest(path), tool, assembler, settings)
                for path, group in todo]
        for done in as_completed(jobs):
            row = done.result()
            known[row["path"]] = row
            results.write(json.dumps(row) + "\n")
            results.flush()
            for step in row["steps"]:
                if step["failed"]:
                    print(f"FAILED {row['path']}: {step['step']}: {step['outcome']}: {step['message']}", flush=True)
    return print_summary(summarise([known[path] for path, _group in files if path in known]), arguments.summary)


if __name__ == "__main__":
    sys.exit(main())
