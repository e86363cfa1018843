#!/usr/bin/env bash
# The main job on real input: load a dataset, ask the agent a question that needs the graph, show the
# stored trace; add and process two documents, ask the agent a question that only they answer, follow its
# answer to page and chunk; have a supervisor give each part of a question to an agent of its own; leave a run
# whose model asks the same again and again, join it again, and show why it was stopped; sum a session up, go on in the
# one that continues it, show what was summed up, and begin another one that knows what the user said in the first; stop the flow
# while a third document is processed and print the receipt.
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
  cargo build --locked -p tg-server -p tg-cli -p tg-testkit
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
free_port() {
  python3 - 2>/dev/null <<'PY' || echo "$1"
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])
PY
}
until_ready() {
  for _ in $(seq 1200); do
    curl -fs "${TRUSTGRAPH_URL}health/ready" >/dev/null 2>&1 && break
    sleep 0.1
  done
  curl -fsS "${TRUSTGRAPH_URL}health/ready" >/dev/null || { cat "$work"/log*; exit 1; }
}
port=$(free_port 18888)
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
  for _ in $(seq 900); do [ -s "$work/node.url" ] && break; sleep 0.1; done
  [ -s "$work/node.url" ] || { cat "$work/node.log"; exit 1; }
  url=$(sed -n 1p "$work/node.url")
  for service in config iam flow librarian knowledge graph ingest extract embeddings vectors rows rag llm prompt tool agent sessions threads gateway; do
    "$bin/threadgraph" serve "$service" --bus "$url" --listen "127.0.0.1:$port" \
      --data-dir "$work/data-$service" 2>"$work/log-$service" &
    pids+=($!)
  done
fi
until_ready
[ "$kind" = embedded ] && cat "$work/log"

say "Loading a dataset: the time zones of the world (IANA tz database, public domain)"
run tg-load-turtle -i time-zones --source never demo/timezones.ttl
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
say "Asking two things at once: a supervisor gives each to an agent of its own"
run tg-invoke-agent -p supervisor -q "What is the standard UTC offset of Kathmandu? What is the standard UTC offset of Eucla?"
say "Who did what of it"
run tg-show-explain-trace "$(newest_run)"
say "Starting a second system, whose model asks the same again and again"
stuck='Thought: I should work it out.
Action: calculator
Args: {"expression": "6 * 7"}
'
"$bin/scripted-model" --delay-ms 400 --text "$stuck" >"$work/model" &
pids+=($!)
for _ in $(seq 100); do [ -s "$work/model" ] && break; sleep 0.1; done
port=$(free_port 18889)
first=$TRUSTGRAPH_URL
export TRUSTGRAPH_URL="http://127.0.0.1:$port/"
OPENAI_BASE_URL=$(cat "$work/model") OPENAI_API_KEY=none OPENAI_MODEL=stuck \
  THREADGRAPH_AGENT__LOOP_WARNING=3 THREADGRAPH_AGENT__LOOP_CRITICAL=6 \
  "$bin/threadgraph" up --listen "127.0.0.1:$port" --data-dir "$work/stuck" 2>"$work/log-stuck" &
pids+=($!)
until_ready
say "Its reader is cut off in the middle of a run"
# The shell says that it was killed, which is meant.
(run timeout -s KILL 1.5 tg-invoke-agent --on-disconnect detach -q "What is 6 * 7?") 2>/dev/null || true
run tg-list-runs
say "It joins the run again, and hears all of it"
cut_off=$(tg-list-runs --json | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -n 1)
run tg-attach -v "$cut_off"
say "Why it was stopped"
run tg-show-explain-trace "$(newest_run)"
say "Starting a third system, whose agent has sessions and remembers its users"
mkdir -p "$work/guide/agents"
printf '%s\n' "name: guide" "model: scripted" "description: Knows the valley." "memory: true" >"$work/guide/agents/guide.yaml"
answer() { printf 'Thought: I know this.\nFinal Answer: %s' "$1"; }
"$bin/scripted-model" \
  --when "You are given one message&&I live in Kathmandu." --say "Ann | lives in | Kathmandu" \
  --when "You are given one message" --say "NONE" \
  --when "You sum up an earlier part" --say "So far: Ann is at home, and asked for the mountains nearby." \
  --when "Ann lives in Kathmandu&&Where do I live?" --say "$(answer "In Kathmandu.")" \
  --when "So far: Ann is at home&&What was that about?" --say "$(answer "About mountains, and then a river.")" \
  --when "And which river?" --say "$(answer "The Bagmati flows through the valley.")" \
  --when "Which mountains are near?" --say "$(answer "The Langtang range is near.")" \
  --when "I live in Kathmandu." --say "$(answer "That is noted.")" >"$work/guide-model" &
pids+=($!)
for _ in $(seq 100); do [ -s "$work/guide-model" ] && break; sleep 0.1; done
port=$(free_port 18890)
export TRUSTGRAPH_URL="http://127.0.0.1:$port/"
OPENAI_BASE_URL=$(cat "$work/guide-model") OPENAI_API_KEY=none OPENAI_MODEL=scripted THREADGRAPH_SESSIONS__COMPACT_KEEP=2 \
  "$bin/threadgraph" up --listen "127.0.0.1:$port" --data-dir "$work/guide" 2>"$work/log-guide" &
pids+=($!)
until_ready
say "Three turns of a session"
printf '%s\n' "I live in Kathmandu." "Which mountains are near?" "And which river?" |
  run tg-chat --agent guide --user-id ann
say "It is summed up, all but its last two messages"
session=$(tg-list-sessions guide --user-id ann --json | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' | head -n 1)
run tg-compact-session guide --user-id ann --session-id "$session"
say "It goes on in the session that continues it"
session=$(tg-show-session-lineage guide --user-id ann --session-id "$session" --json |
  sed -n 's/.*"live_session_id": *"\([^"]*\)".*/\1/p')
run tg-chat --agent guide --user-id ann --session-id "$session" -q "What was that about?"
say "What the summary stands for"
run tg-expand-session-summary guide --user-id ann --session-id "$session"
say "What the agent remembers of its user"
for _ in $(seq 600); do tg-list-memories --user-id ann --json | grep Kathmandu >/dev/null && break; sleep 0.1; done
run tg-list-memories --user-id ann
say "A session that begins anew knows it"
printf '%s\n' "Where do I live?" | run tg-chat --agent guide --user-id ann
export TRUSTGRAPH_URL=$first
if [ "$kind" = rabbitmq ]; then
  say "The queues as the broker sees them"
  kill -USR1 "$node"
  for _ in $(seq 900); do [ "$(wc -l <"$work/node.url")" -gt 1 ] && break; sleep 0.1; done
  sed 1d "$work/node.url"
fi
say "Stopping the flow while a longer text is processed"
run tg-add-library-document -k text/markdown --id urn:demo:operate --name "How to run it" docs/operate.md
run tg-start-library-processing -d urn:demo:operate --id operate
run tg-stop-flow -i default
