#!/usr/bin/env python3
"""Runs the suites of tests after a build.

    suites.py gate    every suite, without the tests that tests/soak.toml lists, and the API contract
    suites.py soak    the tests that tests/soak.toml lists, one at a time
    suites.py table   writes docs/tests.md: each promise of the black-box tests, with its tests; the gate holds it

Suites of units and engines run under `cargo test`'s own harness and are never repeated. Suites with a broker or with processes of their
own run under cargo-nextest (.config/nextest.toml). A test that fails there runs again by itself, at most twice. If it then passes,
it is flaky: this script reports it with its first output in `.cache/flaky.txt`, and `tests/flaky.toml` has a line for it. More than
five flaky tests fail the run, and so does a test that fails each time, a suite that did not run, and a line of `tests/flaky.toml` past its date.
"""

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Seconds for all suites together: more than twice what they take on an idle machine of two processors. The tests that `make soak` runs
# have longer: one of them takes forty minutes.
BOUND, SOAK_BOUND = 60 * 60, 3 * 60 * 60
# How often a failed test of a suite with a broker or processes runs again, and how many flaky tests a run may have.
AGAIN, FLAKY = 2, 5
# Suites of units that run at the same time: most end with one test that keeps one processor busy.
BESIDE = 2
# RabbitMQ nodes keep their data in memory where the shared memory has so much room and the machine so much to spare.
SHARED, MEMORY = 8 << 30, 16 << 30
# So many of the slowest tests are named at the end.
SLOWEST = 10
# Of the output of a failed test, so many lines are repeated at the end, of so many characters.
LINES, WIDTH = 60, 400

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
# Where nextest reports, whatever the target directory is.
REPORT = ROOT / "target" / "nextest" / "gate" / "junit.xml"
# What has tests. Otherwise cargo builds the examples, too: of these the build has made those that tests start.
TARGETS = ("--lib", "--bins", "--tests")
# Suites that are targets of their own and yet have neither broker nor processes.
ENGINES = {"tg-architecture-tests::it", "tg-fuzz::it", "tg-threads::threads", "tg-ingest::pdfs"}

begun = time.monotonic()
# What began when, and what the processors had done by then: name, seconds, (idle, in all).
stages = []
# Where RabbitMQ nodes keep their data, if that is said.
nodes = {}


def say(text):
    print(text, flush=True)


def processors():
    """For how long the processors were idle since the machine started, and that together with all else, as the system counts it."""
    counted = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return counted[3] + counted[4], sum(counted)


def stage(name):
    stages.append((name, time.monotonic(), processors()))
    say(f"\n== {name}, after {time.monotonic() - begun:.0f} s of tests")


def environment():
    """What tests and the programs that they start see. All of them talk to this machine alone, so no proxy stands between."""
    own = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return own | {"TG_SUITES": str(os.getpid())} | nodes


def in_memory():
    """A folder of memory for RabbitMQ nodes, which wait for the disk at each durable queue, exchange and binding: where there is
    plenty of it. Nodes are killed and come back all the same; only a loss of power would show a difference."""
    shared = Path("/dev/shm")
    try:
        part = os.statvfs(shared)
        free = {line.split()[0]: int(line.split()[1]) << 10 for line in Path("/proc/meminfo").read_text().splitlines()}
        plenty = part.f_bavail * part.f_frsize >= SHARED and free["MemAvailable:"] >= MEMORY
    except (OSError, KeyError):
        return {}
    return {"TG_RABBIT_FOLDER": str(shared)} if plenty and os.access(shared, os.W_OK | os.X_OK) else {}


def nextest(*arguments, **options):
    return subprocess.run(["cargo", "nextest", *arguments], cwd=ROOT, env=environment(), **options)


def listed(path):
    """The rows of one of the lists in tests/."""
    return tomllib.loads((ROOT / "tests" / path).read_text()).get("test", [])


class Suites:
    """The built suites: binary id -> its path, folder, and names of tests."""

    def __init__(self):
        told = nextest("list", "--workspace", *TARGETS, "--locked", "--message-format", "json", stdout=subprocess.PIPE, check=True)
        self.all = json.loads(told.stdout)["rust-suites"]
        self.all = {name: suite for name, suite in self.all.items() if suite["testcases"]}
        if "tg-integration-tests::it" not in self.all:
            sys.exit("suites: the integration suite was not built")

    def inner(self):
        """Suites of units and engines."""
        return [name for name, suite in self.all.items() if suite["kind"] != "test" or name in ENGINES]

    def outer(self):
        """Suites with a broker, or with processes."""
        return [name for name in self.all if name not in set(self.inner())]

    def brokered(self, name):
        """Tests of a suite of units that talk to a broker all the same."""
        return [test for test in self.all[name]["testcases"] if "rabbitmq::" in test or "over_a_broker" in test]

    def soaked(self):
        """Tests that `make soak` runs and the gate does not: (suite, name) -> why."""
        found = {}
        for row in listed("soak.toml"):
            names = self.all.get(row["suite"], {"testcases": {}})["testcases"]
            matching = [name for name in names if re.search(row["tests"], name)]
            if not matching:
                sys.exit(f"suites: tests/soak.toml: {row['suite']} has no test {row['tests']}")
            found |= {(row["suite"], name): row["why"] for name in matching}
        return found


def table(suites, soaked):
    """docs/tests.md, from the files of the black-box tests and the tests that were built."""
    suite = "tg-integration-tests::it"
    by_file = {}
    for test in suites.all[suite]["testcases"]:
        by_file.setdefault(test.split("::")[0], []).append(test)
    rows = []
    for file, tests in sorted(by_file.items()):
        folder = ROOT / "tests/integration/tests/it"
        source = folder / f"{file}.rs"
        text = (source if source.exists() else folder / file / "mod.rs").read_text()
        promise = " ".join(line[3:].strip() for line in text.split("\n\n")[0].splitlines() if line.startswith("//!"))
        for kind, chosen in (("gate", False), ("soak", True)):
            names = [test.removeprefix(f"{file}::") for test in tests if ((suite, test) in soaked) == chosen]
            if names:
                rows.append(f"| {promise.replace('|', chr(92) + '|')} | `{file}` | {', '.join(f'`{name}`' for name in sorted(names))} | {kind} |")
    others = [f"| {name} | {len(suites.all[name]['testcases'])} |" for name in sorted(suites.outer()) if name != suite]
    moved = [f"| `{name}` ({of}) | {why} |" for (of, name), why in sorted(soaked.items())]
    return "\n".join([
        "# Promises, tests and suites", "",
        "`scripts/suites.py table` writes this page from the tests that were built; `make test` fails where it is out of date. A suite is",
        "`gate` (`make test`) or `soak` (`make soak`).", "",
        "## Black-box tests", "", "| promise | file | tests | suite |", "|---|---|---|---|", *rows, "",
        "## Other suites with a broker or processes", "", "| suite | tests |", "|---|---|", *others, "",
        "## What only `make soak` runs", "", "| test | why |", "|---|---|", *moved, "",
    ])  # fmt: skip


def excerpt(text):
    """The end of the output of a failed test, which has its panic."""
    lines = [line[:WIDTH] for line in text.splitlines()]
    panics = [at for at, line in enumerate(lines) if "panicked at" in line or line.startswith(("Error:", "thread '"))]
    start = max(0, panics[0] - 5) if panics else max(0, len(lines) - LINES)
    return lines[start : start + LINES]


class Outcome:
    """What a run adds up to."""

    def __init__(self):
        self.passed, self.failed, self.flaky, self.said = 0, [], [], []
        self.ran, self.over = set(), False
        self.seconds = {}

    def fail(self, what, text=""):
        self.failed.append(what)
        self.said += [f"---- {what}", *excerpt(text)]


def run_one(suites, name, outcome, soaked):
    """One suite with all its tests in one process, as `cargo test` does; None when the time is over."""
    if outcome.over:
        return None
    suite = suites.all[name]
    left_out = sorted({test for of, test in soaked if of == name} | set(suites.brokered(name)))
    arguments = ["--exact", *(word for test in left_out for word in ("--skip", test))] if left_out else []
    threads = str(2 * len(os.sched_getaffinity(0)))
    told = {"RUST_TEST_THREADS": threads, "CARGO_MANIFEST_DIR": suite["cwd"], "CARGO_PKG_NAME": suite["package-name"]}
    since = time.monotonic()
    process = subprocess.run(
        [suite["binary-path"], *arguments], cwd=suite["cwd"], env=environment() | told,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    return process, time.monotonic() - since


def run_inner(suites, outcome, soaked):
    """The suites of units and engines, a few at a time, and beside them the examples in documentation."""
    names = suites.inner()
    with ThreadPoolExecutor(BESIDE) as pool, ThreadPoolExecutor(1) as beside:
        examples = beside.submit(examples_in_documentation)
        runs = pool.map(lambda name: run_one(suites, name, outcome, soaked), names)
        for name, run in zip(names, runs):
            if run is None:
                outcome.fail(f"{name}: did not run, the time was over")
                continue
            process, seconds = run
            results = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", process.stdout, re.M)
            passed = sum(int(row[0]) for row in results)
            outcome.passed += passed
            say(f"     {name}: {passed} passed, {seconds:.0f} s")
            if results:
                outcome.ran.add(name)
            if process.returncode:
                say(process.stdout)
                broken = re.findall(r"^test (\S+).* \.\.\. FAILED$", process.stdout, re.M) or [f"ended with {process.returncode}"]
                for test in broken:
                    part = process.stdout.split(f"---- {test} stdout ----")
                    outcome.fail(f"{name} {test}", part[-1].split("\n---- ")[0] if len(part) > 1 else process.stdout)
        count_examples(*examples.result(), outcome)


def examples_in_documentation():
    since = time.monotonic()
    command = ["cargo", "test", "--workspace", "--doc", "--locked"]
    process = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return process, time.monotonic() - since


def count_examples(process, seconds, outcome):
    passed = sum(int(count) for count in re.findall(r"^test result: ok\. (\d+) passed", process.stdout, re.M))
    say(f"     examples in documentation: {passed} passed, {seconds:.0f} s")
    outcome.passed += passed
    if process.returncode:
        say(process.stdout)
        outcome.fail("examples in documentation", process.stdout)


def chosen(tests):
    """A filter of nextest for exactly these (suite, test)."""
    by_suite = {}
    for suite, test in tests:
        by_suite.setdefault(suite, []).append(test)
    parts = [f"(binary_id(={suite}) & ({' | '.join(f'test(={test})' for test in names)}))" for suite, names in by_suite.items()]
    return " | ".join(parts)


def reported():
    """The report of the last run of nextest: (suite, test) -> seconds and None, or the output of a failure."""
    tests = {}
    tree = ElementTree.parse(REPORT)
    for suite in tree.getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            bad = case.find("failure") if case.find("failure") is not None else case.find("error")
            text = None
            if bad is not None:
                text = "\n".join([bad.get("message") or "", *(case.findtext(out) or "" for out in ("system-out", "system-err"))])
            tests[suite.get("name"), case.get("name")] = float(case.get("time") or 0), text
    return tests


def run_filtered(expression, outcome, *arguments):
    """Runs what a filter chooses; what the report has."""
    REPORT.unlink(missing_ok=True)
    code = nextest("run", "--workspace", *TARGETS, "--locked", "--profile", "gate", "-E", expression, *arguments).returncode
    if not REPORT.exists():
        outcome.fail(f"cargo nextest ended with {code} and without a report")
        return {}
    report = reported()
    for test, (seconds, _) in report.items():
        outcome.seconds.setdefault(test, seconds)
    return {test: text for test, (_, text) in report.items()}


def api_contract():
    """The endpoints against their description, in systems of their own."""
    return subprocess.run(
        [ROOT / "scripts/api-contract.sh"], cwd=ROOT, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip


def hold_contract(first, outcome):
    """What it found beside the tests. Where that is a failure, it runs again by itself, as a test does."""
    say(first.stdout)
    if first.returncode == 0:
        return
    tries = range(0 if outcome.over else AGAIN)
    if any(api_contract().returncode == 0 for _ in tries):
        outcome.flaky.append(("the API contract", first.stdout))
    else:
        outcome.fail("the API contract", first.stdout)


def run_outer(suites, outcome, soaked):
    names = suites.outer()
    brokered = [(name, test) for name in suites.inner() for test in suites.brokered(name)]
    expression = " | ".join([*(f"binary_id(={name})" for name in names), chosen(brokered)])
    if soaked:
        expression = f"({expression}) - ({chosen(soaked)})"
    # Beside the tests that begin first: many of them wait, and leave the processors idle.
    with ThreadPoolExecutor(1) as beside:
        contract = beside.submit(api_contract)
        results = run_filtered(expression, outcome)
        first = contract.result()
    # What runs again by itself overwrites the report.
    if REPORT.exists():
        shutil.copy(REPORT, CACHE / "junit.xml")
    outcome.ran |= {suite for suite, _ in results}
    wanted = {
        (name, test) for name, suite in suites.all.items() for test, case in suite["testcases"].items()
        if not case["ignored"] and (name in names or (name, test) in brokered)
    } - set(soaked)  # fmt: skip
    for suite, test in sorted(wanted - set(results)):
        outcome.fail(f"{suite} {test}: did not run")
    hold_contract(first, outcome)
    broken = {test: text for test, text in results.items() if text is not None}
    outcome.passed += len(results) - len(broken)
    if broken:
        look_again(broken, outcome)


def look_again(broken, outcome):
    """Runs each failed test by itself. One that passes then is flaky."""
    stage(f"{len(broken)} failed: each again, by itself")
    for (suite, test), first in broken.items():
        name = f"{suite} {test}"
        tries = range(AGAIN) if len(broken) <= 3 * FLAKY and not outcome.over else ()
        if any(run_filtered(chosen([(suite, test)]), outcome, "--test-threads", "1").get((suite, test), "") is None for _ in tries):
            outcome.passed += 1
            outcome.flaky.append((name, first))
        else:
            outcome.fail(name, first)


def report_flaky(outcome):
    known = {row["test"]: row for row in listed("flaky.toml")}
    today = datetime.date.today()
    for row in known.values():
        if row["until"] < today:
            outcome.fail(f"tests/flaky.toml: {row['test']} was to be mended until {row['until']}")
    text = "\n".join("\n".join([f"flaky: {name}", *excerpt(first), ""]) for name, first in outcome.flaky)
    CACHE.mkdir(exist_ok=True)
    (CACHE / "flaky.txt").write_text(text)
    for name, _ in outcome.flaky:
        say(f"flaky: {name}" + ("" if name in known else " (add a line to tests/flaky.toml)"))
    if text:
        say(text)
    if len(outcome.flaky) > FLAKY:
        outcome.fail(f"{len(outcome.flaky)} tests are flaky, more than {FLAKY}")


def report_seconds(outcome):
    """What each stage took, how much of that time the processors were idle, and the slowest tests of processes and brokers."""
    say("Seconds of each stage, and how much of that time the processors were idle:")
    for (name, since, before), (_, until, after) in zip(stages, stages[1:]):
        idle, every = (now - then for now, then in zip(after, before))
        say(f"     {until - since:5.0f} s, {100 * idle / max(every, 1):3.0f} %  {name}")
    say(f"The {SLOWEST} slowest tests:")
    for (suite, test), seconds in sorted(outcome.seconds.items(), key=lambda one: -one[1])[:SLOWEST]:
        say(f"     {seconds:5.0f} s  {suite} {test}")


def bounded(outcome, seconds):
    """Ends what runs when the time is over: the children, so that the report is still made."""

    def end():
        outcome.over = True
        subprocess.run(["pkill", "-TERM", "-P", str(os.getpid())], check=False)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def main():
    kind = sys.argv[1] if len(sys.argv) == 2 else ""
    if kind not in ("gate", "soak", "table"):
        sys.exit(__doc__)
    suites, outcome = Suites(), Outcome()
    bounded(outcome, SOAK_BOUND if kind == "soak" else BOUND)
    soaked = suites.soaked()
    page = ROOT / "docs/tests.md"
    if kind == "table":
        page.write_text(table(suites, soaked))
        return
    if kind == "gate" and (page.read_text() if page.exists() else "") != table(suites, soaked):
        outcome.fail("docs/tests.md is out of date: scripts/suites.py table writes it")
    if kind == "soak":
        stage(f"{len(soaked)} tests of tests/soak.toml, one at a time")
        results = run_filtered(chosen(soaked), outcome, "--test-threads", "1")
        for (suite, test), why in soaked.items():
            text = results.get((suite, test), "did not run")
            say(f"{'ok' if text is None else 'FAILED'}: {suite} {test}: {why}")
            outcome.passed += text is None
            if text is not None:
                outcome.fail(f"{suite} {test}", text)
    else:
        nodes.update(in_memory())
        say("RabbitMQ nodes keep their data " + ("in memory" if nodes else "on disk"))
        stage("Units and engines")
        run_inner(suites, outcome, soaked)
        stage("Suites with a broker or processes, and the API contract")
        run_outer(suites, outcome, soaked)
        for name in sorted(set(suites.all) - outcome.ran):
            outcome.fail(f"{name}: this suite did not run")
        report_flaky(outcome)
    stage("Suites are done")
    report_seconds(outcome)
    if outcome.failed:
        say("\n".join([*outcome.said, "", "Failed:", *outcome.failed]))
    summary = f"{outcome.passed} passed, {len(outcome.failed)} failed"
    (CACHE / "summary").write_text(summary + "\n")
    say(summary)
    sys.exit(1 if outcome.failed else 0)


if __name__ == "__main__":
    main()
