#!/usr/bin/env python3
"""The programs load large libraries when a command needs them, not at their start: with all of them, half of the time of
a run on a small file would be the dynamic loader's.

usage: check_loaded.py PROGRAM...
"""
import re
import subprocess
import sys

# By the beginning of the name, and why it is not needed at the start.
ON_DEMAND = {"libz3": "proofs load it (evaluate/prove/z3_library.h)",
             "libLLVM": "generated code loads it (emulator/generated/llvm.h)",
             "libcuda.": "launches on a GPU load it (cuda/driver)",
             "libspdlog": "its headers are compiled into support/log.cpp"}


def needed_libraries(program):
    listing = subprocess.run(["readelf", "--wide", "--dynamic", program], check=True, capture_output=True, text=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", listing.stdout)


def main():
    failed = False
    for program in sys.argv[1:]:
        libraries = needed_libraries(program)
        if not libraries:
            sys.exit(f"{program}: no dynamic section")
        for library in libraries:
            for name, reason in ON_DEMAND.items():
                if library.startswith(name):
                    print(f"{program} loads {library} at its start: {reason}")
                    failed = True
    sys.exit(failed)


main()
