#!/usr/bin/env python3
"""opt --jobs: the same text, side file, statistics and explanations as in one process.

usage: check_jobs.py SOURCE_DIR PROGRAM

A file of many kernels (copies of samples) through pipelines whose kernels are shared out, and modules that one process
rewrites in any case: functions that are called, passes that number labels across kernels. The debug messages show which
of the two happened.
"""

import os
import subprocess
import sys
import tempfile

source, program = sys.argv[1:3]
sys.path.insert(0, os.path.join(source, "tests", "bench"))
import parse_bench

SHARED = [["-O"], ["-p", "r2d2"], ["-p", "r2d2", "--form", "hardware"], ["-p", "composite,dce,spill(limit=24)"], [],
          ["-O", "-k", "*mat*"]]
ALONE = [["-p", "dac"], ["-p", "r2d2(discharge=proved+kernel)"], ["-O", "--stop-after", "20"]]
CALLS = """.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 r) twice(.param .b32 a)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	add.s32 %r2, %r1, %r1;
	st.param.b32 [r], %r2;
	ret;
}
""" + "".join(f""".visible .entry caller{i}(.param .u64 out)
{{
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	{{
		.param .b32 given;
		.param .b32 got;
		st.param.b32 [given], %r1;
		call.uni (got), twice, (given);
		ld.param.b32 %r2, [got];
	}}
	st.global.u32 [%rd1], %r2;
	ret;
}}
""" for i in range(3))

failures = []


def run(path, options, jobs, folder):
    """Text, side file and messages; whether processes shared the kernels."""
    result = os.path.join(folder, "result.ptx")
    side_file = os.path.join(folder, "result.launch.json")
    if os.path.exists(side_file):
        os.remove(side_file)
    done = subprocess.run([program, "opt", path, "-o", result, "--no-ptxas", "--explain", "--stats", "--log-level",
                           "debug", "-j", str(jobs), *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{path} {options} -j {jobs}: {done.stderr[-500:]}")
    messages = [line for line in done.stderr.splitlines() if "debug:" not in line]
    contents = [open(name).read() if os.path.exists(name) else None for name in (result, side_file)]
    return (*contents, messages), "processes have shared" in done.stderr


def compare(path, options, expected_shared, folder):
    alone, shared_by_one = run(path, options, 1, folder)
    for jobs in (2, 4):
        several, shared = run(path, options, jobs, folder)
        name = f"{os.path.basename(path)} {' '.join(options)} -j {jobs}"
        if several != alone:
            failures.append(f"{name}: differs from -j 1")
        if shared != expected_shared or shared_by_one:
            failures.append(f"{name}: kernels were {'' if shared else 'not '}shared out")


with tempfile.TemporaryDirectory() as scratch:
    many = os.path.join(scratch, "many.ptx")
    parse_bench.make_file(many, 60_000)
    calls = os.path.join(scratch, "calls.ptx")
    with open(calls, "w") as file:
        file.write(CALLS)
    for pipeline in SHARED:
        compare(many, pipeline, True, scratch)
    for pipeline in ALONE:
        compare(many, pipeline, False, scratch)
    compare(calls, ["-O"], False, scratch)

print("\n".join(failures) or f"{len(SHARED) + len(ALONE) + 1} pipelines: the same with -j 1, 2 and 4")
sys.exit(1 if failures else 0)
