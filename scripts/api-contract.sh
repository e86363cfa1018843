#!/usr/bin/env bash
# Holds specs/api/openapi.yaml against the running gateway: generated requests, valid and not, through every
# endpoint. Bounded by examples per operation. Of exports only those that end: what passes is exported without end
# (scripts/api_contract_hooks.py).
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
work=$(mktemp -d)
pid=
cleanup() { [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; } || true; rm -rf "$work"; }
trap cleanup EXIT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
env -u OPENAI_API_KEY -u OPENAI_BASE_URL -u ANTHROPIC_API_KEY -u OLLAMA_HOST \
  "$bin/threadgraph" up --listen "127.0.0.1:$port" --data-dir "$work/data" 2>"$work/log" &
pid=$!
ready=
for _ in $(seq 600); do
  curl -fs "http://127.0.0.1:$port/health/ready" >/dev/null && { ready=yes; break; }
  sleep 0.1
done
[ -n "$ready" ] || { cat "$work/log"; exit 1; }
# Of texts of Turtle most that are made up at first are thrown away: that is no failure of an endpoint.
SCHEMATHESIS_HOOKS=scripts/api_contract_hooks.py .cache/schemathesis/bin/schemathesis run specs/api/openapi.yaml --url "http://127.0.0.1:$port" \
  --max-examples 15 --seed 4711 --suppress-health-check filter_too_much --no-color --phases examples,coverage,fuzzing \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance
curl -fs "http://127.0.0.1:$port/health/ready" >/dev/null || { echo "the gateway did not survive"; cat "$work/log"; exit 1; }
