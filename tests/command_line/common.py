"""Shared by the tests of the command line: a folder with small inputs, and one invocation of every command."""
import os
import shutil
import subprocess
import sys
import tempfile

EXIT_SKIPPED = 77

# One successful invocation of each command that writes to standard output.
INVOCATIONS = {
    "opt": ["opt", "kernel.ptx"],
    "diff": ["diff", "kernel.ptx", "-p", "dce"],
    "analyze": ["analyze", "kernel.ptx"],
    "lower": ["lower", "kernel.ptx"],
    "run": ["run", "samples/vecadd/vecadd.toml"],
    "exec": ["exec", "--", "echo", "hello"],
    "verify": ["verify", "samples/vecadd/vecadd.toml", "-p", "dce"],
    "bench": ["bench", "samples/vecadd/vecadd.toml", "-p", "dce", "--rounds", "1", "--warm-up", "0"],
    "record": ["record", "--compare", "recorded.json"],
    "study": ["study", "samples/vecadd/vecadd.toml"],
    "score": ["score", "samples/vecadd/vecadd.toml"],
    "report": ["report", "samples/vecadd/vecadd.toml", "-p", "dce"],
    "prove": ["prove", "kernel.ptx", "-p", "dce"],
    "mark": ["mark", "kernel.ptx"],
    "launch-template": ["launch-template", "kernel.ptx"],
    "reduce": ["reduce", "kernel.ptx", "--test", "! grep -q ret {}"],
    "passes": ["passes"],
    "machines": ["machines"],
    "isa": ["isa"],
}


class Place:
    """A temporary folder with inputs, and the tool in it."""

    def __init__(self, root, tool, samples=("vecadd",)):
        self.root, self.tool = root, os.path.abspath(tool)
        self._folder = tempfile.TemporaryDirectory(prefix="command-line-")
        self.folder = self._folder.name
        for name in samples:
            shutil.copytree(os.path.join(root, "samples", name), os.path.join(self.folder, "samples", name))
        shutil.copy(os.path.join(root, "samples", "vecadd", "vecadd.ptx"), os.path.join(self.folder, "kernel.ptx"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, arguments, environment=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.run([self.tool, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", env=dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", **(environment or {})),
                              check=False, **options)

    def has_json_flag(self, name):
        """Does the command print JSON instead of its text? (--json FILE writes a file.)"""
        help_text = self.run([name, "--help"]).stdout
        return "--json" in help_text and "--json FILE" not in help_text

    def command_names(self):
        """The commands that --help lists."""
        lines = self.run(["--help"]).stdout.split("Subcommands:")[-1].split("\n\n")[0].splitlines()
        return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]

    def record(self):
        """Makes recorded.json, which `record --compare` needs."""
        child = self.run(["record", "samples/vecadd/vecadd.toml", "--device", "emulator", "-o", "recorded.json"])
        assert child.returncode == 0, child.stderr


def gpu_environment():
    """`bench` on the libcuda of the tests, which uses the emulator; None if that was not built."""
    driver = os.environ.get("FAKE_DRIVER", "")
    return {"PTXREWRITE_LIBCUDA": driver} if os.path.exists(driver) else None


def finish(failures):
    for failure in failures:
        print("FAILED:", failure)
    sys.exit(1 if failures else 0)
