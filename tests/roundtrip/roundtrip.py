#!/usr/bin/env python3
"""Round trip of PTX files through ptxrewrite, with ptxas as the judge.

usage: roundtrip.py --tool PATH/ptxrewrite [options] FILE_OR_DIRECTORY...

For every .ptx file that ptxas accepts (the others are listed separately):
  text      `ptxrewrite opt --no-ssa` prints it; printing that again gives the identical text; the print assembles to
            the identical cubin (but for line numbers in symbols that ptxas makes up). With debug information, which holds the PTX text and its lines, the code, constant
            and launch sections must be identical instead.
    identity  `ptxrewrite opt` without passes, through SSA and back, assembles; each function has the same number of
            instructions, registers and spilled bytes.
Prints every failing file with the reason as it is found, then the kernels that got worse and the totals; writes all of it as JSON with
--json. Exit code 0: every file passed and the identity pipeline keeps --bar percent of the kernels (99).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from assembler import Assembler  # noqa: E402

PRINT_FLAGS = ["--no-ssa"]
IDENTITY_FLAGS = []
FIGURES = ("instructions", "registers", "spill_stores", "spill_loads")


def files_below(paths):
    found = []
    for path in paths:
        if os.path.isdir(path):
            for folder, _folders, names in os.walk(path):
                found += [os.path.join(folder, name) for name in names if name.endswith(".ptx")]
        else:
            found.append(path)
    return sorted(set(found))


def read(path):
    with open(path, encoding="latin-1", newline="") as file:
        return file.read()


class Failure(Exception):
    def __init__(self, stage, reason):
        super().__init__(reason)
        self.stage = stage


class RoundTrip:
    def __init__(self, tool, assembler, timeout):
        self.tool = tool
        self.assembler = assembler
        self.timeout = timeout

    def rewrite(self, stage, flags, source, destination):
        command = [self.tool, "opt", *flags, source, "-o", destination]
        try:
            result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise Failure(stage, f"no answer in {self.timeout} s")
        if result.returncode < 0:
            raise Failure(stage, f"died of signal {-result.returncode}: {result.stderr.strip()[-300:]}")
        if result.returncode != 0 or not os.path.exists(destination):
            lines = [l for l in result.stderr.splitlines() if "error" in l] or result.stderr.splitlines() or ["no message"]
            raise Failure(stage, f"exit code {result.returncode}: {lines[0].replace(os.path.dirname(source) + os.sep, '')[:300]}")
        return read(destination)

    def check_text(self, path, text, original, flags, scratch):
        printed_path = os.path.join(scratch, "printed.ptx")
        printed = self.rewrite("print", PRINT_FLAGS, path, printed_path)
        again = self.rewrite("print again", PRINT_FLAGS, printed_path, os.path.join(scratch, "again.ptx"))
        if printed != again:
            pairs = zip(printed.splitlines(), again.splitlines())
            number, (was, now) = next(((i, p) for i, p in enumerate(pairs, 1) if p[0] != p[1]), (0, ("", "")))
            raise Failure("fixed point", f"line {number}: {was.strip()[:120]!r} is printed as {now.strip()[:120]!r}")
        answer = self.assembler.assemble(printed, flags)
        if not answer["ok"]:
            raise Failure("printed text assembles", answer["message"].splitlines()[0][:300])
        if "-g" in flags or "-lineinfo" in flags:
            names = sorted(set(original["sections"]) | set(answer["sections"]))
            different = [n for n in names if original["sections"].get(n) != answer["sections"].get(n)]
            if different:
                raise Failure("same sections", f"{len(different)} sections differ: {' '.join(different)[:200]}")
        elif answer["cubin"] != original["cubin"] and (self.assembler.canonical(text, flags) !=
                                                       self.assembler.canonical(printed, flags)):
            names = [n for n in original["sections"] if original["sections"][n] != answer["sections"].get(n)]
            raise Failure("same cubin", f"cubin differs; of code sections: {' '.join(names)[:200] or 'none'}")

    def check_identity(self, path, original, flags, scratch):
        """Returns one row for each function: its figures before and after."""
        text = self.rewrite("identity", IDENTITY_FLAGS, path, os.path.join(scratch, "identity.ptx"))
        answer = self.assembler.assemble(text, flags)
        if not answer["ok"]:
            raise Failure("identity assembles", answer["message"].splitlines()[0][:300])
        missing = set(original["functions"]) ^ set(answer["functions"])
        if missing:
            raise Failure("identity keeps functions", " ".join(sorted(missing))[:300])
        rows = []
        for name, before in original["functions"].items():
            after = answer["functions"][name]
            rows.append({"function": name, "entry": before["entry"], "before": [before[f] for f in FIGURES],
                         "after": [after[f] for f in FIGURES]})
        return rows

    def check(self, path):
        result = {"path": path, "bytes": os.path.getsize(path), "failures": [], "functions": []}
        start = time.time()
        text = read(path)
        original, flags = self.assembler.assemble_original(text)
        result["flags"] = flags
        if not original["ok"]:
            result["refused"] = original["message"]
            return result
        with tempfile.TemporaryDirectory() as scratch:
            try:
                self.check_text(path, text, original, flags, scratch)
            except Failure as failure:
                result["failures"].append({"stage": failure.stage, "reason": str(failure)})
            try:
                result["functions"] = self.check_identity(path, original, flags, scratch)
            except Failure as failure:
                result["failures"].append({"stage": failure.stage, "reason": str(failure)})
                result["functions"] = [{"function": name, "entry": f["entry"], "before": [f[x] for x in FIGURES]}
                                       for name, f in original["functions"].items()]
        result["seconds"] = round(time.time() - start, 3)
        return result


def summarize(results, bar):
    accepted = [r for r in results if "refused" not in r]
    rows = [dict(row, path=r["path"]) for r in accepted for row in r["functions"]]
    kernels = [row for row in rows if row["entry"]]

    def same(row):
        return row.get("after") == row["before"]

    def worse_by(row):
        before, after = row["before"], row.get("after")
        if after is None:
            return float("inf")
        growth = [(a - b) / max(b, 1) for b, a in zip(before, after)]
        return max(growth)

    worse = sorted((row for row in rows if not same(row)), key=worse_by, reverse=True)
    text_stages = {"print", "print again", "fixed point", "printed text assembles", "same sections", "same cubin"}
    summary = {
        "files": len(results),
        "refused_by_ptxas": len(results) - len(accepted),
        "accepted": len(accepted),
        "text_identical": sum(1 for r in accepted if not any(f["stage"] in text_stages for f in r["failures"])),
        "identity_assembles": sum(1 for r in accepted if all(f["stage"] in text_stages for f in r["failures"])),
        "kernels": len(kernels),
        "kernels_same": sum(1 for row in kernels if same(row)),
        "functions": len(rows),
        "functions_same": sum(1 for row in rows if same(row)),
        "kernels_worse_by_more_than_1_percent": sum(1 for row in kernels if worse_by(row) > 0.01),
        "instructions_before": sum(row["before"][0] for row in rows if "after" in row),
        "instructions_after": sum(row["after"][0] for row in rows if "after" in row),
    }
    summary["passed"] = (all(not r["failures"] for r in accepted) and
                         summary["kernels_same"] * 100 >= bar * summary["kernels"])
    return summary, worse


def percent(part, whole):
    return f"{part} of {whole} ({100.0 * part / whole:.2f} %)" if whole else "0 of 0"


def report(results, summary, worse, shown):
    refused = [r for r in results if "refused" in r]
    for result in refused[:shown]:
        print(f"refused by ptxas: {result['path']}: {result['refused'].splitlines()[0][:160]}")
    if worse:
        print(f"functions whose figures change ({len(worse)}), worst first: {', '.join(FIGURES)}")
    for row in worse[:shown]:
        after = row.get("after", "none")
        print(f"  {row['before']} -> {after} {row['function'][:80]} in {os.path.basename(row['path'])}")
    print(f"files {summary['files']}, refused by ptxas {summary['refused_by_ptxas']}, accepted {summary['accepted']}")
    print(f"text round trip passed: {percent(summary['text_identical'], summary['accepted'])}")
    print(f"identity pipeline assembles: {percent(summary['identity_assembles'], summary['accepted'])}")
    print(f"kernels with equal figures: {percent(summary['kernels_same'], summary['kernels'])}; "
          f"worse by more than 1 %: {summary['kernels_worse_by_more_than_1_percent']}")
    print(f"all functions with equal figures: {percent(summary['functions_same'], summary['functions'])}; "
          f"instructions {summary['instructions_before']} -> {summary['instructions_after']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--tool", required=True, help="the ptxrewrite executable")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "ptxrewrite-roundtrip-cache"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for one run of the tool")
    parser.add_argument("--json", help="write summary and per-function figures here")
    parser.add_argument("--bar", type=float, default=99.0, help="percentage of kernels that must keep their figures")
    parser.add_argument("--sizes", type=int, nargs=2, metavar=("FROM", "BELOW"), help="only files of so many bytes")
    parser.add_argument("--shown", type=int, default=20, help="rows of each list to print")
    arguments = parser.parse_args()
    if shutil.which("ptxas") is None:
        print("roundtrip: ptxas is not on PATH; install the CUDA toolkit", file=sys.stderr)
        return 77

    paths = files_below(arguments.paths)
    if arguments.sizes:
        paths = [path for path in paths if arguments.sizes[0] <= os.path.getsize(path) < arguments.sizes[1]]
    if not paths:
        print("roundtrip: no .ptx files given", file=sys.stderr)
        return 2
    trip = RoundTrip(os.path.abspath(arguments.tool), Assembler(arguments.cache), arguments.timeout)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = []
        # Small files first and failures as they occur: a full run takes minutes.
        for done in as_completed([pool.submit(trip.check, path) for path in sorted(paths, key=os.path.getsize)]):
            result = done.result()
            results.append(result)
            for failure in result["failures"]:
                print(f"FAILED {result['path']}: {failure['stage']}: {failure['reason']}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{len(results)} of {len(paths)}", end="\r", file=sys.stderr)
    results.sort(key=lambda result: result["path"])
    summary, worse = summarize(results, arguments.bar)
    report(results, summary, worse, arguments.shown)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"summary": summary, "files": results}, file, indent=1)
    return 0 if summary["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
