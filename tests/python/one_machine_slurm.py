"""A temporary Slurm with this machine as its only node. Needs the packages slurm-wlm and munge, and root (slurmd does).
All its files are in one folder, all its addresses on the loopback interface."""
import contextlib
import os
import shutil
import socket
import subprocess
import time

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIGURATION = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={mebibytes} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def available():
    return os.geteuid() == 0 and all(map(shutil.which, (*DAEMONS, "sbatch", "sinfo")))


def _answers():
    told = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, check=False)
    return told.returncode == 0 and told.stdout.split()[:1] in (["idle"], ["mixed"], ["allocated"])


def _free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextlib.contextmanager
def slurm(folder):
    """Starts the daemons and sets SLURM_CONF; ends them with the block."""
    folder = os.path.abspath(folder)
    for name in ("state", "spool"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    host = socket.gethostname().split(".")[0]
    configuration = os.path.join(folder, "slurm.conf")
    with open(configuration, "w", encoding="ascii") as file:
        file.write(CONFIGURATION.format(host=host, folder=folder, ports=_free_ports(2), cores=os.cpu_count(),
                                        mebibytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 21))
    key = os.path.join(folder, "munge.key")
    with open(key, "wb") as file:
        file.write(os.urandom(128))
    os.chmod(key, 0o400)
    os.chmod(folder, 0o755)  # munged refuses folders that others may write
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = configuration
    at = lambda name: os.path.join(folder, name)
    commands = [["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={at('munge.socket')}",
                 f"--pid-file={at('munged.pid')}", f"--log-file={at('munged.log')}", f"--seed-file={at('munged.seed')}"],
                ["slurmctld", "-D", "-f", configuration], ["slurmd", "-D", "-N", host, "-f", configuration]]
    children, logs = [], []
    try:
        for words in commands:
            logs.append(open(at(words[0] + ".out"), "wb"))
            children.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=logs[-1], stderr=logs[-1]))
            if words[0] == "munged":
                _wait(lambda: os.path.exists(at("munge.socket")), children, at)
        _wait(_answers, children, at)
        yield
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            child.wait()
        for log in logs:
            log.close()
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before


def _wait(holds, children, at):
    """Waits until `holds`; raises if a daemon ends."""
    while not holds():
        ended = [child.args[0] for child in children if child.poll() is not None]
        if ended:
            with open(at(ended[0] + ".out"), encoding="utf-8", errors="replace") as file:
                raise RuntimeError(f"{ended[0]} ended: {file.read()[-2000:]}")
        time.sleep(0.2)
