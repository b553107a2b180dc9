#!/usr/bin/env python3
"""Builds the Debian packages, installs them into an empty root and uses them there: the program rewrites and runs a
sample to the same text and numbers as the build's own, `exec` finds its CUDA libraries below the root, manual page and
completions are where Debian expects them, the dependencies are packages of this system, and the development package
contains only headers and static libraries. Exits with 77 if dpkg is missing.

usage: check_deb.py CPACK BUILD_FOLDER TOOL SAMPLE_FOLDER
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if child.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{child.stdout}")
    return child.stdout


def field(package, name):
    return run("dpkg-deb", "--field", package, name).strip()


def install(package, root):
    os.makedirs(os.path.join(root, "var/lib/dpkg/updates"), exist_ok=True)
    open(os.path.join(root, "var/lib/dpkg/status"), "a", encoding="utf-8").close()
    if os.geteuid() == 0:
        run("dpkg", f"--root={root}", "--force-depends", "--install", package)
    else:
        run("dpkg-deb", "--extract", package, root)


def files_below(root):
    return {os.path.relpath(os.path.join(folder, name), root)
            for folder, _, names in os.walk(root) for name in names if not folder.startswith(os.path.join(root, "var"))}


def installed_names():
    """Packages of this system and what they provide: the build's own libraries are among them."""
    text = run("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}, ${Provides}\n")
    names = set()
    for line in text.splitlines():
        status, _, packages = line.partition(" ")
        if status == "installed":
            names |= {re.split(r"[ (:]", one.strip())[0] for one in packages.split(",")}
    return names


def unmet(package):
    known = installed_names()
    return [alternatives.strip() for alternatives in field(package, "Depends").split(",")
            if not known & {re.split(r"[ (:]", one.strip())[0] for one in alternatives.split("|")}]


def main():
    cpack, build, tool, samples = sys.argv[1:5]
    if not all(map(shutil.which, ("dpkg", "dpkg-deb", "dpkg-query", "dpkg-shlibdeps"))):
        print("skipped: no dpkg here")
        return 77
    complaints = []

    def check(holds, message):
        if not holds:
            complaints.append(message)

    with tempfile.TemporaryDirectory() as folder:
        out, root = os.path.join(folder, "out"), os.path.join(folder, "root")
        run(cpack, "-G", "DEB", "--config", os.path.join(build, "CPackConfig.cmake"), "-B", out)
        packages = {field(path, "Package"): path for path in glob.glob(os.path.join(out, "*.deb"))}
        check(set(packages) == {"ptxrewrite", "libptxrewrite-dev"}, f"packages: {sorted(packages)}")
        check(len(glob.glob(os.path.join(out, "*.deb.sha256"))) == 2, "no checksums beside the packages")
        install(packages["ptxrewrite"], root)
        program = os.path.join(root, "usr/bin/ptxrewrite")
        vector_add = os.path.join(samples, "vecadd/vecadd")
        for words in (["--version"], ["opt", vector_add + ".ptx", "-p", "r2d2", "--no-ptxas"],
                      ["run", vector_add + ".toml"]):
            check(run(program, *words) == run(tool, *words), f"'{' '.join(words)}' prints something else")
        check("cannot" not in run(program, "exec", "--", "/bin/true"), "exec does not start a program")
        runtime = files_below(root)
        for wanted in ("usr/bin/ptxrewrite-ptxas", "usr/share/man/man1/ptxrewrite.1",
                       "usr/share/bash-completion/completions/ptxrewrite"):
            check(wanted in runtime, f"{wanted} is missing")
        check(not [name for name in runtime if name.endswith((".h", ".a", ".o"))], "development files in the program's package")
        for name, package in packages.items():
            check(not unmet(package), f"{name} depends on what is not here: {unmet(package)}")
        check("libantlr4-runtime" in field(packages["ptxrewrite"], "Depends"), "the reader's library is no dependency")
        install(packages["libptxrewrite-dev"], root)
        added = files_below(root) - runtime
        check(any(name.endswith("grammar/reader.h") for name in added), "no headers in the development package")
        check(all("/include/" in name or "/lib" in name for name in added), f"strange files: {sorted(added)[:5]}")
        print(f"{len(runtime)} files, {len(added)} more for development; depends on {field(packages['ptxrewrite'], 'Depends')}")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
