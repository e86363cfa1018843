"""Runs the official commands, unmodified, one after the other: each is its installed script in a process of its own,
forked from this one, which has the libraries loaded already (loading them takes longer than most commands run).

Reads lines of JSON from standard input: {"command", "args", "patience"}; answers each with a line {"code", "stdout",
"stderr"}. The code is null of one that did not end within its patience in seconds and was killed.
"""

import gc
import json
import os
import runpy
import signal
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


def child(command, args, out, err):
    """Becomes the script. Whatever ends it ends this process as it would end the script's."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    path = os.path.join(SCRIPTS, command)
    sys.argv = [path, *args]
    runpy.run_path(path, run_name="__main__")


def waited(pid, patience):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def main():
    # Else each script copies the memory of these libraries when it looks through it for garbage, in particular at its end: that took
    # two thirds of its time.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        ask = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            pid = os.fork()
            if pid == 0:
                child(ask["command"], ask["args"], out, err)
                return
            code = waited(pid, ask["patience"])
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        print(json.dumps({"code": code, "stdout": texts[0], "stderr": texts[1]}), flush=True)


main()
