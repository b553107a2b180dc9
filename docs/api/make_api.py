#!/usr/bin/env python3
"""Makes the reference of the public headers by Doxygen: OUTPUT/html/index.html.

usage: make_api.py ROOT OUTPUT     exit code 77 where there is no doxygen
"""
import os
import re
import shutil
import subprocess
import sys

SETTINGS = {
    "PROJECT_NAME": "ptxrewrite", "PROJECT_BRIEF": '"The public headers"', "GENERATE_LATEX": "NO", "EXTRACT_ALL": "YES",
    "JAVADOC_AUTOBRIEF": "YES", "QUIET": "YES", "WARN_IF_UNDOCUMENTED": "NO", "WARN_AS_ERROR": "NO", "SORT_MEMBER_DOCS": "NO",
    "FULL_PATH_NAMES": "YES", "HIDE_UNDOC_RELATIONS": "YES", "SOURCE_BROWSER": "NO", "VERBATIM_HEADERS": "NO",
    "SHOW_INCLUDE_FILES": "NO", "GENERATE_TREEVIEW": "YES", "DISABLE_INDEX": "YES", "HTML_TIMESTAMP": "NO", "HAVE_DOT": "NO",
    "MACRO_EXPANSION": "NO", "SEARCH_INCLUDES": "NO", "EXCLUDE_SYMBOLS": "std", "EXTRACT_PRIVATE": "NO", "TAB_SIZE": "2",
}


def project_version(root):
    with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(ptxrewrite VERSION (\S+)", file.read()).group(1)


def installed_headers(root):
    """The public headers, and those of our headers that they include."""
    with open(os.path.join(root, "cmake", "public_headers.txt"), encoding="utf-8") as file:
        waiting = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    found = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            with open(os.path.join(root, name), encoding="utf-8") as file:
                waiting += re.findall(r'^\s*#\s*include "([^"]+)"', file.read(), re.MULTILINE)
    return sorted(found)


def main_page(root, headers):
    """By topic, as in cmake/public_headers.txt; then the headers that these include."""
    lines = ["# ptxrewrite", "", "Include paths are below the folder `ptxrewrite` of the installed headers; in CMake:", "",
             "    find_package(ptxrewrite REQUIRED)", "    target_link_libraries(my_tool PRIVATE ptxrewrite::ptxrewrite)", ""]
    public = set()
    with open(os.path.join(root, "cmake", "public_headers.txt"), encoding="utf-8") as file:
        paragraphs = file.read().split("\n\n")
    for paragraph in paragraphs[1:]:
        topic, *names = paragraph.strip().splitlines()
        lines += [f"### {topic.lstrip('# ')}", ""]
        for name in names:
            public.add(name)
            with open(os.path.join(root, name), encoding="utf-8") as file:
                first = re.match(r"// (.*?[.:])(?:\s|$)", re.sub(r"\n//", "", file.read()))
            lines.append(f"* @ref {name} : {first.group(1).rstrip(':') if first else ''}")
        lines.append("")
    lines += ["### Included by them", ""] + [f"* @ref {name}" for name in headers if name not in public and name.endswith(".h")]
    return "\n".join(lines) + "\n"


def main():
    root, out = map(os.path.abspath, sys.argv[1:3])
    if not shutil.which("doxygen"):
        print("skipped: there is no doxygen here")
        return 77
    headers = installed_headers(root)
    os.makedirs(out, exist_ok=True)
    page = os.path.join(out, "index.md")
    with open(page, "w", encoding="utf-8") as file:
        file.write(main_page(root, headers))
    here = os.path.dirname(os.path.abspath(__file__))
    files = [os.path.join(root, name) for name in headers if name.endswith(".h")]
    settings = {**SETTINGS, "PROJECT_NUMBER": project_version(root), "OUTPUT_DIRECTORY": f'"{out}"',
                "STRIP_FROM_PATH": f'"{root}"', "INPUT": " ".join(f'"{name}"' for name in [page, *files]),
                "USE_MDFILE_AS_MAINPAGE": f'"{page}"',
                "FILTER_PATTERNS": f'"*.h=\\"{sys.executable}\\" -B \\"{os.path.join(here, "filter.py")}\\""'}
    configuration = os.path.join(out, "Doxyfile")
    with open(configuration, "w", encoding="utf-8") as file:
        file.writelines(f"{name} = {value}\n" for name, value in settings.items())
    # From the root, to which the headers' includes are relative.
    child = subprocess.run(["doxygen", configuration], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           check=False)
    sys.stderr.write(child.stderr)
    print(f"{len(files)} headers: {os.path.join(out, 'html', 'index.html')}")
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
