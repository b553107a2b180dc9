"""Runs the code cells of a notebook in order, in one namespace, as Jupyter would; the last expression of a cell is
shown. The notebook must follow nbformat's rules, if that is installed, and contain no outputs.

usage: notebooks_test.py FILE PACKAGE...     exit code 77 where this interpreter lacks one of the packages
"""
import ast
import importlib.util
import json
import linecache
import os
import sys
import tempfile


def run_cell(text, name, namespace):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # Triton and numba read sources
    tree = ast.parse(text, name)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is None:
        return
    shown = eval(compile(last, name, "eval"), namespace)
    if shown is not None:
        html = shown._repr_html_() if hasattr(shown, "_repr_html_") else ""
        print(f"{name}: {html[:60]}..." if html else f"{name}: {shown!r}")


def main():
    file, packages = os.path.abspath(sys.argv[1]), sys.argv[2:]
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {sys.executable} does not have {', '.join(missing)}")
        return 77
    with open(file, encoding="utf-8") as text:
        notebook = json.load(text)
    if importlib.util.find_spec("nbformat"):
        import nbformat
        nbformat.validate(nbformat.from_dict(notebook))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert codes and not any(cell["outputs"] for cell in codes), "cells with outputs"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        os.chdir(os.path.dirname(file))
        namespace = {"__name__": "__main__"}
        for number, cell in enumerate(codes):
            run_cell("".join(cell["source"]), f"{os.path.basename(file)}[{number}]", namespace)
    print("right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
