#!/usr/bin/env bash
# Prints the figures beside their targets, and keeps what it prints in target/bench/<commit>.txt. `make bench` builds what this runs.
# $1: embedded | rabbitmq | both (default). $2: rounds of the whole system (default 3). $3: short (default: 25 minutes on two cores) or
# long: also a gigabyte through the chunker, questions about works of real length, and the parts that have no target.
# A missed target is printed, it is no failure. A bench that fails or takes too long does not keep the others from running: the last
# lines name it, and the script fails.
set -euo pipefail
cd "$(dirname "$0")/.."
bus=${1:-both} rounds=${2:-3} length=${3:-short}
target=${CARGO_TARGET_DIR:-target}
examples=$target/dist/examples
case $bus in embedded | rabbitmq | both) ;; *) echo "bench: $bus must be embedded, rabbitmq or both" >&2; exit 2 ;; esac
case $length in short | long) ;; *) echo "bench: $length must be short or long" >&2; exit 2 ;; esac
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "bench: $rounds is not a number of rounds" >&2; exit 2; }
for name in bench hops_bench counted_server agent_bench threads_bench doors_bench sessions_bench pipeline_bench graph_bench bus_bench quality_bench reader_bench meaning_bench retrieval_bench vector_bench memory_bench ingest_bench embed_bench keyword_bench retrieve_bench; do
  [ -x "$examples/$name" ] || { echo "bench: $examples/$name is not built: run make bench" >&2; exit 1; }
done
commit=$(git rev-parse --short=8 HEAD 2>/dev/null || echo no-commit)
kept=$target/bench/$commit.txt
mkdir -p "$(dirname "$kept")"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

failed=()
running=
# Runs a bench ($2, with its arguments) for so many seconds ($1) at most. timeout ends whatever the bench started with it.
run() {
  local limit=$1 name=$2 begun=$SECONDS code=0
  shift 2
  timeout --kill-after=30 "$limit" "$examples/$name" "$@" &
  running=$!
  wait "$running" || code=$?
  running=
  case $code in
    0) ;;
    124 | 137) failed+=("$name${*:+ $*}: more than $limit s") ;;
    *) failed+=("$name${*:+ $*}: exit code $code") ;;
  esac
  echo "($name: $((SECONDS - begun)) s)"
}

measured() {
  trap '[ -z "$running" ] || kill "$running" || true; exit 130' INT TERM
  local changed=
  [ -z "$(git status --porcelain 2>/dev/null)" ] || changed=', changed'
  say "Commit $commit$changed, the build that ships; bus: $bus; rounds of the whole system: $rounds; $length"
  echo "$(date -u '+%d %B %Y, %H:%M') UTC; $(nproc) cores, $(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo), $(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo); load $(cut -d' ' -f1-3 /proc/loadavg)"

  say "The system through its gateway"
  run 900 bench "$bus" "$rounds"
  say "One run taken apart: messages, commits, threads woken, bytes, and who waited for whom"
  run 300 hops_bench "$bus"
  say "The agent's loop: guards, many runs at once, a supervisor, a cancel, a run that is joined again"
  run 480 agent_bench "$bus"
  say "Threads: a forward between listeners at most 1.3 x a plain request"
  run 180 threads_bench "$bus"
  say "Doors of models and agents: /v1 at most 0.6 ms, a turn of a session at most 1.2 and 1.3 x a bare run, reads 3,000/s"
  run 300 doors_bench "$bus"
  say "Sessions: a turn and a page after 10,000 turns at most 1.5 x those after 10; 100,000 sessions add at most 20 MiB"
  run 420 sessions_bench
  say "The pipeline: at least 3 MB/s of text embedded, 1 MB/s over RabbitMQ with at most 8 messages a chunk"
  run 300 pipeline_bench "$bus"
  say "The graph engine: at least 100,000 triples/s in 1,000-quad batches, 20,000 look-ups/s, flat by size"
  run 300 graph_bench
  say "The buses: a question's way; embedded at most 60 us, RabbitMQ at most 1.5 x the bare client library"
  local buses=()
  [ "$bus" != embedded ] || buses=(embedded)
  run 420 bus_bench ${buses[@]+"${buses[@]}"}
  say "The vector store: top 50 of 100,000 x 256 at most 15 ms"
  run 240 vector_bench

  # A model of static vectors: ours from its source, else one that comes as a Python package. Without the network
  # there is none, and what needs one says so.
  local models=()
  if timeout 120 "$target/dist/tg" models pull --data-dir .cache; then models+=(.cache/models/potion-base-8M); fi
  if [ ! -d .cache/wordllama/wordllama ]; then
    timeout 120 .cache/venv/bin/pip install -q --no-deps --target .cache/wordllama wordllama==0.4.0.post1 || true
  fi
  if [ -d .cache/wordllama/wordllama ]; then models+=(.cache/wordllama/wordllama); fi
  say "Speed of retrieval: GraphRAG at most 80 ms, DocumentRAG at most 50 ms, SPARQL join at most 100 ms, deletion 2 s"
  if [ ${#models[@]} -gt 0 ]; then
    run 600 retrieval_bench "${models[0]}"
  else
    echo "not measured: no static model can be had"
  fi
  say "Quality of retrieval: the questions of tests/quality; hybrid with static vectors at least 0.9 recall@10"
  run 420 quality_bench lexical ${models[@]+"${models[@]}"}
  run 60 meaning_bench ${models[@]+"${models[@]}"}
  say "Works of real length: builtin at least 50 % right sentences, at most 12 % of the unanswerable answered"
  if timeout 180 scripts/fetch-works.sh; then
    run 120 reader_bench
    if [ "$length" = long ]; then run 1800 quality_bench works lexical ${models[@]+"${models[@]}"}; fi
  else
    echo "not measured: the works cannot be had"
  fi
  if [ "$length" = long ]; then
    say "Parts that have no target: chunks, vectors of texts, the keyword index, a frontier of the graph"
    run 600 ingest_bench
    run 600 embed_bench ${models[@]+"${models[0]}"}
    run 600 keyword_bench
    run 600 retrieve_bench
    say "Large things in little memory: a document of 1 GiB and a core of 100 MB, at most 64 MiB extra"
    # The shipped flow is measured with 64 MiB here: a gigabyte takes hours through its stores (memory_bench 1024 100 1024).
    run 3600 memory_bench 1024 100 64
  else
    say "Large things in little memory: a document of 128 MiB (the target is that of 1 GiB) and a core of 100 MB, at most 64 MiB extra"
    run 480 memory_bench 128 100 4
  fi

  say "In $(((SECONDS + 59) / 60)) minutes; load $(cut -d' ' -f1-3 /proc/loadavg)"
  if [ ${#failed[@]} -gt 0 ]; then
    echo "These benches failed:"
    printf '  %s\n' "${failed[@]}"
    return 1
  fi
}

measured 2>&1 | tee -i "$kept"
