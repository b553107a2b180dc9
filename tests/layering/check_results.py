#!/usr/bin/env python3
"""Every Result is tested before its value is used.

This finds places that use the value of a Result (support/result.h) without a test, by reading the sources: the call of
a function that returns a Result must not be dereferenced directly, and a variable that holds one must be tested
between its declaration and the first use of its value. A place where failure is impossible has the comment
`// cannot fail: why` on its line or the line above.

usage: check_results.py SOURCE_DIR | --selftest
"""
import pathlib
import re
import sys

FOLDERS = ["support", "ir", "grammar", "transforms", "emulator", "launch", "cli", "examples"]
EXEMPT = re.compile(r"//.*cannot fail:")


def functions_with_results(sources):
    """Names of functions that return a Result, and those that also name functions that do not.

    A name with its class before it, as in a definition, belongs to that function alone."""
    with_result, without = set(), set()
    declared = re.compile(r"(?:^|[;{}>\s])((?:[\w:]+(?:<[^;{}()]*>)?[&*\s]+)+)((?:\w+::)*)(\w+)\(", re.M)
    for text in sources.values():
        for match in declared.finditer(text):
            words = match.group(1)
            if re.search(r"\b(return|throw|else|new|delete|case|co_return|and|or|not)\b", words):
                continue
            names = with_result if re.search(r"(^|\s)(\w+::)*Result<", words) else without
            names.add(match.group(3))
            if match.group(2):
                names.add(match.group(2).split("::")[-2] + "::" + match.group(3))
    return with_result, with_result & without


def closing(text, opening):
    """Index of the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return len(text) - 1


def end_of_block(text, start):
    """The end of the block that contains `start`."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth < 0:
                return i
    return len(text)


def without_comments_and_strings(text):
    """The same text with the same positions, with blanks for comments and the contents of strings."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, text, flags=re.S)


def returns_result(path, name, results, ambiguous):
    """Does a call of `path` and `name` call a function that returns a Result?"""
    owner = re.search(r"(\w+)::$", path)
    qualified = f"{owner.group(1)}::{name}" if owner else name
    if qualified in results:
        return qualified not in ambiguous
    return name in results and name not in ambiguous


def find(text, results, ambiguous):
    """Line numbers and the errors there."""
    code = without_comments_and_strings(text)
    lines = text.split("\n")
    found = []

    def report(at, what):
        number = code.count("\n", 0, at) + 1
        if not any(EXEMPT.search(line) for line in lines[max(0, number - 2):number]):
            found.append((number, what))

    for match in re.finditer(r"(?P<star>\*\s*)?(?P<path>(?:[\w]+(?:::|\.|->))*)(?P<name>\w+)\(", code):
        name = match.group("name")
        if not returns_result(match.group("path"), name, results, ambiguous):
            continue
        behind = code[closing(code, match.end() - 1) + 1:].lstrip()
        before = code[:match.start()].rstrip()
        # `Type *name(` declares, `a * name(` multiplies.
        star = match.group("star") and not re.search(r"[\w)\]>]$", before.replace("return", "("))
        if star or behind.startswith("->") or behind.startswith(".value()"):
            report(match.start(), f"takes the value of {name}() without a look")

    declared = re.compile(r"\b(?:const\s+)?(?:(?:\w+::)*Result<[^;={}]*?>|auto)\s*&?\s+(\w+)\s*=\s*([^;]*);")
    for match in declared.finditer(code):
        variable, value = match.group(1), match.group(2)
        if "Result<" not in match.group(0):
            call = re.match(r"((?:\w+(?:::|\.|->))*)(\w+)\(", value)
            if not call or not returns_result(call.group(1), call.group(2), results, ambiguous):
                continue
            if closing(value, call.end() - 1) != len(value) - 1:
                continue
        if value.count(")") > value.count("("):
            continue  # declared in a condition, which is the test
        rest = code[match.end():end_of_block(code, match.end())]
        v = re.escape(variable)
        use = re.search(rf"(?:(?<![\w)\]>*])\s*\*{v}\b)|\b{v}->|\b{v}\.value\(\)", rest)
        look = re.search(rf"!\s*{v}\b(?!->|\.value)|\b{v}\.ok\(\)|(?:[(&|=]|return)\s*{v}\s*(?:\)|&&|\|\||\?|;)|\b{v}\s*\?", rest)
        if use and (not look or look.start() > use.start()):
            report(match.end() + use.start(), f"takes the value of '{variable}' before any look at it")
    return found


def check(root):
    sources = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                sources[path] = path.read_text()
    results, ambiguous = functions_with_results({p: without_comments_and_strings(t) for p, t in sources.items()})
    bad = 0
    for path, text in sources.items():
        if path.name == "result.h":
            continue
        for number, what in find(text, results, ambiguous):
            print(f"{path.relative_to(root)}:{number}: {what}")
            bad += 1
    print(f"{len(sources)} files, {len(results)} functions return a Result, {bad} findings")
    return bad


def selftest():
    head = ("Result<int> parse(int x);\nstruct A { static Result<B> make(); };\n"
            "Result<C> C::read(int x) {}\nint D::read(int x) {}\n")
    bad = ["int f() { return *parse(1); }",
           "int f() { return parse(1).value(); }",
           "void f() { A::make()->go(); }",
           "C f() { return *C::read(1); }",
           "int f() { Result<int> r = parse(1); return *r; }",
           "int f() { auto r = parse(1); g(*r); if (!r) return 0; return 1; }",
           "void f() { const auto r = A::make(); r->go(); }"]
    good = ["int f() { Result<int> r = parse(1); if (!r) return 0; return *r; }",
            "int f() { auto r = parse(1); return r ? *r : 0; }",
            "int f() { auto r = parse(1); return r.ok() && *r > 2; }",
            "int f() { if (Result<int> r = parse(1)) return *r; return 0; }",
            "int f() { if (Result<int> r = parse(1)) g(*r); return 0; }",
            "int f() { return *parse(1); } // cannot fail: 1 is a number",
            "// return *parse(1);",
            "int f() { return *D::read(1); }",
            "int f(int a) { auto other = count(1); return a * other; }"]
    for text, wanted in [(t, True) for t in bad] + [(t, False) for t in good]:
        results, ambiguous = functions_with_results({"": head + text})
        if bool(find(head + text, results, ambiguous)) != wanted:
            print(f"selftest: {'missed' if wanted else 'wrongly found'}: {text}")
            return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(selftest() if sys.argv[1] == "--selftest" else bool(check(pathlib.Path(sys.argv[1]))))
