#!/usr/bin/env python3
"""Runs built CUDA programs under `ptxrewrite exec`, and prints which are right: one row a program, then by suite and cause.

usage: program_campaign.py --tool PTXREWRITE [LIST] [--only NAME...] [--engine ENGINE] [--seconds N]
                           [--passes PIPELINE] [--specialise N] [--verify PIPELINE] [--json FILE] [--least PERCENT]
       program_campaign.py --tool PTXREWRITE --short NVCC FOLDER

LIST, else $PTXREWRITE_PROGRAMS, has a line for each program, with fields separated by tabs:

  suite  name  folder  command  check

The command runs in the folder. A program that could not be built has `-` for a command, and the cause in place of the
check. Lines that begin with # are comments. The check is one of

  -          the program has none of its own
  exit       its exit code says whether it is right
  exit:CODE  the same; with this exit code it says that it needs another GPU, or a second one: `waived`
  refused    it does what exec refuses by name (kernels that launch kernels, memory shared by processes)
  REGEX      its output must match

--seconds limits a program's processor time (0: no limit). Exits with 1 if fewer than PERCENT of the programs that ran to
their end and have a check are right, waived and refused ones left out, or if --verify finds a difference. --short runs programs of ours whose outcomes
are known.
"""
import argparse
import collections
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile

Program = collections.namedtuple("Program", "suite name folder command check")
OUTCOMES = ("right", "no check", "wrong", "error", "waived", "refused", "too long", "not built")
# Words of a failed check, also in programs whose exit code hides it.
FAILED = re.compile(r"\b(FAIL|FAILED|Failed|FAILURE|MISMATCH|Mismatch)\b")
# Our messages, from the most specific kind of cause to the least: "file:1:2: error: text", "ptxrewrite: error: text".
MESSAGES = (re.compile(r"^.+?:\d+:\d+: error: (.*)", re.M), re.compile(r"^ptxrewrite: error: (.*)", re.M),
            re.compile(r"^(?:.*: )?error: (.*)", re.M), re.compile(r"^ptxrewrite: warning: (.*)", re.M))
OURS = MESSAGES[1]
# Our refusals by name.
REFUSED = re.compile(r"relocatable code[^\n]*|\w*Ipc\w* is not emulated")
# The first line of a report on standard error, behind the program's last words.
REPORT = re.compile(r"^(kernel +launches|original against |passes ).*", re.M | re.S)
LAST_WORDS = 100
WALL_FACTOR = 4  # programs that sleep, or wait for one another, use no processor time


class Result:
    def __init__(self, outcome, cause=""):
        self.outcome, self.cause = outcome, cause
        self.seconds = 0.0
        self.report = {}

    def total(self, key, part=None):
        rows = (self.report.get(part, {}) if part else self.report).get("kernels", [])
        return sum(row.get(key, 0) for row in rows)


def read_list(path):
    programs = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                programs.append(Program(*line.rstrip("\n").split("\t")))
    return programs


def general(message):
    """A message without addresses, numbers and names, so that equal causes are counted together."""
    message = re.sub(r"0x[0-9a-f]+", "ADDRESS", message)
    return re.sub(r"\b\d+\b", "N", message)


def cause_of(code, output, errors):
    for pattern in MESSAGES:
        if found := pattern.search(errors):
            return found.group(1)
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = (REPORT.sub("", errors).strip() or output.strip()).splitlines()
    return f"exit code {code}: {lines[-1].strip()[:LAST_WORDS] if lines else 'no output'}"


def judge(program, code, output, errors):
    if code == -signal.SIGXCPU:
        return Result("too long")
    text = output + errors
    check, _, waives = program.check.partition(":") if program.check.startswith("exit") else (program.check, "", "")
    if waives and code == int(waives):
        return Result("waived", cause_of(code, output, errors))
    if check == "refused":
        refused = REFUSED.search(errors)
        return Result("refused", refused.group()) if refused else Result("error", cause_of(code, output, errors))
    if code == 0 and (found := OURS.search(errors)):  # the program ignores errors, or does not know its results
        return Result("error", found.group(1))
    if check == "exit":
        if code == 0 and not FAILED.search(output):
            return Result("right")
    elif check != "-":
        if code == 0 and re.search(check, text, re.M) and not FAILED.search(output):
            return Result("right")
    elif code == 0:
        # The program ignores that a kernel of its own faults.
        faulted = MESSAGES[0].search(errors)
        return Result("error", faulted.group(1)) if faulted else Result("no check")
    cause = cause_of(code, output, errors)
    return Result("wrong" if code == 0 or FAILED.search(output) else "error", cause)


def limits(seconds):
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def used_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(options, program):
    if program.command == "-":
        return Result("not built", program.check)
    given = [word for name in ("engine", "passes", "specialise", "verify") if (value := getattr(options, name))
             for word in (f"--{name}", value)]
    result = run_once(options, program, given)
    if result.outcome == "wrong" and "race" not in result.cause:
        checked = run_once(options, program, ["--check"])
        if checked.cause.startswith("race"):
            result.cause = "--check: " + checked.cause
    return result


def run_once(options, program, given):
    command = [options.tool, "exec", "--device", "emulator", *given]
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        before = used_seconds()
        child = subprocess.Popen([*command, "--json", report, "--", *shlex.split(program.command)], cwd=program.folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 start_new_session=True, preexec_fn=lambda: limits(options.seconds))
        try:
            output, errors = child.communicate(timeout=options.seconds * WALL_FACTOR + 30 if options.seconds else None)
            result = judge(program, child.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            result = Result("too long", "waits")
        result.seconds = used_seconds() - before
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                result.report = json.load(file)
    return result


def share(part, all_of_it):
    return f"{100 * part / all_of_it:.0f} %" if all_of_it else "-"


def row_of(options, program, result):
    row = (f"{program.suite:14} {program.name:32} {result.outcome:9} {result.seconds:7.1f} s "
           f"{result.total('launches'):8} {result.total('warp_instructions'):14}")
    if options.passes:
        row += f" {share(result.total('rewritten_launches', 'rewriting'), result.total('launches')):>6}"
    if options.specialise:
        row += f" {share(result.total('specialised_launches', 'specialising'), result.total('launches')):>6} specialised"
    if options.verify:
        row += (f" {result.total('compared_launches', 'verification'):8} compared"
                f" {result.total('differing_bytes', 'verification'):8} differing bytes")
    return row + (f"  {result.cause}" if result.cause else "")


def print_tables(programs, results):
    by_suite = collections.defaultdict(collections.Counter)
    causes = collections.Counter()
    for program, result in zip(programs, results):
        by_suite[program.suite][result.outcome] += 1
        if result.outcome in ("wrong", "error", "waived", "refused", "not built"):
            causes[result.outcome + ": " + general(result.cause)] += 1
    print(f"\n{'suite':14} {'tried':>6}" + "".join(f" {outcome:>9}" for outcome in OUTCOMES))
    for suite, counts in by_suite.items():
        print(f"{suite:14} {sum(counts.values()):6}" + "".join(f" {counts[outcome]:9}" for outcome in OUTCOMES))
    total = sum(by_suite.values(), collections.Counter())
    print(f"{'all':14} {sum(total.values()):6}" + "".join(f" {total[outcome]:9}" for outcome in OUTCOMES))
    print()
    for cause, number in causes.most_common():
        print(f"{number:4}  {cause}")
    return total


def campaign(options, programs):
    results = []
    for program in programs:
        results.append(run(options, program))
        print(row_of(options, program, results[-1]), flush=True)
    total = print_tables(programs, results)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([{**program._asdict(), "outcome": result.outcome, "cause": result.cause,
                        "seconds": result.seconds, **result.report} for program, result in zip(programs, results)],
                      file, indent=1)
    differing = sum(result.total("differing_launches", "verification") for result in results)
    judged = total["right"] + total["wrong"] + total["error"]
    print(f"\n{share(total['right'], judged)} are right of the {judged} programs that have a check and ended in time, or failed")
    failures = judged + total["waived"] + total["refused"]
    print(f"{share(total['right'], failures)} if waived and refused programs count as failures, "
          f"{share(total['right'], failures + total['too long'] + total['not built'])} with those too long and not built")
    if options.verify:
        print(f"{sum(result.total('compared_launches', 'verification') for result in results)} launches compared, "
              f"{differing} differ")
    return results, bool(judged) and 100 * total["right"] >= options.least * judged and not differing


def compile_program(nvcc, folder, name, runtime="shared"):
    program = os.path.join(folder, f"campaign_{name}_{runtime}")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".cu")
    subprocess.run([nvcc, "-cudart", runtime, "-arch=sm_80", source, "-o", program], check=True)
    return shlex.quote(program)


def short_campaign(options):
    """Programs of ours, with the outcome of each and words of its cause."""
    nvcc, folder = options.short
    if not os.path.exists(nvcc):
        print("skipped: there is no nvcc")
        return 0
    faults, managed = compile_program(nvcc, folder, "faults"), compile_program(nvcc, folder, "managed")
    static = compile_program(nvcc, folder, "faults", "static")
    cases = [(f"{managed}", "^right$", "right", ""), (f"{managed}", "^wrong$", "wrong", "exit code 0: right"),
             (f"{managed}", "-", "no check", ""), (f"{faults} fork", "exit", "right", ""),
             (f"sh -c '{faults} out_of_bounds; exit 0'", "-", "error", "is out of bounds"),
             (f"{faults} unknown", "exit", "error", "exit code 2"), (f"{faults} unknown", "-", "error", "exit code 2"),
             (f"{static} static_runtime", "^right$", "error", "static CUDA runtime"),
             (f"{faults} out_of_bounds", "^wrong$", "wrong", "is out of bounds"),
             (f"{faults} unknown", "exit:2", "waived", "exit code 2"), (f"{faults} unknown", "exit:3", "error", ""),
             (f"{faults} missing_call", "refused", "refused", "cudaIpcOpenMemHandle is not emulated"),
             (f"{managed}", "refused", "error", "exit code 0"), ("-", "no source", "not built", "no source")]
    path = os.path.join(folder, "campaign.tsv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# suite\tname\tfolder\tcommand\tcheck\n")
        for number, (command, check, *_) in enumerate(cases):
            file.write(f"ours\tcase {number}\t{folder}\t{command}\t{check}\n")
    options.seconds = 0
    wrong = []
    for options.verify in ("", "schedule(force),dac(force)"):
        results, good = campaign(options, read_list(path))
        for number, (result, (*_, outcome, cause)) in enumerate(zip(results, cases)):
            if result.outcome != outcome or cause not in result.cause:
                wrong.append(f"case {number}: {result.outcome}, {result.cause!r}, where {outcome}, {cause!r} is right")
        if good:
            wrong.append("2 of 10 right is below 85 %")
        if not results[0].total("launches") or not results[0].total("warp_instructions"):
            wrong.append("launches are not counted")
    if not results[0].total("compared_launches", "verification"):
        wrong.append("nothing was compared")
    if judge(Program("", "", "", "", "exit"), -signal.SIGXCPU, "", "").outcome != "too long":
        wrong.append("the limit of the processor time is no error")
    if judge(Program("", "", "", "", "exit"), 0, "right", "ptxrewrite: error: no PTX\n").outcome != "error":
        wrong.append("a program that ignores errors is not right")
    print("".join(f"FAILED: {line}\n" for line in wrong), end="")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("list", nargs="?", default=os.environ.get("PTXREWRITE_PROGRAMS", ""))
    parser.add_argument("--only", nargs="*", default=[], help="names of programs or suites")
    for name in ("--engine", "--passes", "--specialise", "--verify", "--json"):
        parser.add_argument(name, default="")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--least", type=float, default=85)
    parser.add_argument("--short", nargs=2, metavar=("NVCC", "FOLDER"))
    options = parser.parse_args()
    options.tool = os.path.abspath(options.tool)
    if options.short:
        return short_campaign(options)
    if not options.list:
        print("skipped: no list of programs is named (PTXREWRITE_PROGRAMS)")
        return 0
    programs = [program for program in read_list(options.list)
                if not options.only or program.name in options.only or program.suite in options.only]
    return 0 if campaign(options, programs)[1] else 1


if __name__ == "__main__":
    sys.exit(main())
