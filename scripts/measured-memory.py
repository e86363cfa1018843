#!/usr/bin/env python3
"""Prints `deploy/memory.txt`: the most that each service had resident, in MB, of what `make bench` kept.

    scripts/measured-memory.py target/bench/COMMIT.txt > deploy/memory.txt
    UPDATE=1 cargo test -p tg-server --test deploy

Of several systems the larger figure counts. `all` is one process with every service."""

import math
import re
import sys
from pathlib import Path

# As `tests/integration/examples/bench/system.rs` prints it.
LINE = re.compile(r"^\s*most resident memory under load of each, MB: (.+)$", re.M)
# As `scripts/bench.sh` begins, in bold, with the line about the machine below it.
HEAD = re.compile(r"^(?:\x1b\[1m)?(Commit .+?)(?:\x1b\[0m)?\n(.+)$", re.M)


def largest(text):
    """Service -> MB, rounded up."""
    most = {}
    for figures in LINE.findall(text):
        for figure in figures.split(", "):
            service, megabytes = figure.split(" ")
            most[service] = max(most.get(service, 0), math.ceil(float(megabytes)))
    return most


def main():
    text = Path(sys.argv[1]).read_text()
    most = largest(text)
    head = HEAD.search(text)
    if not head or "all" not in most or len(most) == 1:
        sys.exit(f"measured-memory: {sys.argv[1]} is not what scripts/bench.sh keeps of both buses")
    print("# Written by scripts/measured-memory.py; most resident memory in MB.")
    print(f"# {head[1]}\n# {head[2]}")
    for service in sorted(most):
        print(service, most[service])


if __name__ == "__main__":
    main()
