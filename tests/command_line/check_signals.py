#!/usr/bin/env python3
"""A signal that ends ptxrewrite while ptxas runs leaves no temporary folder and no ptxas behind, and ptxrewrite ends by
that signal; a program started by exec receives signals, too. The ptxas here reports its start through a FIFO, and
waits on another one for ever.

usage: check_signals.py PROJECT_ROOT PTXREWRITE
"""
import os
import select
import signal
import subprocess
import sys

from common import Place, finish

WAITING_PTXAS = """#!/bin/sh
echo $$ > "{folder}/started"
read nothing < "{folder}/never"
"""


SECONDS_TO_DIE = 600  # for a killed process, on a machine under load: a killed process always ends


def stays(process):
    """Whether a process exists that does not end. A killed process may take a moment to end."""
    try:
        ended = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    gone = poll.poll(SECONDS_TO_DIE * 1000)
    os.close(ended)
    return not gone


def check(place, invocation, number, ignored=False):
    """Returns the error as text."""
    temporary = place.path("temporary")
    os.makedirs(temporary, exist_ok=True)
    environment = dict(os.environ, TMPDIR=temporary, PTXREWRITE_PTXAS=place.path("ptxas"))

    def before():
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)

    started = os.open(place.path("started"), os.O_RDONLY | os.O_NONBLOCK)
    child = subprocess.Popen([place.tool, *invocation], cwd=place.folder, env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before)
    poll = select.poll()
    for descriptor in (started, ended := os.pidfd_open(child.pid)):
        poll.register(descriptor, select.POLLIN)
    poll.poll()  # until ptxas runs, or it is certain that it will not
    line = os.read(started, 100)
    os.close(started)
    os.close(ended)
    if not line:
        yield f"{invocation}: ran no ptxas: {child.communicate()}"
        return
    ptxas = int(line)
    folders = os.listdir(temporary)
    if not folders:
        yield f"{invocation}: no temporary folder while ptxas runs, so this test shows nothing"
    child.send_signal(number)
    if ignored:
        if child.poll() is not None:
            yield f"{invocation}: ended by an ignored {number.name}"
        child.send_signal(signal.SIGTERM)
    output, _ = child.communicate()
    expected = signal.SIGTERM if ignored else number
    if child.returncode != -expected:
        yield f"{invocation}, {number.name}: exit code {child.returncode}"
    if output:
        yield f"{invocation}, {number.name}: wrote a result though it was interrupted"
    if os.listdir(temporary):
        yield f"{invocation}, {number.name}: left {os.listdir(temporary)}"
    if stays(ptxas):
        yield f"{invocation}, {number.name}: ptxas still runs"
        os.kill(ptxas, signal.SIGKILL)


def check_executed(place, number):
    """A program started by exec receives signals as it would without exec: one that it sends to itself ends it."""
    script = f"kill -{number} $$; exit 7"
    ended = subprocess.run([place.tool, "exec", "--", "/bin/sh", "-c", script], check=False).returncode
    return [] if ended == -number else [f"exec: a program that sends itself signal {number} ends with {ended}"]


def main():
    failures = []
    with Place(*sys.argv[1:3]) as place:
        with open(place.path("ptxas"), "w", encoding="ascii") as file:
            file.write(WAITING_PTXAS.format(folder=place.folder))
        os.chmod(place.path("ptxas"), 0o755)
        for fifo in ("started", "never"):
            os.mkfifo(place.path(fifo))
        opt = ["opt", "kernel.ptx", "-p", "dce", "--stats", "--gpu", "sm_80"]
        reduce = ["reduce", "kernel.ptx", "--test", place.path("ptxas") + " {}"]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            failures += check(place, opt, number)
        failures += check(place, reduce, signal.SIGINT)
        failures += check(place, opt, signal.SIGHUP, ignored=True)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            failures += check_executed(place, int(number))
    finish(failures)


main()
