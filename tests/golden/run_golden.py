#!/usr/bin/env python3
"""Runs golden tests: one file holds the commands, their input and the expected output. README.md has the format.

usage: run_golden.py [--bless] [--tool PATH] [--root PATH] FILE.golden...
exit code: 0 all passed, 1 a difference, 2 a broken golden file, 77 all skipped
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

SECTION = re.compile(r"^==== (\w+)(?: (.*))?$")
KNOWN = {"run", "input", "stdout", "stderr", "file", "exit", "needs"}
NO_NEWLINE = "\\ no newline at the end"
TIMEOUT_SECONDS = 3600  # only ends commands that hang
EXIT_SKIPPED = 77


class BrokenGolden(Exception):
    pass


class Section:
    def __init__(self, kind, argument, lines):
        self.kind, self.argument, self.lines = kind, argument, lines

    def header(self):
        return f"==== {self.kind}" + (f" {self.argument}" if self.argument else "")

    def text(self):
        return decode_lines(self.lines)


def decode_lines(lines):
    """Section lines -> text. A line that would look like a section starts with one more backslash."""
    ends_open = bool(lines) and lines[-1] == NO_NEWLINE
    if ends_open:
        lines = lines[:-1]
    lines = [line[1:] if re.match(r"\\+====|\\\\+ no newline", line) else line for line in lines]
    return "\n".join(lines) + ("\n" if lines and not ends_open else "")


def encode_text(text):
    if not text:
        return []
    ends_open = not text.endswith("\n")
    lines = text.split("\n") if ends_open else text[:-1].split("\n")
    lines = ["\\" + line if re.match(r"\\*====|\\+ no newline", line) else line for line in lines]
    return lines + [NO_NEWLINE] if ends_open else lines


class Golden:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        self.head, self.sections = [], []
        for number, line in enumerate(lines, 1):
            match = SECTION.match(line)
            if match and match.group(1) not in KNOWN:
                raise BrokenGolden(f"{path}:{number}: unknown section '{match.group(1)}'")
            if match:
                self.sections.append(Section(match.group(1), (match.group(2) or "").strip(), []))
            elif self.sections:
                self.sections[-1].lines.append(line)
            else:
                self.head.append(line)
        if not any(line.strip() for section in self.all("run") for line in section.lines):
            raise BrokenGolden(f"{path}: no command: '==== run' is missing or empty")
        for kind in ("input", "file"):
            if any(not section.argument for section in self.all(kind)):
                raise BrokenGolden(f"{path}: '==== {kind}' needs a file name")
        if self.first("exit") and not self.first("exit").argument.lstrip("-").isdigit():
            raise BrokenGolden(f"{path}: '==== exit' needs a number")

    def all(self, kind):
        return [section for section in self.sections if section.kind == kind]

    def first(self, kind):
        found = self.all(kind)
        return found[0] if found else None

    def save(self):
        with open(self.path, "w", encoding="utf-8") as file:
            for line in self.head:
                file.write(line + "\n")
            for section in self.sections:
                file.write("\n".join([section.header()] + section.lines) + "\n")


class Outcome:
    def __init__(self, stdout, stderr, code, files):
        self.stdout, self.stderr, self.code, self.files = stdout, stderr, code, files


def execute(golden, tool, root):
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "CLICOLOR_FORCE")}
    environment.update(LC_ALL="C.UTF-8", TERM="dumb", COLUMNS="100", ROOT=root)
    if tool:
        environment["PATH"] = os.path.dirname(os.path.abspath(tool)) + os.pathsep + environment.get("PATH", "")
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        for section in golden.all("input"):
            path = os.path.join(folder, section.argument)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(section.text())
        script = "set -eo pipefail\n" + "\n".join(line for run in golden.all("run") for line in run.lines) + "\n"
        try:
            child = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return Outcome("", f"no end after {TIMEOUT_SECONDS} seconds\n", -1, {})

        def tidy(data):
            text = data.decode("utf-8", "backslashreplace")
            return text.replace(folder, "$DIR").replace(root, "$ROOT")

        files = {}
        for section in golden.all("file"):
            path = os.path.join(folder, section.argument)
            files[section.argument] = None
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    files[section.argument] = tidy(file.read())
        return Outcome(tidy(child.stdout), tidy(child.stderr), child.returncode, files)


def missing_in_order(wanted, text):
    """The first line of `wanted` that does not follow the ones before it as part of a line of `text`."""
    actual = iter(text.split("\n"))
    for line in wanted:
        if not any(line in candidate for candidate in actual):
            return line
    return None


def compare_text(name, expected, actual):
    if expected == actual:
        return []
    return list(difflib.unified_diff(encode_text(expected), encode_text(actual), "expected " + name, "actual " + name,
                                     lineterm=""))


def compare(golden, outcome):
    report = []
    for name, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        section = golden.first(name)
        if section and section.argument == "ignored":
            continue
        if section and section.argument == "contains":
            line = missing_in_order(section.lines, text)
            if line is not None:
                report += [f"{name} lacks (in this order): {line}", "it was:"] + text.split("\n")
            continue
        report += compare_text(name, section.text() if section else "", text)
    for section in golden.all("file"):
        actual = outcome.files.get(section.argument)
        if actual is None:
            report.append(f"file {section.argument} was not written")
        else:
            report += compare_text(section.argument, section.text(), actual)
    expected_code = int(golden.first("exit").argument) if golden.first("exit") else 0
    if outcome.code != expected_code:
        report.append(f"exit code {outcome.code}, expected {expected_code}")
        if outcome.stderr:
            report += ["standard error was:"] + outcome.stderr.split("\n")
    return report


def bless(golden, outcome):
    def put(kind, argument, text, after_all):
        section = next((s for s in golden.all(kind) if s.argument == argument or kind in ("stdout", "stderr")), None)
        if section and section.argument in ("contains", "ignored"):
            return
        if section is None and text:
            section = Section(kind, argument, [])
            golden.sections.append(section)
        if section is not None:
            section.lines = encode_text(text)
            if not text and not after_all:
                golden.sections.remove(section)

    put("stdout", "", outcome.stdout, False)
    put("stderr", "", outcome.stderr, False)
    for name, text in outcome.files.items():
        put("file", name, text or "", True)
    section = golden.first("exit")
    if section is None and outcome.code != 0:
        golden.sections.append(Section("exit", str(outcome.code), []))
    elif section is not None:
        section.argument = str(outcome.code)
    golden.save()


def run_one(path, options):
    """Returns 'passed', 'failed', 'blessed' or 'skipped'."""
    golden = Golden(path)
    needs = " ".join(section.argument for section in golden.all("needs")).split()
    missing = [need for need in needs if shutil.which(need) is None]
    if missing:
        print(f"{path}: skipped: needs {', '.join(missing)}")
        return "skipped"
    outcome = execute(golden, options.tool, os.path.abspath(options.root))
    report = compare(golden, outcome)
    if not report:
        return "passed"
    if options.bless:
        bless(golden, outcome)
        left = compare(Golden(path), execute(golden, options.tool, os.path.abspath(options.root)))
        print(f"{path}: " + ("blessed" if not left else "blessed, but a second run differs or 'contains' lines are missing"))
        return "blessed" if not left else "failed"
    print(f"{path}: failed")
    for line in report:
        print("    " + line)
    return "failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--bless", action="store_true", help="rewrite the expectations to what came out")
    parser.add_argument("--tool", help="the ptxrewrite executable; its folder comes first on PATH")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    options = parser.parse_args()
    options.root = os.path.realpath(options.root)
    count = {"passed": 0, "failed": 0, "blessed": 0, "skipped": 0}
    for path in options.files:
        try:
            count[run_one(path, options)] += 1
        except BrokenGolden as error:
            print(error)
            return 2
    print("golden: " + ", ".join(f"{number} {word}" for word, number in count.items() if number))
    if count["failed"]:
        return 1
    return EXIT_SKIPPED if count["skipped"] == len(options.files) else 0


if __name__ == "__main__":
    sys.exit(main())
