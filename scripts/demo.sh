#!/usr/bin/env bash
# The main job on real input: load a dataset, ask the agent a question that needs the graph, show the
# stored trace; add and process two documents, ask the agent a question that only they answer, follow its
# answer to page and chunk; stop the flow while a third document is processed and print the receipt.
# $1: embedded | rabbitmq. With DEMO_AS_BUILT nothing is built or fetched: what is there is used (a test does so).
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-embedded}
target=${CARGO_TARGET_DIR:-target}

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# Printed so that it can be pasted.
run() {
  local word line='$'
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=+,-]*) line+=" \"$word\"" ;;
      *) line+=" $word" ;;
    esac
  done
  printf '%s\n' "$line"
  "$@"
}
newest_run() {
  tg-list-explain-traces --json | sed -n 's/.*"id": *"\([^"]*:agent:[^"]*\)".*/\1/p' | head -n 1
}

if [ ! -x "$target/debug/threadgraph" ]; then
  echo "First build: some 450 crates, about 5 minutes on two cores. Later ones take seconds."
fi
if [ -z "${DEMO_AS_BUILT:-}" ]; then
  parts="-p tg-server -p tg-cli"
  [ "$kind" = embedded ] || parts="$parts -p tg-testkit"
  # shellcheck disable=SC2086
  cargo build --locked $parts
fi

work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  [ -z "${node:-}" ] || kill "$node" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
bin=$(cd "$target/debug" && pwd)
mkdir -p "$work/bin" && "$bin/tg" links "$work/bin" >/dev/null
export PATH="$work/bin:$PATH"
port=$(python3 - 2>/dev/null <<'PY' || echo 18888
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])
PY
)
export TRUSTGRAPH_URL="http://127.0.0.1:$port/"

say "Fetching static vectors, so that texts are found by meaning"
if [ -z "${DEMO_AS_BUILT:-}" ] && timeout 120 "$bin/tg" models pull potion-base-8M --data-dir .cache; then
  export THREADGRAPH_EMBEDDINGS__PROVIDER=static
  export THREADGRAPH_EMBEDDINGS__PATH="$PWD/.cache/models/potion-base-8M"
else
  echo "They cannot be had now: the lexical default serves, which finds shared words only."
fi

if [ "$kind" = embedded ]; then
  say "Starting every service in one process, stores in a temporary directory"
  "$bin/threadgraph" up --listen "127.0.0.1:$port" --data-dir "$work/data" 2>"$work/log" &
  pids+=($!)
else
  say "Starting a private RabbitMQ node and one process per service"
  "$bin/rabbitmq-node" >"$work/node.url" 2>"$work/node.log" &
  node=$!
  for _ in $(seq 300); do [ -s "$work/node.url" ] && break; sleep 0.1; done
  url=$(sed -n 1p "$work/node.url")
  for service in config iam flow librarian knowledge graph ingest extract embeddings vectors rows rag llm prompt tool agent gateway; do
    "$bin/threadgraph" serve "$service" --bus "$url" --listen "127.0.0.1:$port" \
      --data-dir "$work/data-$service" 2>"$work/log-$service" &
    pids+=($!)
  done
fi
for _ in $(seq 600); do
  curl -fs "${TRUSTGRAPH_URL}health/ready" >/dev/null 2>&1 && break
  sleep 0.1
done
curl -fsS "${TRUSTGRAPH_URL}health/ready" >/dev/null || { cat "$work"/log*; exit 1; }
[ "$kind" = embedded ] && cat "$work/log"

say "Loading a dataset: the time zones of the world (IANA tz database, public domain)"
run tg-load-turtle -i time-zones demo/timezones.ttl
say "Asking the agent"
question="What is the standard UTC offset of Kathmandu?"
run tg-invoke-agent -v -x -q "$question"
say "What the graph kept of it"
trace=$(newest_run)
run tg-show-explain-trace "$trace"
say "Adding two documents: a PDF and a Markdown text"
run tg-add-library-document -k application/pdf --id urn:demo:clocks --name "Uncommon clocks" \
  demo/documents/uncommon-clocks.pdf
run tg-add-library-document -k text/markdown --id urn:demo:tz --name "How the tz database is kept" \
  demo/documents/how-the-tz-database-is-kept.md
say "Processing them into graph, vectors and keywords"
run tg-start-library-processing -d urn:demo:clocks --id clocks --wait
run tg-start-library-processing -d urn:demo:tz --id tz --wait
say "Asking the agent what only the documents answer"
run tg-invoke-agent -x -q "Which mountain is the meridian of Nepal Standard Time close to?"
say "What the graph kept of it, with the way of each passage to its page"
trace=$(newest_run)
run tg-show-explain-trace --show-provenance "$trace"
say "From the answer to page and chunk, each link looked up"
run tg-verify-trace "$trace"
if [ "$kind" = rabbitmq ]; then
  say "The queues as the broker sees them"
  kill -USR1 "$node"
  for _ in $(seq 50); do [ "$(wc -l <"$work/node.url")" -gt 1 ] && break; sleep 0.1; done
  sed 1d "$work/node.url"
fi
say "Stopping the flow while a longer text is processed"
run tg-add-library-document -k text/markdown --id urn:demo:operate --name "How to run it" docs/operate.md
run tg-start-library-processing -d urn:demo:operate --id operate
run tg-stop-flow -i default
