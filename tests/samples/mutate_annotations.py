#!/usr/bin/env python3
"""Removes the annotations of RegLess from the samples one at a time and runs the rest on RegLess's machine, which
must report an error: an annotation whose removal it accepts was unnecessary.

usage: mutate_annotations.py PATH/ptxrewrite [--every N] [--survivors] [--kinds WORD,...] LAUNCHFILE...

Three sorts had no effect in the launches of their file, so that a run without them is the same run; they are counted
separately ("idle"): annotations of regions that no warp entered; those of device functions, which the machine executes
unchanged; and invalidations that never met a copy, as the machine reports for the run with all annotations: a copy may
exist only on other paths through the kernel. All others must be detected. Exit code 1: one was not.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

MARK = re.compile(r"//@ regless (?P<kind>machine|alloc|region|erase|evict)[^\n]*")
REGISTER = re.compile(r"R\d+!?")


def is_missed(tool, launch, ptx, kernel):
    """Does the machine report an error? In the kernel alone, usually; else in what earlier launches have left."""
    command = [tool, "run", launch, "--ptx", ptx, "--regless"]
    return any(subprocess.run(command + more, capture_output=True, timeout=3600).returncode != 0
               for more in (["-k", kernel], []))


def lists(line, start, words):
    """The `word R1 R2! ...` lists of a line: word, span of each register with the blank before it, and its text."""
    word = None
    for part in re.finditer(r"\s+(\S+)", line[start:]):
        text = part[1]
        if text in words:
            word = text
        elif word and REGISTER.fullmatch(text):
            yield word, (start + part.start(), start + part.end()), text


def line_behind(text, place):
    return text[place: text.find("\n", place)]


def mutations(text):
    """(kind, (number of the kernel, of its region), line number, mutated text, register)"""
    region = None
    offset = 0
    entry = 0
    for number, line in enumerate(text.splitlines(True), 1):
        mark = MARK.search(line)
        if not mark:
            offset += len(line)
            continue

        def without(begin, end, put=""):
            return text[: offset + begin] + put + text[offset + end:]

        kind = mark["kind"]
        begin = mark.start()
        if kind == "machine":
            entry += 1
            region = None
            yield "machine", (entry, None), number, without(begin, mark.end()), None
        elif kind == "alloc":
            # At the head, for the whole kernel; after it, for the scope that begins there.
            following = re.search(r"//@ regless region (\d+)", line_behind(text, offset + len(line)))
            place = region if region is None or not following else int(following[1])
            for part in re.finditer(r"\s\S+=R[R:\d]+", line[begin:]):
                yield "alloc", (entry, place), number, without(begin + part.start(), begin + part.end()), None
        elif kind == "region":
            region = int(re.search(r"region (\d+)", line)[1])
            yield "region", (entry, region), number, without(begin, mark.end()), None
            for word, (first, past), register in lists(line, begin, ("preload", "invalidate")):
                yield word, (entry, region), number, without(first, past), register
                if register.endswith("!"):
                    yield "last read", (entry, region), number, without(past - 1, past), register
        else:
            for word, (first, past), register in lists(line, begin + len("//@ regless"), ("erase", "evict")):
                yield word, (entry, region), number, without(first, past), register
        offset += len(line)


def clean(text):
    """Also removes words whose list became empty, and marks without content."""
    text = re.sub(r" (preload|invalidate|erase|evict)(?= *(preload|invalidate|erase|evict|\+)? *\n)",
                  lambda match: "" if match[2] in (None, "+") else match[0], text)
    text = re.sub(r" (preload|erase)(?= (invalidate|evict) )", "", text)
    return re.sub(r" //@ regless( \+)? *\n", "\n", text)


def kernel_around(text, place):
    """Returns an empty string for a device function."""
    kind, name = re.findall(r"\.(entry|func)\b\s*(?:\([^)]*\))?\s*([\w$]+)", text[:place])[-1]
    return name if kind == "entry" else ""


def what_ran(tool, launch, ptx):
    """For the regions that the launches enter, by kernel and number: registers whose invalidation met a copy."""
    child = subprocess.run([tool, "run", launch, "--ptx", ptx, "--regless", "--json"], capture_output=True, text=True)
    if child.returncode != 0:
        sys.exit(f"{launch}: the annotated kernels do not run:\n{child.stderr}")
    document = json.loads(child.stdout)
    document = document[0] if isinstance(document, list) else document
    entered = {}
    for one in document["launches"]:
        for number, runs in enumerate(one.get("regless_regions", [])):
            if runs:
                dropped = entered.setdefault(one["entry"], {}).setdefault(number, set())
                dropped.update(f"R{register}" for register in one["regless_dropped"][number])
    return entered


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--kinds", default="")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    counts = {}
    count = 0
    survivors = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        def check(job):
            launch, kind, place, _, text = job
            path = os.path.join(folder, f"{os.path.basename(launch)}.{kind.replace(' ', '_')}.{id(job)}.ptx")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            found = is_missed(options.tool, launch, path, place[0])
            os.remove(path)
            return job, found

        jobs = []
        for launch in options.files:
            with open(launch, encoding="utf-8") as file:
                match = re.search(r'^ptx *= *"([^"]*)"', file.read(), re.MULTILINE)
            if not match:
                continue
            source = os.path.join(os.path.dirname(launch), match[1])
            child = subprocess.run([options.tool, "opt", source, "-p", "regless", "--form", "annotated"],
                                   capture_output=True, text=True)
            annotated = child.stdout
            path = os.path.join(folder, os.path.basename(source))
            with open(path, "w", encoding="utf-8") as file:
                file.write(annotated)
            entered = what_ran(options.tool, launch, path)
            names = [kernel_around(annotated, mark.start()) for mark in re.finditer("//@ regless machine", annotated)]
            for kind, (entry, region), number, text, register in mutations(annotated):
                if options.kinds and kind not in options.kinds.split(","):
                    continue
                regions = entered.get(names[entry - 1], {})
                used = bool(regions) if region is None else region in regions
                if used and kind == "invalidate":
                    used = register in regions[region]
                count += 1
                row = counts.setdefault(kind, [0, 0, 0, 0])
                row[0] += 1
                if not used:
                    row[1] += 1
                elif count % options.every == 0:
                    jobs.append((launch, kind, (names[entry - 1], region), number, clean(text)))
            if len(jobs) >= 64 or launch == options.files[-1]:
                for job, found in pool.map(check, jobs):
                    counts[job[1]][2] += 1
                    counts[job[1]][3] += found
                    if not found:
                        survivors.append(job)
                jobs = []
    print(f"{'annotation':12} {'written':>8} {'idle':>8} {'removed':>8} {'missed':>8}")
    for kind, row in sorted(counts.items()):
        print(f"{kind:12} {row[0]:8} {row[1]:8} {row[2]:8} {row[3]:8}")
    for launch, kind, place, number, _ in survivors if options.survivors else survivors[:20]:
        print(f"not missed: {os.path.basename(launch)} line {number}, {place[0]} region {place[1]}: {kind}")
    sys.exit(1 if survivors else 0)


main()
