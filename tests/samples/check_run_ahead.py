#!/usr/bin/env python3
"""The legal form of pass dac on all samples, as if compiled for another GPU: rewritten kernels leave the same memory as
the originals, with check modes on, and ptxas assembles them.

usage: check_run_ahead.py PATH/ptxrewrite SAMPLES ARCHITECTURE OPTIONS...

Each of OPTIONS is for one pass, such as force,form=ring. Without ptxas, nothing is assembled; a line says so.
"""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def run(arguments, **options):
    return subprocess.run(arguments, capture_output=True, text=True, errors="replace", **options)


def retarget(samples, folder, architecture):
    launch_files = []
    for source in sorted(samples.glob("*/*.toml")):
        target = folder / source.parent.name
        shutil.copytree(source.parent, target, dirs_exist_ok=True)
        for ptx in target.glob("*.ptx"):
            text, count = re.subn(r"^\.target sm_80$", f".target {architecture}", ptx.read_text(), flags=re.MULTILINE)
            if count != 1:
                raise SystemExit(f"{ptx}: expected one line .target sm_80")
            ptx.write_text(text)
        launch_files.append(target / source.name)
    return launch_files


def assemble(tool, ptx, options, architecture, known):
    """Rewrites and assembles; a text that equals an original or an earlier result is not assembled again."""
    child = run([tool, "opt", ptx, "-p", f"dac({options})", "--verify-each"], timeout=3600)
    if child.returncode != 0:
        return f"{ptx.name}: {child.stderr}"
    if child.stdout in known:
        return ""
    known.add(child.stdout)
    out = ptx.with_suffix(f".{len(known)}.ptx")
    out.write_text(child.stdout)
    child = run(["ptxas", f"-arch={architecture}", out, "-o", out.with_suffix(".cubin")], timeout=3600)
    return f"{ptx.name}, {options}: {child.stderr}" if child.returncode != 0 else ""


def main():
    tool, samples, architecture = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        launch_files = retarget(samples, folder, architecture)
        for options in sys.argv[4:]:
            child = run([tool, "verify", *launch_files, "-p", f"dac({options})"], timeout=3600)
            print(f"dac({options}), {architecture}: {child.stdout.strip().splitlines()[-1:]}")
            if child.returncode != 0:
                wrong.append(child.stdout + child.stderr)
            if "force" in options and "producer" not in options and " identical in" not in child.stdout:
                wrong.append(f"dac({options}) rewrote nothing")
        if shutil.which("ptxas"):
            def assemble_all(launch_file):
                known = {run([tool, "opt", launch_file.with_suffix(".ptx"), "--passes", ""]).stdout}
                found = [assemble(tool, launch_file.with_suffix(".ptx"), options, architecture, known)
                         for options in sys.argv[4:]]
                return len(known) - 1, found
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                results = list(pool.map(assemble_all, launch_files))
            wrong += [text for _, found in results for text in found if text]
            print(f"{sum(count for count, _ in results)} files assembled")
        else:
            print("no ptxas: nothing assembled")
    print("\n".join(wrong))
    raise SystemExit(1 if wrong else 0)


main()
