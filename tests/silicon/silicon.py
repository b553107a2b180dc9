#!/usr/bin/env python3
"""The timing model against public measurements of GPUs, row by row, and their agreement.

usage: silicon.py SET --tool PTXREWRITE --agreement AGREEMENT_FIGURES [--half looked-at|unseen] [--only GLOB]
                  [--limit N] [--gpu NAME] [--exact] [--short] [--json FILE] [--work FOLDER]

SET is a table of this folder (README.md). A row is one of our kernels that corresponds to the measured one, launched at
its size on the whole machine; if the folder PTXREWRITE_SILICON has SET/NAME.toml, a launch file of the
original captured by `ptxrewrite exec --capture`, that one is scored instead and marked "original".
--short: a few rows, small. --limit: at most N per group, at equal distances. Rows whose variants nvcc has to compile
are left out, and counted, if there is no nvcc.
"""
import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402

ESTIMATORS = ["interval_model", "instructions", "roofline", "mwp_cwp"]
TITLES = ["interval model", "counting instructions", "roofline", "MWP-CWP"]


def half_of(name):
    """Half of the names may be used while figures and rules are tuned; the choice never changes."""
    return "looked-at" if int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0 else "unseen"


class Scorer:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def score(self, case):
        """The result of `score` for a case: its kernel's part of the JSON. None: something is missing here."""
        command = self.command_of(case)
        if command is None:
            return None
        command += ["--gpu", case.gpu, "-k", case.kernel, "--estimators", "--json"]
        if self.options.exact:
            command.append("--exact")
        else:
            command.append("--sample")
        if case.cold:
            command.append("--cold")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{case.name}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        kernels = json.loads(done.stdout)["files"][0]["versions"][0]["kernels"]
        return next(kernel for kernel in kernels if fnmatch.fnmatch(kernel["kernel"], case.kernel))

    def command_of(self, case):
        original = os.path.join(os.environ.get("PTXREWRITE_SILICON", ""), self.options.set, case.original + ".toml")
        if os.environ.get("PTXREWRITE_SILICON") and os.path.exists(original):
            case.source, case.kernel = "original", "*"
            return [self.options.tool, "score", os.path.realpath(original)]  # its files lie beside the target of a link
        path = self.launch_file(case)
        return path and [self.options.tool, "score", path, "--size", "silicon"]

    def launch_file(self, case):
        """A copy of the case's launch file with one additional size. None: there is none, or no compiler for it."""
        if not case.launch:
            return None
        with open(case.launch) as file:
            text = file.read()
        ptx = self.compiled(case) if case.source_file else os.path.join(os.path.dirname(case.launch), case.ptx)
        if ptx is None:
            return None
        text = re.sub(r'^ptx = .*$', lambda _: f"ptx = {json.dumps(ptx)}", text, flags=re.M)
        text += "\n[size.silicon]\n" + "".join(f"{name} = {value}\n" for name, value in case.sizes.items())
        path = os.path.join(self.folder, hashlib.sha256((text + case.name).encode()).hexdigest()[:16] + ".toml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def compiled(self, case):
        """PTX compiled by nvcc from our source with macros; kept in the folder."""
        if not shutil.which("nvcc"):
            return None
        # For a target that ptxas can assemble for the row's machine, so that registers are ptxas'.
        target = "sm_75" if case.gpu == "rtx2080ti" else "sm_80"
        flags = [f"-arch={target}"] + [f"-D{name}={value}" for name, value in case.macros.items()] + case.flags
        key = hashlib.sha256((case.source_file + str(flags)).encode()).hexdigest()[:16]
        path = os.path.join(self.folder, key + ".ptx")
        if not os.path.exists(path):
            made = f"{path}.{os.getpid()}.{id(case)}"
            command = ["nvcc", "-ptx", "-I", cases.ROOT, *flags, case.source_file, "-o", made]
            subprocess.run(command, check=True)
            os.replace(made, path)
        return path


def cause_of(kernel):
    """The largest component of the kernel's clocks."""
    stack = kernel["stack_clocks"]
    cause = max(stack, key=stack.get)
    return f"{cause} {100 * stack[cause] / sum(stack.values()):.0f} %"


def measured_rows(options):
    wanted = []
    for case in cases.cases_of(options.set):
        if options.only and not fnmatch.fnmatch(case.name, options.only):
            continue
        if options.gpu and case.gpu != options.gpu:
            continue
        if options.half and half_of(case.hashed) != options.half:
            continue
        if options.short and not case.short:
            continue
        wanted.append(case)
    return spread(wanted, options.limit) if options.limit else wanted


def spread(rows, limit):
    """At most `limit` rows of each group, at equal distances: neighbours in a table have similar parameters."""
    groups = {}
    for case in rows:
        groups.setdefault(case.group, []).append(case)
    kept = []
    for group in groups.values():
        count = min(limit, len(group))
        kept += [group[i * len(group) // count] for i in range(count)]
    return kept


def agreement(options, rows, rank):
    lines = "".join("\t".join([half_of(case.hashed), case.group, case.name, str(case.clocks), *map(str, estimates)]) + "\n"
                    for case, estimates in rows)
    command = [options.agreement] + (["--rank"] if rank else []) + TITLES
    return subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout


def report(options, scored, left_out):
    rows, records = [], []
    print(f"{'kernel':58} {'half':9} {'silicon clocks':>14} {'model / silicon':>15}  bound by")
    for case, kernel in scored:
        if kernel is None:
            left_out += 1
            continue
        estimates = [kernel["estimators"][name] if name in kernel.get("estimators", {}) else
                     kernel["estimates"][name] for name in ESTIMATORS]
        estimates = [estimate / kernel["launches"] for estimate in estimates]
        if options.scaled and fnmatch.fnmatch(case.name, options.scaled.rpartition("=")[0]):
            estimates[0] *= float(options.scaled.rpartition("=")[2])
        rows.append((case, estimates))
        ratio = estimates[0] / case.clocks
        mark = "" if case.source == "ours" else "  (original)"
        print(f"{case.name:58.58} {half_of(case.hashed):9} {case.clocks:14.0f} {ratio:15.2f}  {cause_of(kernel)}{mark}")
        records.append({"name": case.name, "half": half_of(case.hashed), "group": case.group, "silicon": case.clocks,
                        "estimates": estimates, "kernel": kernel})
    print()
    print(agreement(options, rows, options.set == "d"))
    if left_out:
        print(f"{left_out} rows left out: what they need is not here")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(records, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=cases.SETS)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--agreement", required=True)
    parser.add_argument("--half", choices=["looked-at", "unseen"])
    parser.add_argument("--only")
    parser.add_argument("--gpu")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--work")
    parser.add_argument("--scaled", metavar="GLOB=FACTOR", help="multiply the model's clocks of these rows: an experiment")
    options = parser.parse_args()
    wanted = measured_rows(options)
    with tempfile.TemporaryDirectory() as folder:
        if options.work:
            folder = options.work
            os.makedirs(folder, exist_ok=True)
        scorer = Scorer(options, folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            scored = list(zip(wanted, pool.map(scorer.score, wanted)))
    report(options, scored, 0)


if __name__ == "__main__":
    main()
