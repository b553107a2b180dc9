#!/usr/bin/env python3
"""Makes a wheel of a build without a network, installs it into a fresh virtual environment that has only NumPy beside
it, and runs the package's doctests and the example of its README there.

usage: check_wheel.py PYTHON PROJECT_ROOT BUILD_FOLDER     exit code 77 where scikit-build-core or pybind11 is missing
"""
import glob
import os
import re
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
                        f"--config-settings=cmake.define.PTXREWRITE_BUILD={build}"], check=True)
        [wheel] = glob.glob(os.path.join(folder, "*.whl"))
        environment = os.path.join(folder, "environment")
        subprocess.run([python, "-m", "venv", environment], check=True)
        inside = os.path.join(environment, "bin", "python")
        subprocess.run([inside, "-m", "pip", "install", "--no-deps", "--no-index", wheel], check=True)
        # NumPy without a network: links to the files of this interpreter.
        query = "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))"
        packages = subprocess.run([python, "-c", query], check=True, capture_output=True, text=True).stdout.strip()
        [site] = glob.glob(os.path.join(environment, "lib", "python*", "site-packages"))
        for name in glob.glob(os.path.join(packages, "numpy*")):
            os.symlink(name, os.path.join(site, os.path.basename(name)))
        with open(os.path.join(root, "python", "README.md"), encoding="utf-8") as file:
            example = re.search(r"```python\n(.*?)```", file.read(), re.S).group(1)
        drop_in = os.path.join(site, "ptxrewrite", "bin", "ptxrewrite-ptxas")
        cubin = os.path.join(folder, "vecadd.cubin")
        subprocess.run([drop_in, "-arch=sm_80", os.path.join(root, "samples/vecadd/vecadd.ptx"), "-o", cubin], check=True,
                       env={**os.environ, "PTXREWRITE_EMULATED": "1"})
        assert os.path.getsize(cubin)
        empty = {"PATH": "/nonexistent"}
        asked = "import ptxrewrite.triton; print(ptxrewrite.triton.install())"
        assert subprocess.check_output([inside, "-c", asked], env=empty, text=True).strip() == drop_in
        program = "import doctest, sys, ptxrewrite\nprint(ptxrewrite.__file__)\n" \
                  "assert ptxrewrite.__file__.startswith(sys.argv[1])\n" \
                  "assert doctest.testmod(ptxrewrite).failed == 0\n" + example + "assert (c == 3).all()\nprint('right')\n"
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run([inside, "-c", program, environment], cwd=root, env=clean, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
