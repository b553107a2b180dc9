#!/usr/bin/env python3
"""The campaign must detect errors: it is run on a sample with tools that are broken on purpose.

usage: campaign_selftest.py PATH/ptxrewrite
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLE = os.path.normpath(os.path.join(HERE, "..", "..", "samples", "vecadd", "vecadd.ptx"))

# Passes everything to the real tool, except what `change` breaks. `words` are the arguments, `target` the file of -o.
TOOL = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
target = words[words.index("-o") + 1] if "-o" in words else ""
form = words[words.index("--form") + 1] if "--form" in words else ""
passes = words[words.index("-p") + 1] if "-p" in words else ""
def edit(old, new):
    text = open(target).read()
    open(target, "w").write(text.replace(old, new))
def real():
    return subprocess.run([{tool!r}, *words]).returncode
{change}
sys.exit(real())
"""

# Steps, change, and the text that the report must contain; None: nothing failed.
CASES = [
    ("read,identity,reports,launches", "", None),
    ("read", "if words[2] == SAMPLE: code = real(); edit('add.f32', 'add.f32 '); sys.exit(code)",
     "read: no fixed point: line"),
    ("identity", "if '--verify-each' in words: os.kill(os.getpid(), 11)", "identity: signal 11"),
    ("identity", "if '--verify-each' in words: sys.exit('internal error: a rule does not hold')",
     "identity: internal error"),
    ("identity", "if '--verify-each' in words: sys.exit(1)", "identity: refused"),
    ("identity,rewrites",
     "if form == 'hardware' and passes == 'dce': code = real(); edit('ret;', 'ret'); sys.exit(code)",
     "dce hardware: not read back"),
    ("identity,rewrites", "if passes == 'schedule(force)': os.abort()", "schedule(force) legal: signal 6"),
    ("reports", "if words[0] == 'mark': os.abort()", "mark: signal 6"),
    ("reports", "if words[0] == 'analyze':\n    while True: pass", "analyze: time"),
    ("reports", "if words[0] == 'diff': held = bytearray(3 << 30)", "diff legal: refused: Traceback"),
    ("launches", "if words[0] == 'launch-template': sys.exit(1)", "launch-template: refused"),
    ("launches", "if words[0] == 'run': os.kill(os.getpid(), 11)", "run: signal 11"),
    ("launches", "if words[0] == 'verify':\n    print('[{\"original_findings\": 0, \"cases\": [{\"passes\": \"dce\", "
     "\"form\": \"legal\", \"result\": \"differs\"}]}]')\n    sys.exit(4)", "verify: differs: dce legal: other values"),
]


def run_campaign(tool, scratch, steps, results, endless=False):
    memory = "2000" if steps == "reports" else "0"
    seconds = "3" if endless else "600"
    command = [sys.executable, "-B", os.path.join(HERE, "campaign.py"), "--tool", tool, "--results", results, "--steps",
               steps, "--seconds", seconds, "--megabytes", memory, "--jobs", "1", "--no-assembler", "--summary",
               os.path.join(scratch, "summary.tsv"), SAMPLE]
    return subprocess.run(command, capture_output=True, text=True)


def main():
    real = os.path.abspath(sys.argv[1])
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, (steps, change, expected) in enumerate(CASES):
            tool = os.path.join(scratch, f"tool{number}")
            with open(tool, "w") as file:
                file.write(TOOL.format(python=sys.executable, tool=real, change=change.replace("SAMPLE", repr(SAMPLE))))
            os.chmod(tool, 0o755)
            results = os.path.join(scratch, f"results{number}.jsonl")
            result = run_campaign(tool, scratch, steps, results, "while True" in change)
            right = (result.returncode == 0 and "FAILED" not in result.stdout if expected is None else
                     result.returncode == 1 and f"FAILED {SAMPLE}: {expected}" in result.stdout)
            if not right:
                wrong += 1
                print(f"tool with {change!r}: exit code {result.returncode}, expected {expected!r}; printed:\n"
                      f"{result.stdout}{result.stderr}")
        # A second run continues where the first one ended: no file is processed again.
        before = os.path.getsize(results)
        again = run_campaign(tool, scratch, steps, results, "while True" in change)
        with open(results) as file:
            rows = [json.loads(line) for line in file]
        if os.path.getsize(results) != before or len(rows) != 1 or again.returncode != 1:
            wrong += 1
            print(f"the second run did not go on: {len(rows)} rows, exit code {again.returncode}")
    print(f"{len(CASES) + 1 - wrong} of {len(CASES) + 1} cases were judged rightly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
