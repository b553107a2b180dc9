"""Runs ptxrewrite under limits and reports how it ended."""

import re
import subprocess


class Outcome:
    """How one command ended.

    kind is "ok", "refused" (exit code 1), "usage" (2), "fault" (3), "differs" (4), "internal error", "signal N",
    "time" (its share of processor time is used up) or "code N"; message is its first line of error.
    """

    def __init__(self, kind, message="", stdout="", stderr=""):
        self.kind = kind
        self.message = message
        self.stdout = stdout
        self.stderr = stderr

    @property
    def ok(self):
        return self.kind == "ok"

    @property
    def crashed(self):
        """Outcomes that no input may cause."""
        return self.kind in ("internal error", "time", "usage") or self.kind.startswith(("signal", "code"))


EXIT_KINDS = {0: "ok", 1: "refused", 2: "usage", 3: "fault", 4: "differs"}
SIGXCPU = 24


def first_error(stderr):
    """The first line that states an error, without the position in the file."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for line in lines:
        if re.search(r"\b(error|fault|internal)\b", line):
            return line[:300]
    return lines[0][:300] if lines else ""


class Tool:
    def __init__(self, path, seconds, megabytes):
        self.path = path
        self.seconds = seconds
        self.megabytes = megabytes

    def _limits(self):
        limits = ["prlimit", f"--cpu={self.seconds}:{self.seconds + 5}", "--core=0"]
        return limits + ([f"--as={self.megabytes << 20}"] if self.megabytes else [])

    def run(self, *arguments):
        # The limit is on processor time, so a loaded machine changes no verdict. The other one ends sleeping processes.
        try:
            result = subprocess.run([*self._limits(), self.path, *arguments], capture_output=True, text=True,
                                    errors="replace", stdin=subprocess.DEVNULL, timeout=60 * self.seconds)
        except subprocess.TimeoutExpired:
            return Outcome("time", "neither ends nor computes")
        message = first_error(result.stderr)
        if result.returncode < 0:
            kind = "time" if -result.returncode == SIGXCPU else f"signal {-result.returncode}"
        elif "internal error" in result.stderr:
            kind = "internal error"
        else:
            kind = EXIT_KINDS.get(result.returncode, f"code {result.returncode}")
        return Outcome(kind, message, result.stdout, result.stderr)

    def has_option(self, command, option):
        return re.search(rf"(^|[ ,]){re.escape(option)}\b", self.run(command, "--help").stdout, re.M) is not None
