"""Sweeps: the same table for every scheduler and any number of interruptions; failures are rows."""
import json
import os
import signal
import subprocess
import sys
import tempfile

import pyarrow.parquet

from ptxrewrite import EXAMPLE
from ptxrewrite.sweep import Store, Sweep, run
from ptxrewrite.sweep import plan, schedulers
from ptxrewrite.sweep.point import CIRCUMSTANCES

SAMPLES = os.environ["PTXREWRITE_SAMPLES"]
TOOL = os.environ["PTXREWRITE_TOOL"]
SWEEP = f"""
[sweep]
retries = 1
[[kernels]]
launch = "{SAMPLES}/[abv]*/*.toml"
[axes]
machines = ["h200", "titanv"]
passes = ["", "r2d2(limit={{limit}})"]
[parameters]
limit = [4, 8]
[options]
run_ptxas = false
"""
KILLER = """
import os
from ptxrewrite import register_pass

@register_pass("end-the-process")
def end(function, context):
    os._exit(1)
"""
# A fuzzer that reports a finding at seed 33, crashes at 44 and hangs at 55.
FUZZER = """
import os, sys, time
first, count = int(sys.argv[1]), int(sys.argv[2])
for seed in range(first, first + count):
    if seed == 33:
        sys.exit("FAILED: seed 33")
    if seed == 44:
        os.abort()
    if seed == 55:
        print("seed 55", flush=True)
        time.sleep(100000)
print("before\\n" + str(count) + " kernels, sum " + str(sum(range(first, first + count))))
"""
CAMPAIGN = """
[sweep]
tool = "command"
[command]
run = ["{python}", "fuzzer.py", "{first}", "{count}"]
seeds = { first = 1, count = 64, shard = 10 }
seconds = 3
"""
LAUNCH = """ptx = "saxpy.ptx"
[[launch]]
kernel = "saxpy"
grid = 1
block = 32
args = [ { buffer = "x" }, { buffer = "x" }, { f32 = 1 }, { u32 = COUNT } ]
[buffer.x]
type = "f32"
count = 8
output = true
"""


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def rows_of(table):
    """Rows without the columns that differ from run to run."""
    return table.drop([name for name in CIRCUMSTANCES if name in table.column_names]).to_pylist()


def sweep_in(folder, text=SWEEP):
    return Sweep.load(write(folder, "sweep.toml", text))


def test_all_points_once_and_again():
    with tempfile.TemporaryDirectory() as folder:
        sweep = sweep_in(folder)
        points = list(sweep.points())
        files = len({point.launch for point in points})
        assert files >= 8 and len(points) == len({point.key for point in points}) == files * 2 * 3
        whole = rows_of(run(sweep, progress=False))
        assert {row["key"] for row in whole} == {point.key for point in points}
        again = []
        assert rows_of(run(sweep, progress=False, on_points=again.extend)) == whole and not again
        # Half of the parts are deleted: half of the points run.
        store = Store(sweep.results)
        table = pyarrow.parquet.read_table(store.table_path)
        for part in store.parts.iterdir():
            part.unlink()
        half = {point.key for point in points[::2]}
        store.add(row for row in table.to_pylist() if row["key"] in half)
        store.flush()
        assert rows_of(run(sweep, progress=False, on_points=again.extend)) == whole
        assert {point.key for point in again} == {point.key for point in points} - half


def test_keys_are_of_contents():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "saxpy.ptx", EXAMPLE)
        launch = write(folder, "one.toml", LAUNCH.replace("COUNT", "8"))
        text = '[[kernels]]\nlaunch = "*.toml"\n'.replace("*", "one") + '[axes]\npasses = ["", "dce"]\n'

        def keys():
            plan.file_hash.cache_clear()
            plan._content_hash.cache_clear()
            return [point.key for point in sweep_in(folder, text).points()]

        first = keys()
        assert len(set(first)) == 2 and keys() == first
        write(folder, "saxpy.ptx", EXAMPLE.replace("fma.rn", "fma.rz"))
        assert not set(keys()) & set(first)
        write(folder, "saxpy.ptx", EXAMPLE)
        assert keys() == first
        write(folder, os.path.basename(launch), LAUNCH.replace("COUNT", "7"))
        assert not set(keys()) & set(first)


def test_keys_are_of_the_assembler_where_it_is_asked():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "saxpy.ptx", EXAMPLE)
        write(folder, "one.toml", LAUNCH.replace("COUNT", "8"))

        def keys(options, release):
            plan.assembler, kept = lambda: release, plan.assembler
            try:
                return [point.key for point in sweep_in(folder, '[[kernels]]\nlaunch = "one.toml"\n' + options).points()]
            finally:
                plan.assembler = kept

        without = "[options]\nrun_ptxas = false\n"
        assert keys(without, "ptxas 13.0") == keys(without, "ptxas 13.5")
        assert keys("", "ptxas 13.0") == keys("", "ptxas 13.0") != keys("", "ptxas 13.5")


def test_failures_are_rows():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "saxpy.ptx", EXAMPLE)
        write(folder, "a_right.toml", LAUNCH.replace("COUNT", "8"))
        write(folder, "b_faults.toml", LAUNCH.replace("COUNT", "9"))
        write(folder, "c_wrong.toml", "ptx = [")
        sweep = sweep_in(folder, '[sweep]\ntool = "run"\n[[kernels]]\nlaunch = "[abc]_*.toml"\n')
        rows = rows_of(run(sweep, progress=False))
        assert [row["status"] for row in rows] == ["ok", "failed", "failed"], rows
        [fault] = json.loads(rows[1]["diagnostics"])
        assert fault["line"] == 1 + EXAMPLE[:EXAMPLE.index("ld.global")].count("\n"), fault
        assert json.loads(rows[2]["diagnostics"])[0]["file"].endswith("c_wrong.toml")


def test_point_that_kills_its_process():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "killer.py", KILLER)
        sweep = sweep_in(folder, SWEEP.replace("retries = 1", 'retries = 1\nmodules = ["killer.py"]').replace(
            'passes = ["", ', 'passes = ["", "end-the-process", ').replace('machines = ["h200", "titanv"]',
                                                                              'machines = ["h200"]').replace("[abv]*", "vecadd"))
        rows = rows_of(run(sweep, "processes", workers=2, progress=False))
        lost = [row for row in rows if row["status"] != "ok"]
        assert len(rows) == 4 and [row["passes"] for row in lost] == ["end-the-process"], rows
        assert lost[0]["status"] == "lost" and "died 2 times" in lost[0]["error"], lost


def test_stopped_driver_goes_on():
    with tempfile.TemporaryDirectory() as folder:
        sweep = sweep_in(folder)
        expected = rows_of(run(sweep_in(folder, SWEEP.replace("[sweep]", '[sweep]\nresults = "other"')), progress=False))
        child = subprocess.Popen([sys.executable, "-m", "ptxrewrite.sweep", "run", os.path.join(folder, "sweep.toml")],
                                 stderr=subprocess.DEVNULL)
        store = Store(sweep.results)
        while child.poll() is None and not list(store.parts.glob("*.parquet")):
            try:
                child.wait(0.3)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGINT)
        child.wait()
        assert rows_of(run(sweep, progress=False)) == expected


def check_seeds_of_a_fuzzer(seconds):
    campaign = CAMPAIGN.replace("seconds = 3", f"seconds = {seconds}")
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "fuzzer.py", FUZZER)
        sweep = sweep_in(folder, campaign)
        rows = {row["launch"]: row for row in rows_of(run(sweep, "processes", workers=2, progress=False))}
        # Every seed from 1 to 64 once, in shards of ten.
        assert set(rows) == {f"seeds {n} to {min(n + 9, 64)}" for n in range(1, 64, 10)}, set(rows)
        assert {name for name, row in rows.items() if row["status"] != "ok"} == {
            "seeds 31 to 40", "seeds 41 to 50", "seeds 51 to 60"}, rows
        assert rows["seeds 61 to 64"]["result"] == "4 kernels, sum 250", rows["seeds 61 to 64"]
        assert "exit code 1: FAILED: seed 33" in rows["seeds 31 to 40"]["error"]
        assert rows["seeds 41 to 50"]["error"].startswith("signal 6")
        assert rows["seeds 51 to 60"]["error"].startswith(f"took longer than {seconds} s: seed 55")
        again = []
        run(sweep, progress=False, on_points=again.extend)
        assert not again
        # A changed fuzzer: all seeds run again. The repaired one finds nothing.
        plan.file_hash.cache_clear()
        write(folder, "fuzzer.py", "print('mended')")
        assert {row["result"] for row in rows_of(run(sweep_in(folder, campaign), progress=False, on_points=again.extend))
                } == {"mended"} and len(again) == 7


def test_seeds_of_a_fuzzer():
    for seconds in (3, 60):  # a slow machine needs longer for the commands that end
        try:
            return check_seeds_of_a_fuzzer(seconds)
        except AssertionError:
            pass
    return check_seeds_of_a_fuzzer(1200)


def test_files_of_a_corpus():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "a.ptx", EXAMPLE)
        write(folder, "b.ptx", EXAMPLE.replace("ret;", "ret"))
        write(folder, "c.txt", "no PTX")
        text = f'''[sweep]\ntool = "command"\n[command]\nrun = ["{TOOL}", "opt", "{{file}}", "-p", "dce"]
files = "*.ptx"\n'''
        rows = rows_of(run(sweep_in(folder, text), progress=False))
        assert [(row["launch"], row["status"]) for row in rows] == [("a.ptx", "ok"), ("b.ptx", "failed")], rows
        assert "exit code 1: b.ptx:" in rows[1]["error"] and "error" in rows[1]["error"], rows[1]


def test_missing_package_is_named():
    """Before any point runs, without a traceback; the command that does without it works."""
    program = "import runpy, sys; sys.modules['pyarrow'] = None; runpy.run_module('ptxrewrite.sweep', run_name='__main__')"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sweep.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SWEEP)
        said = subprocess.run([sys.executable, "-c", program, "run", path], capture_output=True, text=True)
        assert said.returncode == 77 and "pip install" in said.stderr and "pyarrow" in said.stderr, said
        assert "Traceback" not in said.stderr and not os.path.exists(os.path.join(folder, "results")), said
        listed = subprocess.run([sys.executable, "-c", program, "points", path], capture_output=True, text=True, check=True)
        assert len(listed.stdout.splitlines()) > 10


def test_wrong_files_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        for text in ("[sweep", "[sweeps]\n", '[[kernels]]\nlaunch = "x"\n[axes]\nmachine = []\n', "",
                     '[[kernels]]\nlaunch = "x"\n[axes]\npasses = ["r2d2(limit={n})"]\n',
                     '[sweep]\ntool = "guess"\n[[kernels]]\nlaunch = "x"\n', '[sweep]\ntool = "command"\n',
                     CAMPAIGN.replace('"command"', '"run"'), CAMPAIGN.replace("shard = 10", "shard = 0"),
                     CAMPAIGN.replace("{count}", "{number}"), CAMPAIGN.replace("{count}", "{0}"),
                     CAMPAIGN.replace("{count}", "{"), CAMPAIGN + 'files = "*"\n', CAMPAIGN + "[axes]\n"):
            try:
                sweep_in(folder, text)
            except plan.SweepError:
                continue
            raise AssertionError(text)
        try:
            schedulers.scheduler_named("moon")
        except plan.SweepError:
            return
        raise AssertionError("scheduler")
