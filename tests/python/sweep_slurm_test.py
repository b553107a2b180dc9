"""An array of 20 jobs on the Slurm of this machine, or on one that the test starts: the same table as without Slurm."""
import os
import shutil
import subprocess
import tempfile
import unittest

import one_machine_slurm
from ptxrewrite.sweep import Store, run
from sweep_test import SAMPLES, rows_of, sweep_in

NAMES = ["aes", "atax", "bicg", "vecadd", "mvt"]
SWEEP = "".join(f'[[kernels]]\nlaunch = "{SAMPLES}/{name}/{name}.toml"\n' for name in NAMES) + """
[axes]
machines = ["h200", "titanv", "a100", "gtx480"]
[options]
run_ptxas = false
"""


def check_array():
    # Jobs must see the folder under the same name, so it is not in this process's temporary folder.
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        sweep = sweep_in(folder, SWEEP)
        table = rows_of(run(sweep, "slurm", workers=20, progress=False))
        assert len({row["key"] for row in table}) == 20 and len(list(Store(sweep.results).parts.iterdir())) == 20
        assert all(row["status"] == "ok" for row in table), table
        again = []
        assert rows_of(run(sweep, "slurm", workers=20, progress=False, on_points=again.extend)) == table and not again
        other = sweep_in(folder, '[sweep]\nresults = "other"\n' + SWEEP)
        assert rows_of(run(other, progress=False)) == table


def test_array_of_jobs():
    if shutil.which("sbatch") and subprocess.run(["sinfo"], capture_output=True, check=False).returncode == 0:
        return check_array()
    if not one_machine_slurm.available():
        raise unittest.SkipTest("no Slurm here, nor slurm-wlm and munge to make one (as root)")
    with tempfile.TemporaryDirectory() as folder, one_machine_slurm.slurm(folder):
        check_array()
