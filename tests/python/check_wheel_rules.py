#!/usr/bin/env python3
"""A wheel of the whole project (`pip wheel .`, python/wheel) installs the extension module and ptxrewrite-ptxas: the rules
that its configuration generates, without building anything.

usage: check_wheel_rules.py CMAKE PROJECT_ROOT PYTHON     exit code 77 where the configuration fails: no pybind11
"""
import os
import re
import subprocess
import sys
import tempfile


def rules(script):
    """The text of an installation script and of those that it includes."""
    with open(script, encoding="utf-8") as file:
        text = file.read()
    return text + "".join(rules(path) for path in re.findall(r'include\("([^"]*cmake_install\.cmake)"\)', text))


def main():
    cmake, root, python = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([cmake, "-S", os.path.join(root, "python", "wheel"), "-B", folder, "-G", "Ninja",
                               "-DSKBUILD=2", "-DSKBUILD_PROJECT_VERSION=0.1.0", f"-DPython_EXECUTABLE={python}",
                               "-DPTXREWRITE_TESTS=OFF"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print("skipped: the wheel cannot be configured here\n" + done.stderr[-500:])
            return 77
        installed = rules(os.path.join(folder, "cmake_install.cmake"))
        missing = [name for name in ("_core", "ptxrewrite-ptxas") if name not in installed]
        if missing:
            print("no rule installs", ", ".join(missing))
        return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
