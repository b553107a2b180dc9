#!/usr/bin/env python3
"""The round-trip driver must detect errors: it is run on a sample with tools that are broken on purpose."""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLE = os.path.normpath(os.path.join(HERE, "..", "..", "samples", "vecadd", "vecadd.ptx"))

TOOL = """#!{python}
import sys
print_only = "--no-ssa" in sys.argv
words = [w for w in sys.argv[2:] if w != "--no-ssa"]
text = open(words[0]).read()
{change}
open(words[2], "w").write(text)
"""

# change -> (exit code, text that the report must contain)
CASES = {
    "text = text.replace('\\t', '  ')": (0, "kernels with equal figures: 1 of 1 (100.00 %)"),
    "text += '\\n'": (1, "FAILED {sample}: fixed point"),
    "text = text.replace('add.f32', 'sub.f32')": (1, "FAILED {sample}: same cubin"),
    "text = text.replace('add.f32', 'frobnicate.f32')": (1, "FAILED {sample}: printed text assembles"),
    "text = text if print_only else text.replace('ret;', 'rot;')": (1, "FAILED {sample}: identity assembles"),
    "text = text if print_only else text.replace('vecadd', 'renamed')": (1, "FAILED {sample}: identity keeps functions"),
    "text = text if print_only else text.replace('ret;', 'bar.sync 0; ret;')":
        (1, "kernels with equal figures: 0 of 1"),
    "sys.exit('error: refused')": (1, "FAILED {sample}: print: exit code 1: error: refused"),
    "import os; os.abort()": (1, "FAILED {sample}: print: died of signal 6"),
}


def main():
    if shutil.which("ptxas") is None:
        print("roundtrip_selftest: ptxas is not on PATH", file=sys.stderr)
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, (change, (code, expected)) in enumerate(CASES.items()):
            tool = os.path.join(scratch, f"tool{number}")
            with open(tool, "w") as file:
                file.write(TOOL.format(python=sys.executable, change=change))
            os.chmod(tool, 0o755)
            command = [sys.executable, "-B", os.path.join(HERE, "roundtrip.py"), "--tool", tool, "--cache",
                       os.path.join(scratch, "cache"), SAMPLE]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != code or expected.format(sample=SAMPLE) not in result.stdout:
                wrong += 1
                print(f"tool with {change!r}: exit code {result.returncode}, expected {code} and {expected!r}; printed:\n"
                      f"{result.stdout}{result.stderr}")
    print(f"{len(CASES) - wrong} of {len(CASES)} broken tools were judged rightly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
