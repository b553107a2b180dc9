#!/usr/bin/env python3
"""Makes the source archive, compares it with its checksum and with git's list of files, unpacks it, and configures and
builds the support library from it.

usage: check_source.py CMAKE CPACK BUILD_FOLDER PROJECT_ROOT     exit code 77 where the sources are no work tree of git
"""
import glob
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile


def run(*command):
    child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if child.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{child.stdout}")


def main():
    cmake, cpack, build, root = sys.argv[1:5]
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        print("skipped: no work tree of git, whose files the archive is compared with")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run(cpack, "--config", os.path.join(build, "CPackSourceConfig.cmake"), "-B", folder)
        [archive] = glob.glob(os.path.join(folder, "*.tar.xz"))
        with open(archive, "rb") as file, open(archive + ".sha256", encoding="utf-8") as checksum:
            assert checksum.read().split()[0] == hashlib.sha256(file.read()).hexdigest(), "the checksum is wrong"
        with tarfile.open(archive) as tar:
            if hasattr(tarfile, "data_filter"):  # since Python 3.11.4
                tar.extraction_filter = tarfile.data_filter
            tar.extractall(folder)
        top = archive.removesuffix(".tar.xz")
        missing = [name for name in listed.stdout.split("\0")
                   if name and os.path.exists(os.path.join(root, name)) and not os.path.exists(os.path.join(top, name))]
        assert not missing, f"not in the archive: {missing[:10]}"
        # The same place relative to the sources as in the work tree: the compiler cache finds what was built there.
        out = os.path.join(top, os.path.relpath(build, root)) if os.path.realpath(build).startswith(
            os.path.realpath(root) + os.sep) else os.path.join(folder, "out")
        run(cmake, "-S", top, "-B", out, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")
        run(cmake, "--build", out, "--target", "ptxrewrite_support", "-j", "2")
        print(f"{os.path.basename(archive)}: {os.path.getsize(archive)} bytes; configured, the support library is built")
    return 0


if __name__ == "__main__":
    sys.exit(main())
