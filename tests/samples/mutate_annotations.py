#!/usr/bin/env python3
"""Takes one annotation of RegLess after the other out of the samples and runs what is left on RegLess's machine, which
has to find fault with it: an annotation that it can do without need not have been written.

usage: mutate_annotations.py PATH/ptxrewrite [--every N] [--survivors] [--kinds WORD,...] LAUNCHFILE...

Annotations in regions that the launches of the file never enter cannot be missed there; they are counted apart. So is an
erasure of a register that its region writes again, which shows in that it releases it again: the entry is put to the
same use without it, only that nobody else could have had it in between. Exit code 1: an annotation that was used was not missed.
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


def run(tool, launch, ptx):
    return subprocess.run([tool, "run", launch, "--ptx", ptx, "--regless"], capture_output=True, text=True,
                          errors="replace", timeout=120)


def lists(line, start, words):
    """Of `word R1 R2! ...` lists in a line: word, span of each register with the blank before it, and its text."""
    word = None
    for part in re.finditer(r"\s+(\S+)", line[start:]):
        text = part[1]
        if text in words:
            word = text
        elif word and REGISTER.fullmatch(text):
            yield word, (start + part.start(), start + part.end()), text


def mutations(text):
    """(kind, number of the region, line number, mutated text)"""
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
            yield "machine", (entry, None), number, without(begin, mark.end())
        elif kind == "alloc":
            for part in re.finditer(r"\s\S+=R[R:\d]+", line[begin:]):
                yield "alloc", (entry, None), number, without(begin + part.start(), begin + part.end())
        elif kind == "region":
            region = int(re.search(r"region (\d+)", line)[1])
            yield "region", (entry, region), number, without(begin, mark.end())
            for word, (first, past), register in lists(line, begin, ("preload", "invalidate")):
                yield word, (entry, region), number, without(first, past)
                if register.endswith("!"):
                    yield "last read", (entry, region), number, without(past - 1, past)
        else:
            rest = text[offset + mark.end():]
            rest = rest[: re.search(r"//@ regless (region|machine)|\Z", rest).start()]
            for word, (first, past), register in lists(line, begin + len("//@ regless"), ("erase", "evict")):
                again = word == "erase" and re.search(rf" (?:erase|evict)[^\n]* {register}\b", rest)
                yield "erase again" if again else word, (entry, region), number, without(first, past)
        offset += len(line)


def clean(text):
    """Words whose list became empty, and marks that say nothing any more, go too."""
    text = re.sub(r" (preload|invalidate|erase|evict)(?= *(preload|invalidate|erase|evict|\+)? *\n)",
                  lambda match: "" if match[2] in (None, "+") else match[0], text)
    text = re.sub(r" (preload|erase)(?= (invalidate|evict) )", "", text)
    return re.sub(r" //@ regless( \+)? *\n", "\n", text)


def regions_run(tool, launch, ptx):
    """Which regions the launches enter: kernel number and region, from the machine's own counters."""
    child = subprocess.run([tool, "run", launch, "--ptx", ptx, "--regless", "--json"], capture_output=True, text=True)
    if child.returncode != 0:
        sys.exit(f"{launch}: the annotated kernels do not run:\n{child.stderr}")
    document = json.loads(child.stdout)
    document = document[0] if isinstance(document, list) else document
    entered = {}
    for one in document["launches"]:
        for number, runs in enumerate(one.get("regless_regions", [])):
            if runs:
                entered.setdefault(one["entry"], set()).add(number)
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
            launch, kind, place, number, text = job
            path = os.path.join(folder, f"{os.path.basename(launch)}.{kind.replace(' ', '_')}.{id(job)}.ptx")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            found = run(options.tool, launch, path).returncode != 0
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
            entered = regions_run(options.tool, launch, path)
            entries = [re.search(r"(\w+)\s*\($|(\w+)\s*\(", annotated[:mark.start()].rpartition(".entry")[2])
                       for mark in re.finditer("//@ regless machine", annotated)]
            names = [next(filter(None, entry.groups())) if entry else "" for entry in entries]
            for kind, (entry, region), number, text in mutations(annotated):
                runs = entered.get(names[entry - 1], set())
                used = bool(runs) if region is None else region in runs
                if kind == "alloc" and not used:
                    used = False
                wanted = not options.kinds or kind in options.kinds.split(",")
                if not wanted:
                    continue
                count += 1
                row = counts.setdefault(kind, [0, 0, 0, 0])
                row[0] += 1
                if not used or kind == "erase again":
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
    print(f"{'annotation':12} {'written':>8} {'left':>8} {'removed':>8} {'missed':>8}")
    for kind, row in sorted(counts.items()):
        print(f"{kind:12} {row[0]:8} {row[1]:8} {row[2]:8} {row[3]:8}")
    for launch, kind, place, number, _ in survivors if options.survivors else survivors[:20]:
        print(f"not missed: {os.path.basename(launch)} line {number}, {place[0]} region {place[1]}: {kind}")
    sys.exit(1 if survivors else 0)


main()
