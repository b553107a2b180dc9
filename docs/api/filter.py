#!/usr/bin/env python3
"""A header of ours as Doxygen reads it, on standard output: comments become documentation. What opens the file is about
the file, what stands above a declaration about that, what stands behind one on its line too; indented lines in a comment
are code.

usage: filter.py HEADER
"""
import re
import sys

COMMENT = re.compile(r"^(\s*)//( ?)(.*)$")
# A line that a macro makes declarations of: Doxygen does not see which.
MACRO = re.compile(r"^\s*[A-Z][A-Z0-9_]+\([^;{]*\)\s*(//.*)?$")
STANDARD = re.compile(r"^template <.*> struct std::hash<")
TRAILING = re.compile(r'^((?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*?\S)(\s*)//( ?)(.*)$')


def as_documentation(lines, indent, opening):
    """A block of comment lines without their slashes."""
    yield f"{indent}/** {opening}".rstrip()
    in_code = False
    for line in lines:
        is_code = line.startswith("  ") or (in_code and not line.strip())
        if is_code != in_code:
            yield indent + (" @code{.cpp}" if is_code else " @endcode")
            in_code = is_code
        yield indent + " " + (line if in_code else escaped(line))
    if in_code:
        yield indent + " @endcode"
    yield indent + " */"


def escaped(text):
    """With a backslash before what Doxygen or its Markdown would take for a mark; in quotes nothing is one."""
    pieces = re.split(r'(`[^`]*`|"[^"]*")', text)
    return "".join(piece if piece.startswith(("`", '"')) else re.sub(r"([<>@\\#%*_~])", r"\\\1", piece) for piece in pieces)


def documented(text):
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        block = []
        while at < len(lines) and (match := COMMENT.match(lines[at])):
            indent = match.group(1)
            block.append(match.group(3).replace("*/", "* /"))
            at += 1
        if block:
            opens_file = at < len(lines) and not any("#pragma once" in line for line in lines[:at])
            yield from as_documentation(block, indent, "@file" if opens_file else "")
            continue
        if MACRO.match(lines[at]):
            yield ""
            at += 1
            continue
        if STANDARD.match(lines[at]):  # it has no scope of ours
            while lines[at] != "};":
                at += 1
            at += 1
            continue
        match = TRAILING.match(lines[at])
        if match and not lines[at].lstrip().startswith(("#", "}")):
            # The lines below that are comments alone, in the same column, go on with it.
            column = lines[at].index("//", len(match.group(1)))
            words = [match.group(4)]
            while at + 1 < len(lines) and lines[at + 1][:column].strip() == "" and lines[at + 1][column:column + 2] == "//":
                at += 1
                words.append(lines[at][column + 2:].strip())
            yield f"{match.group(1)} ///< {escaped(' '.join(words))}"
        else:
            yield lines[at]
        at += 1


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(documented(file.read())))


if __name__ == "__main__":
    main()
