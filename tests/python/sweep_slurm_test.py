"""An array of 20 jobs on the Slurm of this machine: the same table as without Slurm."""
import os
import shutil
import subprocess
import tempfile
import unittest

from ptxrewrite.sweep import Store, run
from sweep_test import SAMPLES, rows_of, sweep_in

NAMES = ["aes", "atax", "bicg", "vecadd", "mvt"]
SWEEP = "".join(f'[[kernels]]\nlaunch = "{SAMPLES}/{name}/{name}.toml"\n' for name in NAMES) + """
[axes]
machines = ["h200", "titanv", "a100", "gtx480"]
[options]
run_ptxas = false
"""


def test_array_of_jobs():
    if not shutil.which("sbatch") or subprocess.run(["sinfo"], capture_output=True, check=False).returncode != 0:
        raise unittest.SkipTest("no Slurm here")
    # Jobs must see the folder under the same name, so it is not in this process's temporary folder.
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        sweep = sweep_in(folder, SWEEP)
        table = rows_of(run(sweep, "slurm", workers=20, progress=False))
        assert len({row["key"] for row in table}) == 20 and len(list(Store(sweep.results).parts.iterdir())) == 20
        other = sweep_in(folder, '[sweep]\nresults = "other"\n' + SWEEP)
        assert rows_of(run(other, progress=False)) == table
