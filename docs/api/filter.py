#!/usr/bin/env python3
"""Prints one of our headers for Doxygen: comments become documentation. The comment at the head is about
the file, a comment above a declaration or after it on its line is about that declaration; indented lines in a
comment are code.

usage: filter.py HEADER
"""
import re
import sys

COMMENT = re.compile(r"^(\s*)//( ?)(.*)$")
# A line that a macro expands to declarations, which Doxygen does not see.
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
    """With a backslash before characters that Doxygen or its Markdown would interpret; not within quotes."""
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
        if STANDARD.match(lines[at]):  # a specialisation outside of our namespaces
            while lines[at] != "};":
                at += 1
            at += 1
            continue
        match = TRAILING.match(lines[at])
        if match and not lines[at].lstrip().startswith(("#", "}")):
            # Comment lines directly below, in the same column, continue the comment.
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
