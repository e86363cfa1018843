#!/usr/bin/env bash
# Prints the figures beside their targets. `make bench` builds what this runs. $1: embedded | rabbitmq | both
# (default), $2: rounds (default 5). A missed target is printed, it is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
examples=${CARGO_TARGET_DIR:-target}/release/examples
for name in bench graph_bench bus_bench; do
  [ -x "$examples/$name" ] || { echo "bench: $examples/$name is missing: run make bench" >&2; exit 1; }
done
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "The system through its gateway ($(git rev-parse --short HEAD 2>/dev/null || echo 'no commit'), release build)"
failed=0
"$examples/bench" "${1:-both}" "${2:-5}" || failed=1
say "The graph engine: at least 100,000 triples/s in 1,000-quad batches, 20,000 look-ups/s, flat by size"
"$examples/graph_bench" || failed=1
say "The buses: a question's way; embedded at most 60 us, RabbitMQ at most 1.5 x the bare client library"
buses=()
[ "${1:-both}" != embedded ] || buses=(embedded)
"$examples/bus_bench" "${buses[@]}" || failed=1
exit $failed
