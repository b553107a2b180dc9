"""Runs one example as a separate program: it must exit with 0 and print "right".

usage: examples_test.py FILE PACKAGE...     exit code 77 where this interpreter lacks one of the packages
"""
import importlib.util
import os
import subprocess
import sys
import tempfile


def main():
    file, packages = sys.argv[1], sys.argv[2:]
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {sys.executable} does not have {', '.join(missing)}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run([sys.executable, "-B", file], capture_output=True, text=True, check=False,
                               env={**os.environ, "TRITON_CACHE_DIR": os.path.join(folder, "triton")})
    sys.stdout.write(child.stdout + child.stderr)
    return 0 if child.returncode == 0 and child.stdout.endswith("right\n") else 1


if __name__ == "__main__":
    sys.exit(main())
