#!/usr/bin/env python3
"""Legal but unusual PTX in every command: the files of cases/, and registers that are never written, written again, or
written on some paths.

Kernels of the latter kind consist of a state of three registers (%x of 32 bits, %y of 64, the predicate %q), a use of
one of them, and a shape of body. Every pass in every form rewrites them, with --verify-each, and the result must be readable again;
analyses must end without a signal; and kernels that read only what they have written must have the same results on the
emulator when rewritten (`verify`). If ptxas accepts a case, it must accept the rewritten case.

usage: check_unusual.py TOOL [STATE or FILE.ptx...]
"""
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = """	.reg .b32 %x, %z, %t, %u, %v, %w, %i;
	.reg .b64 %y, %yy, %out, %in, %a, %b, %c;
	.reg .pred %q, %p, %s;
"""
# Element %t of both buffers; the base of the first one is %out, that of the second one %in.
START = """	mov.u32 %t, %tid.x;
	setp.lt.u32 %p, %t, 8;
"""
WRITE = """	mov.u32 %x, %t;
	mul.wide.u32 %b, %t, 4;
	add.s64 %y, %out, %b;
	setp.lt.u32 %q, %t, 16;
"""
WRITE_AGAIN = """	shl.b32 %x, %t, 1;
	mul.wide.u32 %b, %x, 4;
	add.s64 %y, %out, %b;
	setp.gt.u32 %q, %t, 4;
"""


def guarded(text, guard):
    return "".join(f"\t{guard} {line.strip()}\n" for line in text.splitlines())


# Name: the text before and after the use `U`, and whether everything that is read was written.
STATES = {
    "never": ("U", False),
    "twice": (WRITE + "U" + WRITE_AGAIN + "U", True),
    "same_again": (WRITE + "U" + WRITE + "U", True),
    "one_path": ("\t@%p bra SKIP;\n" + WRITE + "SKIP:\nU", False),
    "other_path_exits": ("\t@%p bra LEAVE;\n" + WRITE + "U", True),
    "read_on_the_path": ("\t@%p bra SKIP;\n" + WRITE + "U" + "SKIP:\n", True),
    "guarded": (guarded(WRITE, "@%p") + "U", False),
    "guarded_twice": (guarded(WRITE, "@%p") + guarded(WRITE_AGAIN, "@!%p") + "U", True),
    "in_a_loop": ("\tmov.u32 %i, 0;\nLOOP:\n" + WRITE + "\tadd.u32 %i, %i, 1;\n\tsetp.lt.u32 %s, %i, 3;\n"
                  "\t@%s bra LOOP;\nU", True),
    "of_the_last_trip": ("\tmov.u32 %i, 0;\nLOOP:\nU" + WRITE + "\tadd.u32 %i, %i, 1;\n\tsetp.lt.u32 %s, %i, 3;\n"
                         "\t@%s bra LOOP;\n", False),
    "of_itself": ("\tadd.u32 %x, %x, 4;\n\tadd.s64 %y, %y, 4;\n\tnot.pred %q, %q;\nU", False),
    "of_each_other": ("\tadd.s64 %y, %yy, 4;\n\tadd.s64 %yy, %y, 4;\n\tadd.u32 %x, %z, 4;\n\tadd.u32 %z, %x, 4;\nU",
                      False),
    "later": ("U" + WRITE + "\tst.global.u32 [%y], %x;\n", False),
    "unreached": ("\tbra OVER;\n" + WRITE + "OVER:\nU", False),
}
# Each stores something at element %t or at most 3 words after it.
USES = {
    "address": "\tst.global.u32 [%y], %t;\n\tld.global.u32 %v, [%y+4];\n\tst.global.u32 [%a], %v;\n",
    "index": "\tmul.wide.u32 %b, %x, 4;\n\tadd.s64 %c, %in, %b;\n\tld.global.u32 %v, [%c];\n\tst.global.u32 [%a], %v;\n",
    "equal_sums": "\tadd.s64 %c, %y, %b;\n\tst.global.u32 [%a], %t;\n\tadd.s64 %c, %y, %b;\n\tcvt.u32.u64 %v, %c;\n"
                  "\tsub.u32 %v, %v, %v;\n\tst.global.u32 [%a+4], %v;\n",
    "branch": "\tmov.u32 %v, 1;\n\t@%q bra B;\n\tmov.u32 %v, 2;\nB:\n\tst.global.u32 [%a], %v;\n",
    "branch_to_addresses": "\tmov.s64 %c, %in;\n\t@!%q bra B;\n\tadd.s64 %c, %in, 64;\nB:\n\tmul.wide.u32 %b, %t, 4;\n"
                           "\tadd.s64 %c, %c, %b;\n\tld.global.u32 %v, [%c];\n\tst.global.u32 [%a], %v;\n",
    "guard": "\tmov.u32 %v, 3;\n\t@%q add.u32 %v, %v, %t;\n\tst.global.u32 [%a], %v;\n",
    "guarded_store": "\t@%q st.global.u32 [%a], %t;\n",
    "selp": "\tselp.b32 %v, %t, %x, %q;\n\tst.global.u32 [%a], %v;\n",
    "times_zero": "\tmad.lo.u32 %v, %x, 0, %t;\n\tst.global.u32 [%a], %v;\n",
    "arithmetic": "\tshl.b32 %v, %x, 2;\n\tadd.u32 %v, %v, 7;\n\tmin.u32 %v, %v, %t;\n\tdiv.u32 %w, %x, 3;\n"
                  "\tlop3.b32 %v, %v, %w, %t, 0x96;\n\tst.global.u32 [%a], %v;\n",
    "compare": "\tsetp.eq.u32 %s, %x, 5;\n\tselp.u32 %v, 1, 0, %s;\n\tsetp.gt.u64 %s, %y, 5;\n"
               "\t@%s add.u32 %v, %v, 1;\n\tst.global.u32 [%a], %v;\n",
    "limit": "\tand.b32 %u, %x, 3;\n\tmov.u32 %v, 0;\n\tmov.u32 %w, 0;\nB:\n\tadd.u32 %v, %v, %w;\n\tadd.u32 %w, %w, 1;\n"
             "\tsetp.le.u32 %s, %w, %u;\n\t@%s bra B;\n\tst.global.u32 [%a], %v;\n",
    "vector": "\tst.global.v2.u32 [%a], {%x, %t};\n\tmov.b64 {%v, %w}, %y;\n\tst.global.u32 [%a], %x;\n",
    "table": "\tand.b32 %u, %x, 1;\nB: .branchtargets C, D;\n\tbrx.idx %u, B;\nC:\n\tst.global.u32 [%a], 1;\nD:\n",
    "atomic": "\tatom.global.add.u32 %v, [%a], %x;\n",
    "pair": "\tmov.b64 %c, {%x, %t};\n\tshr.u64 %c, %c, 32;\n\tcvt.u32.u64 %v, %c;\n\tst.global.u32 [%a], %v;\n",
}
# K is replaced by the name of the kernel, BODY by the body.
PARAMETERS = "(.param .u64 pout, .param .u64 pin)"
ADDRESSES = """	ld.param.u64 %out, [pout];
	ld.param.u64 %in, [pin];
"""
END = "LEAVE:\n\tret;\n"
PLACE = "\tmul.wide.u32 %b, %t, 16;\n\tadd.s64 %a, %out, %b;\n"
SHAPES = {
    "entry": ".visible .entry K" + PARAMETERS + "\n{\n" + REGISTERS + ADDRESSES + START + PLACE + "BODY" + END + "}\n",
    "label_first": ".visible .entry K" + PARAMETERS + "\n{\n" + REGISTERS + "FIRST:\n" + ADDRESSES + START + PLACE +
                   "BODY" + END + "}\n",
    "function": ".func K_f" + PARAMETERS + "\n{\n" + REGISTERS + ADDRESSES + START + PLACE + "BODY" + END + "}\n"
                ".visible .entry K" + PARAMETERS + "\n{\n\t.reg .b64 %o, %n;\n\tld.param.u64 %o, [pout];\n"
                "\tld.param.u64 %n, [pin];\n\t{\n\t.param .b64 s0;\n\t.param .b64 s1;\n\tst.param.b64 [s0], %o;\n"
                "\tst.param.b64 [s1], %n;\n\tcall.uni K_f, (s0, s1);\n\t}\n\tret;\n}\n",
}
FORCED = ["r2d2(force)", "r2d2(force,candidates=1)", "r2d2(force,persistent)", "dac(force)", "dac(force,form=ring)",
          "dac(force,form=producer)", "composite(force)", "schedule(force)", "spill(limit=16,predicates=4)", "dce",
          "r2d2(force),composite(force),dac(force),schedule(force)"]
REWRITES = ([["--no-ssa"], [], ["-O"], ["-p", "darsie", "--specialise", "block=32"],
             ["-p", "darsie(force)", "--specialise", "block=32,grid=1"]] +
            [["-p", passes] for passes in FORCED] +
            [["-p", passes, "--form", form] for passes in ("r2d2", "dac", "composite", "darsie", "regless", "schedule")
             for form in ("hardware", "annotated")] +
            [["-p", passes] for passes in ("r2d2", "dac", "composite", "schedule", "regless")])
ANALYSES = ([["analyze"], ["analyze", "--cfg"], ["mark"]] +
            [[command, "-p", passes, "--form", form] + (["--effort", "1"] if command == "prove" else [])
             for command in ("diff", "prove") for passes in ("r2d2", "dac")
             for form in ("legal", "hardware")])
LAUNCH = ["--grid", "2", "--block", "32", "--arg", "buffer=u32:512:zeros:out", "--arg", "buffer=u32:512:iota"]


def kernels_of(state):
    """Name, text of each kernel."""
    body, _ = STATES[state]
    for (use, snippet), (shape, frame) in itertools.product(USES.items(), SHAPES.items()):
        text = ""
        for number, part in enumerate(body.split("U")):
            part = part if number == 0 else snippet_numbered(snippet, number) + part
            text += part
        name = f"{state}_{use}_{shape}"
        yield name, frame.replace("BODY", text).replace("K", name)


def snippet_numbered(snippet, number):
    """Labels unique to each use."""
    for label in ("B", "C", "D"):
        snippet = snippet.replace(f"\n{label}:", f"\n{label}{number}:").replace(f"bra {label};", f"bra {label}{number};")
        snippet = snippet.replace(f", {label};", f", {label}{number};")
    return snippet.replace(".branchtargets C,", f".branchtargets C{number},")


class Checker:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.failures, self.runs = [], 0
        self.ptxas = os.environ.get("PTXREWRITE_PTXAS") or shutil.which("ptxas") or shutil.which(
            "/usr/local/cuda/bin/ptxas")

    def run(self, arguments, allowed):
        """The standard output, or None if the exit status is not allowed."""
        self.runs += 1
        done = subprocess.run([self.tool] + [str(a) for a in arguments], capture_output=True, cwd=self.folder)
        if done.returncode in allowed:
            return done.stdout
        self.last = (done.returncode, done.stderr.decode(errors="replace")[:300])
        return None

    def rewrite(self, path, options):
        out = self.folder / "out.ptx"
        if self.run(["opt", path, "--no-ptxas", "--verify-each", "-o", out] + options, {0}) is None:
            return False
        return self.run(["opt", "--no-ssa", out, "-o", "/dev/null"], {0}) is not None

    def each(self, state, kernels, module, what, check):
        """The whole module first; then kernel by kernel to find the failing one."""
        if check(module):
            return
        before = len(self.failures)
        for name, text in kernels:
            path = self.folder / f"{name}.ptx"
            path.write_text(HEAD + text)
            if not check(path):
                self.failures.append(f"{name}: {what}: exit {self.last[0]}: {self.last[1]}")
        if len(self.failures) == before:
            self.failures.append(f"{state}, all kernels in one file: {what}: exit {self.last[0]}: {self.last[1]}")

    def check(self, state):
        kernels = list(kernels_of(state))
        module = self.folder / f"{state}.ptx"
        module.write_text(HEAD + "".join(text for _, text in kernels))
        for options in REWRITES:
            self.each(state, kernels, module, "opt " + " ".join(options), lambda path: self.rewrite(path, options))
        for command in ANALYSES:
            no_ptxas = ["--no-ptxas"] if command[0] in ("diff", "prove") else []
            self.each(state, kernels, module, " ".join(command),
                      lambda path: self.run(command[:1] + [path] + command[1:] + no_ptxas, {0, 4}) is not None)
        self.check_launches(state, kernels, module)

    def assembles(self, path):
        target = next(line.split()[1] for line in path.read_text().splitlines() if line.startswith(".target"))
        return subprocess.run([self.ptxas, f"-arch={target}", str(path), "-o", os.devnull],
                              capture_output=True).returncode == 0

    def check_case(self, case):
        judged = self.ptxas and self.assembles(case)
        for options in REWRITES:
            if not self.rewrite(case, options):
                self.failures.append(f"{case.name}: opt {' '.join(options)}: exit {self.last[0]}: {self.last[1]}")
            elif judged and "hardware" not in options and not self.assembles(self.folder / "out.ptx"):
                self.failures.append(f"{case.name}: opt {' '.join(options)}: ptxas does not take the result")
        for command in ANALYSES:
            if self.run(command[:1] + [case] + command[1:], {0, 4}) is None:
                self.failures.append(f"{case.name}: {' '.join(command)}: exit {self.last[0]}: {self.last[1]}")

    def check_launches(self, state, kernels, module):
        defined = STATES[state][1]
        if not defined:  # undefined values are read: kernels may fault, but no more
            for (name, _), command in itertools.product(kernels, ("run", "study")):
                if self.run([command, module, "-k", name, "--fuel", "100000"][:4 if command == "study" else None] + LAUNCH,
                            {0, 3}) is None:
                    self.failures.append(f"{name}: {command}: exit {self.last[0]}: {self.last[1]}")
            return
        launches = "".join(f'[[launch]]\nkernel = "{name}"\ngrid = 1\nblock = 32\nargs = [ {{ buffer = "o" }}, '
                           f'{{ buffer = "i" }} ]\n' for name, _ in kernels)
        plan = self.folder / f"{state}.toml"
        plan.write_text(f'ptx = "{module.name}"\n{launches}[buffer.o]\ntype = "u32"\ncount = 512\noutput = true\n'
                        '[buffer.i]\ntype = "u32"\ncount = 512\ninit = "iota"\n')
        for command in (["run"], ["study"], ["score", "--gpu", "titanv,sm_90"], ["score", "--gpu", "gtx480"]):
            if self.run(command[:1] + [plan] + command[1:], {0}) is None:
                self.failures.append(f"{state}: {' '.join(command)}: exit {self.last[0]}: {self.last[1]}")
        for options in (["-p", "all"], ["-p", "r2d2(force)"], ["-p", "dac(force)"], ["-p", "composite(force)"],
                        ["-p", "schedule(force)"], ["-p", "spill(limit=16,predicates=4)"],
                        ["-p", "r2d2", "--form", "hardware"], ["-p", "dac", "--form", "hardware"],
                        ["-p", "composite", "--form", "hardware"]):
            if self.run(["verify", plan, "--no-ptxas", "--given-shapes"] + options, {0}) is None:
                self.failures.append(f"{state}: verify {' '.join(options)}: exit {self.last[0]}: {self.last[1]}")


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    wanted = sys.argv[2:] or list(STATES)
    kernels = 0
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(tool, pathlib.Path(folder))
        if not checker.ptxas:
            print("no ptxas: what it says of the results is not asked")
        for word in wanted:
            if word.endswith(".ptx"):
                checker.check_case(pathlib.Path(word).resolve())
                kernels += 1
            else:
                checker.check(word)
                kernels += sum(1 for _ in kernels_of(word))
    for failure in checker.failures:
        print(failure)
    print(f"{kernels} kernels, {checker.runs} runs, {len(checker.failures)} failures")
    return bool(checker.failures)


if __name__ == "__main__":
    sys.exit(main())
