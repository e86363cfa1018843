#!/usr/bin/env python3
"""Writes what the shipped binaries are made of, as CycloneDX JSON: every crate that `cargo tree` names for them, with the checksum of
`Cargo.lock`, and every npm package in the page at `/`, with that of its lock file. The same sources give the same text. Usage: sbom.py TARGET > FILE."""

import base64
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"^(\S+) v(\S+)")


def used(target):
    told = subprocess.run(
        ["cargo", "tree", "-p", "tg-server", "-p", "tg-cli", "-e", "normal", "--prefix", "none", "--locked", "--offline", "--target", target],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )
    return sorted({match.groups() for match in map(LINE.match, told.stdout.splitlines()) if match})


def in_the_page():
    """What the page has of npm packages: all that its lock file does not call tools of its build."""
    locked = json.loads((ROOT / "console/package-lock.json").read_text())["packages"]
    for path, package in sorted(locked.items()):
        if not path or package.get("dev"):
            continue
        name, release = path.rpartition("node_modules/")[2], package["version"]
        content = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
        yield {
            "type": "library", "name": name, "version": release, "purl": f"pkg:npm/{quote(name, safe='/')}@{release}",
            "hashes": [{"alg": "SHA-512", "content": content}],
        }


def main():
    target = sys.argv[1]
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    components = []
    for name, release in used(target):
        one = {"type": "library", "name": name, "version": release}
        checksum = checksums.get((name, release))
        if checksum:
            one["purl"] = f"pkg:cargo/{name}@{release}"
            one["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(one)
    components += in_the_page()
    whole = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "threadgraph", "version": version}},
        "components": components,
    }
    json.dump(whole, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
