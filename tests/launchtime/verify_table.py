#!/usr/bin/env python3
"""Original against rewritten, in all shapes of all launch files, and with buffers exchanged; a table by pipeline.

  verify_table.py --program PTXREWRITE [--aliases] [--size NAME,...] LAUNCH_FILE ...

Each family's sites are all rewritten (`force`), and -O chooses by the model. --aliases: further launches in which one
pointer argument has the buffer of another one, where the original runs clean. Columns: cases (files and aliases),
those that a pipeline changes, shapes, launches, cases that differ, and for which reasons originals ran instead of
variants: alignment, overlapping ranges, other conditions. Exit code 1 if anything differs or fails.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PIPELINES = ["memory(force)", "narrow(force)", "divisor(force)", "warp(force)", "packed(force)", "composite(force)",
             "r2d2(force)", "-O"]
ARGUMENT = re.compile(r'\{\s*buffer\s*=\s*"([^"]+)"\s*\}')


def with_aliases(path, folder):
    """Copies of a launch file, each with one buffer argument of one launch replaced by another one of it."""
    text = path.read_text()
    files = []
    for launch in re.finditer(r"^args\s*=\s*\[.*\]\s*$", text, re.MULTILINE):
        arguments = list(ARGUMENT.finditer(launch.group()))
        for one in arguments:
            for other in arguments:
                if one.group(1) == other.group(1):
                    continue
                line = launch.group()[: one.start()] + other.group() + launch.group()[one.end() :]
                copy = text[: launch.start()] + line + text[launch.end() :]
                copy = re.sub(r'^(ptx\s*=\s*)"([^"]+)"', lambda m: f'{m[1]}"{path.parent.resolve() / m[2]}"', copy,
                              flags=re.MULTILINE)
                files.append(folder / f"{path.stem}_{len(files)}.toml")
                files[-1].write_text(copy)
    return files


def kind_of(reason):
    if " % " in reason:
        return "alignment"
    if "||" in reason:
        return "overlap"
    return "other"


def verify(program, pipeline, size, path, is_alias):
    """The result's cases; None if the original does not run, which only a launch with aliases may."""
    passes = ["-O"] if pipeline == "-O" else ["-p", pipeline]
    command = [program, "verify", str(path), *passes, "--size", size, "--no-ptxas", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        result = json.loads(done.stdout)[0]
    except (ValueError, IndexError):
        result = None
    if result is None or result["original_findings"]:
        if is_alias:
            return None
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return result["cases"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--aliases", action="store_true")
    parser.add_argument("--size", default="tiny,small")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    print(f"{'pipeline':<18}{'cases':>7}{'changed':>9}{'shapes':>8}{'launches':>10}{'differ':>8}   originals ran, by reason")
    failed = False
    with tempfile.TemporaryDirectory() as name:
        inputs = [(path, False) for path in options.files]
        if options.aliases:
            inputs += [(copy, True) for path in options.files for copy in with_aliases(path, pathlib.Path(name))]
        runs = {path for path, _ in inputs}
        for pipeline in PIPELINES:
            counts = dict.fromkeys(("cases", "changed", "shapes", "launches", "differ"), 0)
            reasons = {}
            for path, is_alias in inputs:
                cases = verify(options.program, pipeline, options.size, path, is_alias) if path in runs else None
                if cases is None:
                    runs.discard(path)
                    continue
                for case in cases:
                    counts["cases"] += 1
                    counts["changed"] += case["result"] != "unchanged"
                    counts["shapes"] += case.get("shapes", 0)
                    counts["launches"] += case.get("launches", 0)
                    if case["result"] not in ("unchanged", "identical"):
                        counts["differ"] += 1
                        print(f"{path.name}, {pipeline}: {case['result']}")
                    for reason in case.get("original_ran", []):
                        reasons[kind_of(reason)] = reasons.get(kind_of(reason), 0) + 1
            failed |= counts["differ"] > 0
            shown = ", ".join(f"{kind} {count}" for kind, count in sorted(reasons.items()))
            print(f"{pipeline:<18}{counts['cases']:>7}{counts['changed']:>9}{counts['shapes']:>8}{counts['launches']:>10}"
                  f"{counts['differ']:>8}   {shown}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
