#!/usr/bin/env bash
# Prints the figures beside their targets. `make bench` builds what this runs. $1: embedded | rabbitmq | both
# (default), $2: rounds (default 5). A missed target is printed, it is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
examples=${CARGO_TARGET_DIR:-target}/dist/examples
for name in bench hops_bench counted_server agent_bench threads_bench doors_bench pipeline_bench graph_bench bus_bench quality_bench reader_bench meaning_bench retrieval_bench vector_bench memory_bench; do
  [ -x "$examples/$name" ] || { echo "bench: $examples/$name is not built: run make bench" >&2; exit 1; }
done
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "The system through its gateway ($(git rev-parse --short HEAD 2>/dev/null || echo 'no commit'), the build that ships)"
failed=0
"$examples/bench" "${1:-both}" "${2:-5}" || failed=1
say "One run taken apart: messages, commits, threads woken, bytes, and who waited for whom"
"$examples/hops_bench" "${1:-both}" || failed=1
say "The agent's loop: guards, many runs at once, a supervisor, a cancel, a run that is joined again"
"$examples/agent_bench" "${1:-both}" || failed=1
say "Threads: a forward between listeners at most 1.3 x a plain request"
"$examples/threads_bench" "${1:-both}" || failed=1
say "Doors of models and agents: /v1 at most 0.6 ms, a turn of a session at most 1.2 and 1.3 x a bare run, reads 3,000/s"
"$examples/doors_bench" "${1:-both}" || failed=1
say "The pipeline: at least 3 MB/s of text embedded, 1 MB/s over RabbitMQ with at most 8 messages a chunk"
"$examples/pipeline_bench" "${1:-both}" || failed=1
say "The graph engine: at least 100,000 triples/s in 1,000-quad batches, 20,000 look-ups/s, flat by size"
"$examples/graph_bench" || failed=1
say "The buses: a question's way; embedded at most 60 us, RabbitMQ at most 1.5 x the bare client library"
buses=()
[ "${1:-both}" != embedded ] || buses=(embedded)
"$examples/bus_bench" "${buses[@]}" || failed=1

# A model of static vectors: ours from its source, else one that comes as a Python package. Without the network
# there is none, and what needs one says so.
models=()
if "$examples/../tg" models pull --data-dir .cache; then models+=(.cache/models/potion-base-8M); fi
if [ ! -d .cache/wordllama/wordllama ]; then
  .cache/venv/bin/pip install -q --no-deps --target .cache/wordllama wordllama==0.4.0.post1 || true
fi
if [ -d .cache/wordllama/wordllama ]; then models+=(.cache/wordllama/wordllama); fi
say "Quality of retrieval: the questions of tests/quality; hybrid with static vectors at least 0.9 recall@10"
"$examples/quality_bench" lexical ${models[@]+"${models[@]}"} || failed=1
say "Works of real length: builtin at least 50 % right sentences, at most 12 % of the unanswerable answered"
if scripts/fetch-works.sh; then
  "$examples/quality_bench" works lexical ${models[@]+"${models[@]}"} || failed=1
  "$examples/reader_bench" || failed=1
else
  echo "not measured: the works cannot be had"
fi
"$examples/meaning_bench" ${models[@]+"${models[@]}"} || failed=1
say "Speed of retrieval: GraphRAG at most 80 ms, DocumentRAG at most 50 ms, SPARQL join at most 100 ms, deletion 2 s"
if [ ${#models[@]} -gt 0 ]; then
  "$examples/retrieval_bench" "${models[0]}" || failed=1
else
  echo "not measured: no static model can be had"
fi
say "The vector store: top 50 of 100,000 x 256 at most 15 ms"
"$examples/vector_bench" || failed=1
say "Large things in little memory: a document of 1 GiB and a core of 100 MB, at most 64 MiB extra"
# The shipped flow is measured with 64 MiB here: a gigabyte takes hours through its stores (memory_bench 1024 100 1024).
"$examples/memory_bench" 1024 100 64 || failed=1
exit $failed
