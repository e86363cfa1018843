"""Runs the official commands, unmodified: each is its installed script in a process of its own, forked from this one, which has
the libraries loaded already (loading them takes longer than most commands run).

Prints the port where it listens on loopback, and ends with its standard input. A connection asks for one run with a line of JSON:
{"command", "args", "env", "patience"}. The answer is a line {"code", "stdout", "stderr"}. The code is null of one that did not end
within its patience in seconds and was killed. One whose asker hangs up is killed, too.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import time

# What the scripts load themselves; their own modules are not here, as these read the environment when they are loaded.
import aiohttp  # noqa: F401
import msgpack  # noqa: F401
import rdflib  # noqa: F401
import rdflib.plugins.parsers.notation3  # noqa: F401
import rdflib.plugins.parsers.trig  # noqa: F401
import rdflib.plugins.serializers.turtle  # noqa: F401
import requests  # noqa: F401
import tabulate  # noqa: F401
import websockets  # noqa: F401
import trustgraph.api  # noqa: F401

SCRIPTS = os.path.join(sys.prefix, "bin")
# Between two looks whether a script has ended, in seconds.
LOOK = 0.005


class Run:
    """A script under way, and who waits for it."""

    def __init__(self, connection, ask):
        self.connection = connection
        self.end = time.monotonic() + ask["patience"]
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.pid = os.fork()

    def is_over(self):
        """Whether it has ended, or is ended now; whoever asked knows then."""
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done and time.monotonic() < self.end:
            return False
        if not done:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        answer = {"code": os.waitstatus_to_exitcode(status) if done else None}
        for name, file in (("stdout", self.out), ("stderr", self.err)):
            with file:
                file.seek(0)
                answer[name] = file.read().decode("utf-8", "replace")
        with self.connection:
            try:
                self.connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                pass  # Whoever asked has hung up.
        return True


def become(run, ask):
    """Becomes the script. Whatever ends it ends this process as it would end the script's."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(run.out.fileno(), 1)
    os.dup2(run.err.fileno(), 2)
    os.environ.update(ask["env"])
    path = os.path.join(SCRIPTS, ask["command"])
    sys.argv = [path, *ask["args"]]
    runpy.run_path(path, run_name="__main__")


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    # Else each script copies the memory of these libraries when it looks through it for garbage, in particular at its end: that took
    # two thirds of its time.
    gc.collect()
    gc.freeze()
    print(listener.getsockname()[1], flush=True)
    running = []
    while True:
        asking = {run.connection: run for run in running}
        ready, _, _ = select.select([0, listener, *asking], [], [], LOOK if running else None)
        if 0 in ready:
            for run in running:
                os.kill(run.pid, signal.SIGKILL)
            return
        for connection in ready:
            if connection in asking:
                # Nobody says more than a line: this is the end of it.
                asking[connection].end = 0
        running = [run for run in running if not run.is_over()]
        if listener in ready:
            connection, _ = listener.accept()
            try:
                ask = json.loads(connection.makefile("rb").readline())
            except (OSError, ValueError):
                connection.close()  # Whoever connected has hung up.
                continue
            run = Run(connection, ask)
            if run.pid == 0:
                become(run, ask)
                return
            running.append(run)


main()
