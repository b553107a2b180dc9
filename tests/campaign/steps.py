"""The steps that are run on one PTX file, and the requirements on each."""

import json
import os
import re


def read(path):
    with open(path, encoding="latin-1", newline="") as file:
        return file.read()


def first_difference(one, other):
    for number, (was, now) in enumerate(zip(one.splitlines(), other.splitlines()), 1):
        if was != now:
            return f"line {number}: {was.strip()[:100]!r} becomes {now.strip()[:100]!r}"
    return "one is longer"


class Steps:
    """All steps over one file. Each adds a row {"step", "outcome", "failed", "message"} to `rows`."""

    def __init__(self, tool, assembler, path, scratch, settings):
        self.tool = tool
        self.assembler = assembler
        self.path = path
        self.scratch = scratch
        self.settings = settings
        self.rows = []

    # -- rows ---------------------------------------------------------------------------------------------------------

    def add(self, step, outcome="ok", failed=False, message=""):
        self.rows.append({"step": step, "outcome": outcome, "failed": failed, "message": self._without_paths(message)})
        return not failed

    def _without_paths(self, message):
        for folder in (self.scratch + os.sep, os.path.dirname(self.path) + os.sep):
            message = message.replace(folder, "")
        return message[:300]

    def must_succeed(self, step, *arguments):
        """Runs the tool; anything but success counts as a failure. Returns whether it succeeded."""
        outcome = self.tool.run(*arguments)
        if not outcome.ok:
            self.add(step, outcome.kind, True, outcome.message)
        return outcome.ok

    def file(self, name):
        return os.path.join(self.scratch, name)

    # -- reading and identity -----------------------------------------------------------------------------------------

    def assemble_original(self):
        """Whether ptxas accepts the file at all."""
        self.flags = []
        if self.assembler is None:
            return True
        self.original, self.flags = self.assembler.assemble_original(read(self.path))
        if self.original["ok"]:
            return True
        self.add("original", "refused by ptxas", False, self.original["message"].splitlines()[0])
        return False

    def assembles(self, step, text):
        """The assembler's answer, or None after recording a failure."""
        if self.assembler is None:
            return None
        answer = self.assembler.assemble(text, self.flags)
        if not answer["ok"]:
            self.add(step, "not assembled", True, answer["message"].splitlines()[0])
            return None
        return answer

    def same_code(self, step, text):
        """Whether ptxas makes the same machine code, byte for byte, from the text as from the original."""
        if self.assembler is None:
            return True
        answer = self.assembles(step, text)
        if answer is None:
            return False
        code = [n for n in set(self.original["sections"]) | set(answer["sections"]) if n.startswith(".text")]
        different = sorted(n for n in code if self.original["sections"].get(n) != answer["sections"].get(n))
        if different:
            return self.add(step, "other code", True, " ".join(different)[:200])
        return True

    def print_all(self, names, source, target):
        """Prints files of one folder into another without SSA form; name -> outcome of those that are not printed."""
        os.makedirs(target, exist_ok=True)
        paths = [os.path.join(source, name) for name in names]
        if self.tool.run("opt", "--no-ssa", *paths, "-o", target).ok:
            return {}
        failed = {}
        for name, path in zip(names, paths):
            outcome = self.tool.run("opt", "--no-ssa", path, "-o", os.path.join(target, name))
            if not outcome.ok:
                failed[name] = outcome
        return failed

    def read_back(self, texts):
        """`texts`: step -> (file in the scratch folder, whether it must itself be a fixed point). Each must be readable,
        and its print must be a fixed point. Returns the steps for which this is true; adds rows for the others."""
        folders = [self.scratch, self.file("printed"), self.file("again")]
        left = dict(texts)
        for number in (1, 2):
            names = [name for name, _exactly in left.values()]
            failed = self.print_all(names, folders[number - 1], folders[number]) if names else {}
            for step, (name, exactly) in list(left.items()):
                outcome = failed.get(name)
                if outcome:
                    self.add(step, outcome.kind if outcome.crashed else "not read back", True, outcome.message)
                    del left[step]
                elif exactly or number == 2:
                    was, now = (read(os.path.join(folders[number + i], name)) for i in (-1, 0))
                    if was != now:
                        self.add(step, "no fixed point", True, first_difference(was, now))
                        del left[step]
        return list(left)

    def reads_back(self, step, name):
        return self.read_back({step: (name, True)}) == [step]

    def reading(self):
        printed = self.file("text.ptx")
        if (self.must_succeed("read", "opt", "--no-ssa", self.path, "-o", printed)
                and self.reads_back("read", "text.ptx") and self.same_code("read", read(printed))):
            self.add("read")

    def identity(self):
        printed = self.file("identity.ptx")
        if (self.must_succeed("identity", "opt", "--verify-each", self.path, "-o", printed)
                and self.reads_back("identity", "identity.ptx") and self.same_code("identity", read(printed))):
            self.add("identity")

    # -- passes -------------------------------------------------------------------------------------------------------

    def rewrites(self):
        unchanged = read(self.file("identity.ptx")) if os.path.exists(self.file("identity.ptx")) else None
        changed = {}
        for number, (name, arguments, form) in enumerate(self.settings.rewrites):
            step, output = f"{name} {form}", f"rewritten{number}.ptx"
            if not self.must_succeed(step, "opt", self.path, *arguments, "--form", form, "--verify-each", "-o",
                                     self.file(output)):
                continue
            if read(self.file(output)) == unchanged:
                self.add(step, "unchanged")
            else:
                changed[step] = (output, form != "annotated")  # annotations are comments, which a print does not keep
        for step in self.read_back(changed):
            text = read(self.file(changed[step][0]))
            if step.endswith("hardware") or self.assembler is None or self.assembles(step, text) is not None:
                self.add(step)

    # -- other commands -----------------------------------------------------------------------------------------------

    def reports(self):
        for step, arguments in (("analyze", ["analyze", self.path]),
                                ("analyze json", ["analyze", "--json", self.path]),
                                ("mark", ["mark", self.path]),
                                ("diff legal", ["diff", self.path, "-p", "r2d2(force)", "--html", self.file("d.html")]),
                                ("diff hardware", ["diff", self.path, "-p", "r2d2", "--form", "hardware", "--html",
                                                   self.file("d.html")])):
            if self.must_succeed(step, *arguments):
                self.add(step)

    def launches(self):
        """The launch file as written by launch-template, unedited. Not every kernel runs with invented arguments, and
        not all of PTX is emulated: refusals and faults are counted; failures are crashes and rewritten kernels
        that differ from an original that runs without findings."""
        text = read(self.path)
        if not re.search(r"\.entry\b", re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)):
            return
        folder = self.file("launch")
        os.makedirs(folder, exist_ok=True)
        launch = os.path.join(folder, "launch.toml")
        outcome = self.tool.run("launch-template", self.path, "-o", launch)
        if not outcome.ok:
            self.add("launch-template", outcome.kind, True, outcome.message)
            return
        self.add("launch-template")
        fuel = ["--fuel", str(self.settings.fuel)]
        outcome = self.tool.run("run", launch, "--check", "--json", "--host-threads", "1", *fuel)
        self.add("run", outcome.kind, outcome.crashed, outcome.message)
        endless = "fuel" in outcome.stderr and not self.settings.verify_takes_fuel
        if outcome.crashed or outcome.kind == "refused" or endless:
            return
        outcome = self.tool.run("verify", launch, "-p", "all", "--no-ptxas", "--json",
                                *(fuel if self.settings.verify_takes_fuel else []))
        self.judge_verification(outcome)

    def judge_verification(self, outcome):
        if outcome.kind != "differs":
            self.add("verify", outcome.kind, outcome.crashed, outcome.message)
            return
        try:
            document = json.loads(outcome.stdout)
        except ValueError:
            self.add("verify", "no JSON", True, outcome.stdout[:100])
            return
        for report in document if isinstance(document, list) else [document]:
            wrong = [case for case in report.get("cases", []) if case["result"] == "differs"]
            names = ", ".join(f"{case['passes']} {case['form']}: {case.get('reason', 'other values')}"
                              for case in wrong)
            if report.get("original_findings"):
                self.add("verify", "differs, original not clean", False, names)
            elif wrong:
                self.add("verify", "differs", True, names)

    def all(self):
        if not self.assemble_original():
            return self.rows
        for name, step in (("read", self.reading), ("identity", self.identity), ("rewrites", self.rewrites),
                           ("reports", self.reports), ("launches", self.launches)):
            if name in self.settings.steps:
                step()
        return self.rows
