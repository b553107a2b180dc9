#!/usr/bin/env python3
"""Makes a wheel of a build without a network, installs it into an empty folder and runs the package's examples with it.

usage: check_wheel.py PYTHON PROJECT_ROOT BUILD_FOLDER     exit code 77 where scikit-build-core or pybind11 is missing
"""
import glob
import os
import subprocess
import sys
import tempfile


def main():
    python, root, build = sys.argv[1:4]
    needs = "import numpy, pybind11, scikit_build_core"
    if subprocess.run([python, "-c", needs], capture_output=True, check=False).returncode != 0:
        print(f"skipped: {python} lacks one of numpy, pybind11, scikit-build-core")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "pip", "wheel", root, "--no-build-isolation", "--no-deps", "--no-index", "-w", folder,
                        "-C", f"cmake.define.PTXREWRITE_BUILD={build}"], check=True)
        [wheel] = glob.glob(os.path.join(folder, "*.whl"))
        installed = os.path.join(folder, "installed")
        subprocess.run([python, "-m", "pip", "install", "--no-deps", "--no-index", "--target", installed, wheel], check=True)
        program = "import doctest, sys, ptxrewrite\nprint(ptxrewrite.__file__)\n" \
                  "assert ptxrewrite.__file__.startswith(sys.argv[1])\nsys.exit(doctest.testmod(ptxrewrite).failed)"
        environment = {**os.environ, "PYTHONPATH": installed}
        return subprocess.run([python, "-c", program, installed], cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
