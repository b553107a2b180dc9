#!/usr/bin/env python3
"""Checks the shape of the source tree: which folders may include which, where ANTLR is visible, the length of files and
functions, and that the targets of citations in comments exist.

usage: check_layering.py [ROOT]     prints one line per violation, exit code 1 if there is any

LAYERS and MAY_SEE say which folder may include which: support <- ir/{isa <- core <- flow <- ssa, forms <- edit <- verify
<- analysis <- machine} <- {grammar, launch, transforms, emulator} <- cuda <- evaluate <- cli. Longer files and functions need a comment with the word 'Long:' and a reason: in
the first fifteen lines of the file, or in the three lines above the function.
"""
import os
import re
import sys

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 80
REASON = "Long:"
SKIPPED_FOLDERS = {".git", ".cache", "__pycache__", "build", "shared"}
CODE = (".h", ".cpp", ".cu", ".inc")
# Data in the form of code, and text that nobody reads from top to bottom.
UNLIMITED = (".def", ".g4", ".ptx", ".golden", ".tsv", ".json", ".svg", ".html")
TEXT = CODE + UNLIMITED + (".py", ".md", ".txt", ".cmake", ".toml", ".sh", "bootstrap", "run")

# From bottom to top. A file may include its own folder and the folders of lines above its own, as far as MAY_SEE allows
# for their top folders; folders of one line do not include each other. So the graph of folders is acyclic. `x/*` is each
# folder in x that no line names: one per technique.
LAYERS = """
support
support/text
ir/isa
ir/core
ir/flow
ir/ssa ir/forms
ir/edit
ir/verify
ir/analysis/linear
ir/analysis/redundancy
ir/machine/figures
ir/machine/prepare ir/machine/files
ir/machine/fuse
ir/machine/select
ir/machine/registers
grammar launch
transforms/manager
transforms/common
transforms/*
emulator/semantics emulator/memory
emulator/core
emulator/access emulator/tiles
emulator/special emulator/operations emulator/check
emulator/generated/x86
emulator/generated
emulator/cluster emulator/mbarrier
emulator/tensor_copies
emulator/tensor_memory
emulator/machines/datapath
emulator/machines/*
emulator/machines
emulator/observe
emulator/timing
cuda/driver cuda/fatbin
cuda/context
cuda/runtime cuda/driver_api cuda/ptx_run cuda/jit_link
cuda/interpose
cuda
evaluate/common evaluate/prove evaluate/reduce evaluate/machines
evaluate/lower evaluate/launches
evaluate/diff
evaluate/run evaluate/verify evaluate/bench evaluate/record evaluate/study
evaluate/score
evaluate/report
evaluate/calibrate evaluate/exec evaluate/interpose
cli cli/ptxas
python/core
examples
tests
"""
RANK = {folder: rank for rank, line in enumerate(LAYERS.split("\n")) for folder in line.split()}
MAY_SEE = {
    "support": {"support"},
    "ir": {"ir", "support"},
    "grammar": {"grammar", "ir", "support"},
    "launch": {"launch", "ir", "support"},
    "transforms": {"transforms", "ir", "support"},
    "emulator": {"emulator", "ir", "support"},
    "cuda": {"cuda", "transforms", "emulator", "grammar", "launch", "ir", "support"},
    "evaluate": {"evaluate", "cuda", "emulator", "transforms", "grammar", "launch", "ir", "support"},
    "cli": {"cli", "evaluate", "cuda", "emulator", "transforms", "grammar", "launch", "ir", "support"},
    "python": {"python", "evaluate", "cuda", "emulator", "transforms", "grammar", "launch", "ir", "support"},
    "examples": {"cuda", "transforms", "emulator", "grammar", "launch", "ir", "support"},
    "tests": {"tests", "cli", "evaluate", "cuda", "emulator", "transforms", "grammar", "launch", "ir", "support"},
}
# Narrower than that: timing models what observers record, and is independent of the papers' machines.
MAY_NOT_SEE = {
    "emulator/timing": ["emulator/machines", "emulator/observe", "emulator/special", "emulator/operations",
                        "emulator/tensor_copies", "emulator/tensor_memory"],
    "cuda/driver": ["emulator", "grammar"],
}
# The only includers of libraries that are slow to compile or that we may want to replace.
SOLE_INCLUDERS = {
    "CLI/": ("cli/options.cpp",),
    "spdlog/": ("support/log.cpp",),
    "llvm-c/": ("emulator/generated/",),
    "z3++.h": ("evaluate/prove/", "tests/"),
}
MAX_FOLDER_FILES = 40
ANTLR = re.compile(r"antlr4-runtime|^Ptx(Lexer|Parser)\w*\.h$")
UNWANTED_WORDS = re.compile(r"\b(%s)\b" % "|".join(["TO" + "DO", "FIX" + "ME"]))
REFERENCES = "docs/references.md"
PUBLIC_HEADERS = "cmake/public_headers.txt"
PAPER_KEY = re.compile(r"\b[a-z][a-z0-9]*-(?:isca|micro|hpca|asplos)[0-9]{2}\b")
PAGE = re.compile(r"\b[\w/]+\.md\b")
NUMBERED_FACT = re.compile(r"\bfacts [0-9]+")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def files_below(root):
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(s for s in subfolders if s not in SKIPPED_FOLDERS)
        for name in sorted(names):
            if name.endswith(TEXT):
                yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def is_below(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def folder_of(path):
    """The folder of LAYERS that a file belongs to; None for files without a layer."""
    matching = [folder for folder in RANK if is_below(path, folder)]
    for family in (folder[:-1] for folder in RANK if folder.endswith("/*")):
        if path.startswith(family) and "/" in path[len(family):]:
            matching.append(family + path[len(family):].split("/")[0])
    return max(matching, key=len) if matching else None


def rank_of(folder):
    return RANK[folder] if folder in RANK else RANK[os.path.dirname(folder) + "/*"]


def check_libraries(path, includes):
    for _, target in includes:
        for library, includers in SOLE_INCLUDERS.items():
            if target.startswith(library) and not path.startswith(includers):
                yield f"{path}: includes {target}; only {', '.join(includers)} may"


def may_include(folder, other, target):
    if folder == other:
        return True
    if any(is_below(target, hidden) for hidden in MAY_NOT_SEE.get(folder, [])):
        return False
    return rank_of(other) < rank_of(folder) and other.split("/")[0] in MAY_SEE[folder.split("/")[0]]


def check_edges(path, includes, known):
    folder = folder_of(path)
    for quote, target in includes:
        if ANTLR.search(target):
            if not is_below(path, "grammar"):
                yield f"{path}: includes {target}; only grammar/ may see ANTLR"
            elif target.startswith("antlr4-runtime") and not path.endswith(".cpp"):
                yield f"{path}: includes {target}; only .cpp files in grammar/ may"
            continue
        if quote != '"' or folder is None:
            continue
        if path.endswith(".cu") and os.path.normpath(f"{os.path.dirname(path)}/{target}") in known:
            continue  # CUDA programs of the tests stand alone
        if target not in known:
            yield f"{path}: includes \"{target}\", which is no path from the project root"
            continue
        other = folder_of(target)
        if other is not None and not may_include(folder, other, target):
            yield f"{path}: {folder} may not include {target}"


def check_examples(graph, public):
    """Examples show what a program outside the tree can do: they use only the public headers."""
    for path, includes in graph.items():
        for quote, target in includes:
            if is_below(path, "examples") and quote == '"' and target not in public:
                yield f"{path}: includes {target}, which is not in {PUBLIC_HEADERS}"


def check_folders(paths):
    """Code is in folders that LAYERS lists, and no folder has too many files."""
    files = {}
    for path in paths:
        if path.endswith(CODE) and not path.startswith("samples/"):
            files.setdefault(os.path.dirname(path), []).append(path)
    for folder, members in sorted(files.items()):
        if folder_of(members[0]) is None:
            yield f"{folder}: is in no layer of tests/layering"
        if len(members) > MAX_FOLDER_FILES:
            yield f"{folder}: {len(members)} files, more than {MAX_FOLDER_FILES}"


def check_antlr_reach(graph):
    """No file outside grammar/ may see ANTLR through the headers it includes."""
    sees = {path for path, includes in graph.items() if any(ANTLR.search(target) for _, target in includes)}
    changed = True
    while changed:
        changed = False
        for path, includes in graph.items():
            if path not in sees and any(target in sees for _, target in includes):
                sees.add(path)
                changed = True
    for path in sorted(sees):
        direct = any(ANTLR.search(target) for _, target in graph[path])
        if not is_below(path, "grammar") and not direct:
            yield f"{path}: sees ANTLR through a header it includes"


def without_comments_and_strings(text):
    """The same text with comments, strings and preprocessor lines blanked; line numbers do not change."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
        re.DOTALL | re.MULTILINE)
    digit_separator = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), digit_separator.sub(" ", text))


def functions(text):
    """(first line, last line) of each function body in a namespace or class, 1-based."""
    clean = without_comments_and_strings(text)
    stack = []
    since = 0  # start of the text before the next brace
    line = 1
    for at, char in enumerate(clean):
        if char == "\n":
            line += 1
        elif char == "{":
            head = clean[since:at]
            inside_scope = all(kind == "scope" for kind, _ in stack)
            declares = re.search(r"\b(namespace|class|struct|union|enum|extern)\b", head) and not re.search(r"\)\s*(const|noexcept|override|->.*)*\s*$", head)
            kind = "other"
            if inside_scope:
                kind = "scope" if declares else "function" if ")" in head and not re.search(r"=\s*$", head) else "other"
            stack.append((kind, line))
            since = at + 1
        elif char == "}":
            if stack:
                kind, first = stack.pop()
                if kind == "function":
                    yield first, line
            since = at + 1
        elif char == ";":
            since = at + 1


def check_lengths(path, text):
    lines = text.splitlines()
    if len(lines) > MAX_FILE_LINES and not any(REASON in line for line in lines[:15]):
        yield f"{path}: {len(lines)} lines, more than {MAX_FILE_LINES}, without a '{REASON}' reason at its head"
    if path.endswith(CODE):
        for first, last in functions(text):
            length = last - first + 1
            if length > MAX_FUNCTION_LINES and not any(REASON in line for line in lines[max(0, first - 8):first]):
                yield f"{path}:{first}: function of {length} lines, more than {MAX_FUNCTION_LINES}, without a '{REASON}' reason above it"


def check_head(path, text):
    if path.endswith(".h"):
        if not text.startswith("//"):
            yield f"{path}: does not open with a comment that says what it is for"
        if "#pragma once" not in text:
            yield f"{path}: no #pragma once"


def check_words(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        found = UNWANTED_WORDS.search(line)
        if found:
            yield f"{path}:{number}: leaves a {found.group()}; finish it or file an issue"


def check_citations(path, text, known, references):
    """Papers cited by key must be in docs/references.md; pages and tables cited in code must be in the tree."""
    for number, line in enumerate(text.splitlines(), 1):
        for key in PAPER_KEY.findall(line):
            if key not in references:
                yield f"{path}:{number}: cites {key}, which {REFERENCES} does not have"
        if not path.endswith((".h", ".cpp")):
            continue
        comment = line.partition("//")[2]
        for page in PAGE.findall(comment):
            if not any(is_below(name, page) or name.endswith("/" + page) for name in known):
                yield f"{path}:{number}: cites {page}, which is not in the tree"
        if NUMBERED_FACT.search(comment):
            yield f"{path}:{number}: cites a numbered fact, which is not in the tree"


def violations(root):
    paths = list(files_below(root))
    known = set(paths)
    graph = {}
    references = ""
    if REFERENCES in known:
        with open(os.path.join(root, REFERENCES), encoding="utf-8") as file:
            references = file.read()
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        yield from check_words(path, text)
        yield from check_citations(path, text, known, references)
        if path.endswith(UNLIMITED):
            continue
        yield from check_lengths(path, text)
        if path.endswith(CODE):
            graph[path] = INCLUDE.findall(text)
            yield from check_head(path, text)
            if not is_below(path, "samples"):
                yield from check_edges(path, graph[path], known)
                yield from check_libraries(path, graph[path])
    yield from check_antlr_reach(graph)
    if PUBLIC_HEADERS in known:
        with open(os.path.join(root, PUBLIC_HEADERS), encoding="utf-8") as file:
            yield from check_examples(graph, set(file.read().split("\n")))
    yield from check_folders(paths)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    found = list(violations(root))
    for line in found:
        print(line)
    print(f"layering: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
