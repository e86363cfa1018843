#!/usr/bin/env python3
"""Runs every suite of tests, after a build: first all but what has the machine to itself, the integration suite last,
then the tests in modules `alone`, one at a time. All run, so that one run tells all that
fails; what failed is repeated at the end. Ends with 1 if a test failed, or if a part took longer than its bound.

A suite's output stands in one piece, once it has ended; of the integration suite, which takes longest, each line as it comes.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

# Seconds: more than twice what they take on an idle machine of two processors (docs/decisions/0021-limits.md).
SUITES, ALONE = 50 * 60, 15 * 60
# How often a failed test with a broker or processes runs again by itself, and how many of a suite do.
AGAIN, FLAKY = 2, 5
# Of what a failed test said, so many lines are repeated, of so many characters.
LINES, WIDTH = 40, 400

PROCESSORS = len(os.sched_getaffinity(0))
# Most tests wait for processes and brokers: more of them than there are processors keep these busy.
THREADS = 2 * PROCESSORS

begun = time.monotonic()


def say(text):
    print(text, flush=True)


class Suite:
    """A test program, or the examples in documentation (no `program`)."""

    def __init__(self, name, program, folder):
        self.name, self.program, self.folder = name, program, folder

    def repeats(self, test):
        """Whether a failure of a test may be the machine's: a broker or processes are outside of it."""
        package, target = self.name.split(" ") if self.program else ("", "")
        engine = package in ("tg-architecture-tests", "tg-fuzz") or target == package.replace("-", "_")
        return bool(self.program) and (not engine or "rabbitmq::" in test)

    def command(self, arguments):
        return [self.program, *arguments] if self.program else ["cargo", "test", "--workspace", "--doc", "--locked"]

    def environment(self, threads):
        # What `cargo test` tells a test program; and who runs them all, for what they share.
        told = {"RUST_TEST_THREADS": str(threads), "TG_SUITES": str(os.getpid())}
        if self.program:
            told |= {"CARGO_MANIFEST_DIR": self.folder, "CARGO_PKG_NAME": self.name.split(" ")[0]}
        return os.environ | told


def built():
    """The test programs of the workspace, in cargo's order; those of the integration tests apart."""
    command = ["cargo", "test", "--workspace", "--no-run", "--locked", "--message-format=json-render-diagnostics"]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    integration, others = [], []
    for line in told.splitlines():
        artifact = json.loads(line)
        if artifact["reason"] != "compiler-artifact" or not artifact["executable"] or not artifact["profile"]["test"]:
            continue
        folder = Path(artifact["manifest_path"]).parent
        package = artifact["package_id"].rsplit("#", 1)[-1].split("@")[0]
        package = package if not package[0].isdigit() else folder.name
        suite = Suite(f"{package} {artifact['target']['name']}", artifact["executable"], str(folder))
        (integration if package == "tg-integration-tests" and artifact["target"]["name"] == "it" else others).append(suite)
    if len(integration) != 1 or not others:
        sys.exit("suites: the integration suite was not built")
    return integration, others


class Part:
    """Suites that share a bound of time."""

    def __init__(self, bound):
        self.running, self.over = None, False
        self.failed, self.said = [], []
        timer = threading.Timer(bound, self.end)
        timer.daemon = True
        timer.start()

    def end(self):
        """Ends what still runs; the harness has named by then which tests have been running for over a minute."""
        self.over = True
        if self.running:
            self.running.terminate()

    def run_all(self, suites, threads, arguments, live=False):
        for suite in suites:
            if self.over:
                self.failed.append(f"{suite.name}: not begun, the time was over")
                continue
            self.run(suite, threads, arguments, live)

    def run(self, suite, threads, arguments, live):
        since, lines = time.monotonic(), []
        if live:
            say(f"     Running {suite.name}")
        process = subprocess.Popen(
            suite.command(arguments),
            cwd=suite.folder,
            env=suite.environment(threads),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.running = process
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if live:
                say(lines[-1])
        code = process.wait()
        took = f"     {suite.name}: {time.monotonic() - since:.0f} s"
        say(took if live else "\n".join([f"     Running {suite.name}", *lines, took]))
        if code and not self.over and self.passes_again(suite, lines):
            return
        if code:
            self.failed.append(f"{suite.name}: " + ("cut off, the time was over" if self.over else f"ended with {code}"))
            self.said += excerpt(lines) or lines[-LINES:]


    def passes_again(self, suite, lines):
        """Runs each failed test with a broker or processes again by itself, at most twice. Whether all passed then."""
        names = [found.group(1) for line in lines if (found := re.match(r"test (\S+) \.\.\. FAILED$", line))]
        if not names or len(names) > FLAKY or not all(suite.repeats(name) for name in names):
            return False
        for name in names:
            tries = (
                subprocess.run(
                    [suite.program, "--exact", name], cwd=suite.folder, env=suite.environment(1), check=False
                ).returncode
                for _ in range(AGAIN)
            )
            if all(tries):
                return False
            say("\n".join([f"flaky: {suite.name} {name} passed by itself", *excerpt(lines)]))
        return True


def excerpt(lines):
    """What failed tests of a suite said."""
    shown, left = [], 0
    for line in lines:
        if line.startswith("---- ") and line.endswith(" ----"):
            left = LINES
        elif line.startswith("failures:") or line.lower().startswith("stack backtrace:"):
            left = 0
        if left:
            shown.append(line[:WIDTH])
            left -= 1
    return shown


def stage(name):
    say(f"\n== {name}, after {time.monotonic() - begun:.0f} s of tests")


def main():
    integration, others = built()
    stage("Suites")
    together = Part(SUITES)
    skip = ["--skip", "alone::"]
    together.run_all([*others, Suite("examples in documentation", None, os.getcwd())], THREADS, skip)
    together.run_all(integration, THREADS, skip, live=True)

    stage("Tests that have the machine to themselves")
    alone = Part(ALONE)
    of_themselves = [suite for suite in [*others, *integration] if suite.name.endswith(" it")]
    alone.run_all(of_themselves, 1, ["alone::"], live=True)

    stage("Suites are done")
    failed = together.failed + alone.failed
    if failed:
        say("\n".join([*together.said, *alone.said, "", "What failed:", *failed]))
        sys.exit(1)


if __name__ == "__main__":
    main()
