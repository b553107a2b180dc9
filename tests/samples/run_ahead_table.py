#!/usr/bin/env python3
"""The loads of the samples' loops that run ahead in the legal form of pass dac: distance and form, or why not.

usage: run_ahead_table.py PATH/ptxrewrite SAMPLES [OPTIONS]

OPTIONS are those of the pass, such as force or force,form=registers.
"""
import collections
import pathlib
import re
import subprocess
import sys

NOTE = re.compile(r"^\S+?:(\d+):\d+: note: (\w+): dac: (runs (\d+) trips? ahead \((\w+)\), address (.*)|stays: (.*))$",
                  re.MULTILINE)


def main():
    tool, samples = sys.argv[1], pathlib.Path(sys.argv[2])
    options = sys.argv[3] if len(sys.argv) > 3 else ""
    reasons, forms = collections.Counter(), collections.Counter()
    print(f"{'sample':24} {'kernel':28} {'line':>5}  load")
    for ptx in sorted(samples.glob("**/*.ptx")):
        child = subprocess.run([tool, "opt", ptx, "-p", f"dac({options})", "--explain", "-o", "/dev/null"],
                               capture_output=True, text=True, errors="replace", check=True)
        # A load may be rejected in one form for its own reason and considered in another.
        notes = {}
        for match in NOTE.finditer(child.stderr):
            line, kernel, _, trips, form, address, why = match.groups()
            if (line, kernel) not in notes or form or not notes[line, kernel][0]:
                notes[line, kernel] = (form, trips, address, why)
        for (line, kernel), (form, trips, address, why) in sorted(notes.items(), key=lambda row: int(row[0][0])):
            text = f"{trips} ahead by {form}: {address}" if form else why
            print(f"{ptx.stem:24} {kernel:28} {line:>5}  {text}")
            if form:
                forms[f"{form}, {trips} ahead"] += 1
            else:
                reasons[re.sub(r"'[^']*'( in line \d+)?", "a write", "nothing wins" if why.startswith("nothing wins") else why)] += 1
    print(f"\n{sum(forms.values())} of {sum(forms.values()) + sum(reasons.values())} global loads in loops run ahead")
    for title, counts in (("ahead", forms), ("stay", reasons)):
        for text, count in counts.most_common():
            print(f"{count:6}  {title}: {text}")


main()
