#!/usr/bin/env python3
"""Symbols that our CUDA libraries export: CUDA's names with the version of the real library, and no others.

usage: check_exports.py LIBCUDART LIBCUDA LIBPTXREWRITE_CUDA LIBNVJITLINK LIBPTXREWRITE_NVRTC
If a real libcudart of the same version is installed, ours must have every symbol of it.
"""
import glob
import os
import re
import subprocess
import sys


def exports(path):
    listing = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", path], capture_output=True,
                             text=True, check=True).stdout
    return {line.split()[-1] for line in listing.splitlines() if " A " not in line}


def main():
    runtime, driver, engine, linker, compiler = sys.argv[1:6]
    name = os.path.basename(os.path.realpath(runtime))
    ours = exports(runtime)
    wrong = [f"{symbol} is exported" for symbol in ours if not re.fullmatch(rf"(__)?cuda\w+@@{re.escape(name)}", symbol)]
    wrong += [f"{symbol} is exported" for symbol in exports(driver) if not re.fullmatch(r"cu[A-Z]\w*", symbol)]
    wrong += [f"{symbol} is exported" for symbol in exports(engine) if "10ptxrewrite4cuda" not in symbol]
    wrong += [f"{symbol} is exported" for symbol in exports(linker)
              if not re.fullmatch(r"(__)?nvJitLink\w+@@libnvJitLink\.so\.13", symbol)]
    wrong += [f"{symbol} is exported" for symbol in exports(compiler) - {"nvrtcCompileProgram"}]
    if len(ours) < 390:
        wrong.append(f"only {len(ours)} symbols")
    # PTXREWRITE_CUDA_LIBRARIES: folder with libraries of other versions.
    places = ["/usr/local/cuda*/lib*", *filter(None, [os.environ.get("PTXREWRITE_CUDA_LIBRARIES")])]
    for real in [path for place in places for path in glob.glob(f"{place}/{name}")]:
        missing = {symbol for symbol in exports(real) if symbol.startswith(("cuda", "__cuda"))} - ours
        wrong += [f"{real} has {symbol}" for symbol in sorted(missing)]
        print(f"compared with {real}")
        break
    else:
        print(f"not compared: there is no {name}")
    for line in wrong:
        print("FAILED:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
