#!/usr/bin/env python3
"""Holds the reader's messages about targets against ptxas, statement by statement.

usage: judge_targets.py TARGET_VERDICTS [--ptxas PTXAS] [--every N] [--show N] [--known FILE] TARGET TARGET...

Every statement of the ISA table that PTX 9.0 has is read for each target, and given to ptxas, which only parses it (a
virtual architecture), and assembles it where the two differ. A statement is accepted if one of its texts is, which have
vectors of different lengths. Statements that are read without a message and that ptxas refuses are "let through"; those
with a message that ptxas takes are "refused". A statement that one of the two refuses for all targets says nothing of
targets: these are counted apart, as are those at which ptxas itself crashes, which it does not at each run. FILE lists
differences whose reason is known: let-through or refused, a pattern of mnemonics, the reason. Exit code 1 if there are
others, 77 without ptxas 13.0.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BATCH = 2000  # statements in a kernel
RUNS = 10  # in which a crash should show
CRASH = "exit code -"


def ask(ptxas, architecture, folder, before, statements, behind):
    """The statements that ptxas refuses, by number, each with the first message."""
    path = pathlib.Path(folder) / "statements.ptx"
    first = before.count("\n") + 1
    open_numbers, refused = list(range(len(statements))), {}
    while True:
        path.write_text(before + "".join(statements[i] + "\n" for i in open_numbers) + behind)
        done = subprocess.run([ptxas, "--gpu-name", architecture, "-O0", str(path), "-o", "/dev/null"],
                              capture_output=True, text=True)
        if done.returncode == 0:
            return refused
        found = {}
        for line, message in re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", done.stderr):
            if 0 <= int(line) - first < len(open_numbers):
                found.setdefault(open_numbers[int(line) - first], message)
        if not found:
            if len(open_numbers) == 1:  # ptxas stops without a place
                refused[open_numbers[0]] = done.stderr.strip() or f"exit code {done.returncode}"
                return refused
            for half in (open_numbers[: len(open_numbers) // 2], open_numbers[len(open_numbers) // 2 :]):
                part = ask(ptxas, architecture, folder, before, [statements[i] for i in half], behind)
                refused.update((half[i], message) for i, message in part.items())
            return refused
        refused.update(found)
        open_numbers = [i for i in open_numbers if i not in found]


class Target:
    """The statements of a target: texts [(number, text)], and by number the first text, whether it is read silently and
    whether ptxas takes it."""

    def __init__(self, arguments, name, folder):
        self.ptxas, self.name, self.folder = arguments.ptxas, name, folder
        printed = subprocess.run([arguments.tool, name, "--every", str(arguments.every)], capture_output=True, text=True)
        if printed.returncode:
            sys.exit(printed.stderr.strip() or f"{arguments.tool} ends with {printed.returncode}")
        self.before, rest = printed.stdout.split("\n\n", 1)
        rows, self.behind = rest.split("LAST\n", 1)
        self.texts, self.first_text, self.ours = [], {}, {}
        for row in rows.splitlines():
            number, verdict, text = row.split("\t", 2)
            self.first_text.setdefault(number, text)
            self.texts.append((number, text))
            self.ours[number] = self.ours.get(number, False) or verdict == "+"
        self.theirs, self.messages = self.ask(name.replace("sm_", "compute_"), self.texts)

    def ask(self, architecture, texts):
        return judged(self.ptxas, architecture, self.folder, self.before, texts, self.behind)

    def assemble(self, number):
        """Asks the real architecture for a statement on which the two differ. Returns whether ptxas crashes."""
        self.theirs[number] = False
        for text in [text for text in self.texts if text[0] == number]:
            for _ in range(RUNS):
                accepted, messages = self.ask(self.name, [text])
                self.theirs[number] = self.theirs[number] or accepted[number]
                self.messages.update(messages)
                if CRASH in self.messages[number]:
                    self.theirs[number] = self.ours[number]
                    return True
        return False

    def differing(self):
        return [number for number in self.ours if self.ours[number] != self.theirs[number]]

    def row(self, number):
        return self.first_text[number], self.ours[number], self.theirs[number], self.messages[number]


def judged(ptxas, architecture, folder, before, texts, behind):
    """Whether ptxas takes one of the texts of each statement, and its last message of each."""
    accepted, messages = {}, {}
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        refused = ask(ptxas, architecture, folder, before + "\n", [text for _, text in batch], behind)
        for i, (number, _) in enumerate(batch):
            accepted[number] = accepted.get(number, False) or i not in refused
            messages[number] = refused.get(i, messages.get(number, ""))
    return accepted, messages


def read_known(path):
    """(whether let through, pattern) of each row."""
    lines = pathlib.Path(path).read_text().splitlines() if path else []
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [(kind == "let-through", re.compile(pattern)) for kind, pattern, _ in rows]


def is_known(known, row):
    return any(row[1] == let_through and pattern.match(row[0]) for let_through, pattern in known)


def show(kind, rows, limit):
    by_mnemonic = collections.defaultdict(list)
    for row in rows:
        by_mnemonic[row[0].split()[0].rstrip(";")].append(row)
    for mnemonic, all_of in sorted(by_mnemonic.items())[:limit]:
        print(f"    {kind}: {len(all_of)} of {mnemonic}, as {all_of[0][0]}  {all_of[0][3]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--ptxas", default=shutil.which("ptxas"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--known")
    arguments = parser.parse_args()
    if not arguments.ptxas:
        print("skipped: no ptxas")
        return 77
    version = subprocess.run([arguments.ptxas, "--version"], capture_output=True, text=True).stdout
    if "release 13.0" not in version:
        print("skipped: the table's targets are those of ptxas 13.0")
        return 77
    known = read_known(arguments.known)
    wrong, crashes = 0, set()
    with tempfile.TemporaryDirectory() as folder:
        targets = [Target(arguments, name, folder) for name in arguments.targets]
        numbers = list(targets[0].ours)
        only_ours = {n for n in numbers if not any(t.theirs[n] for t in targets) and any(t.ours[n] for t in targets)}
        only_theirs = {n for n in numbers if not any(t.ours[n] for t in targets) and any(t.theirs[n] for t in targets)}
        of_all = only_ours | only_theirs
        for target in targets:
            for number in target.differing():
                if number not in of_all and not is_known(known, target.row(number)) and target.assemble(number):
                    crashes.add(number)
    print(f"{len(numbers)} statements, {len(only_ours)} of them refused by ptxas alone for all targets, "
          f"{len(only_theirs)} by the reader alone; ptxas crashes at {len(crashes)}")
    for target in targets:
        differ = [target.row(number) for number in target.differing() if number not in of_all]
        unknown = [row for row in differ if not is_known(known, row)]
        let_through, refused = [row for row in unknown if row[1]], [row for row in unknown if row[2]]
        print(f"{target.name}: {len(let_through)} let through, {len(refused)} refused, {len(differ) - len(unknown)} "
              "differ as is known")
        show("let through", let_through, arguments.show)
        show("refused", refused, arguments.show)
        wrong += len(unknown)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
