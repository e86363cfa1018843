#!/usr/bin/env bash
# Holds specs/api/openapi.yaml against the running gateway: generated requests, valid and not, through every
# endpoint. Bounded by examples per operation. Of exports only those that end: what passes is exported without end
# (scripts/api_contract_hooks.py). First without access control; then with it, once as an administrator and once as
# nobody, who is let into nothing that the description does not open to everybody. The parts run at the same time, each with a server
# of its own: making up requests keeps one processor busy.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
work=$(mktemp -d)
pid=
end() { [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; } || true; pid=; }
parts=()
# Ends what the parts run, and them.
cleanup() {
  for part in "${parts[@]}"; do
    pkill -TERM -P "$part" || true
    kill "$part" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap cleanup EXIT

alive() { curl -fs "$url/health/ready" >/dev/null; }

# Starts a server of its own: start NAME ARGUMENTS…
start() {
  local port ready= data=$work/$1
  log=$work/$1.log
  shift
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  url=http://127.0.0.1:$port
  env -u OPENAI_API_KEY -u OPENAI_BASE_URL -u ANTHROPIC_API_KEY -u OLLAMA_HOST \
    "$bin/threadgraph" up --listen "127.0.0.1:$port" --data-dir "$data" "$@" 2>"$log" &
  pid=$!
  for _ in $(seq 600); do
    alive && { ready=yes; break; }
    sleep 0.1
  done
  [ -n "$ready" ] || { cat "$log"; exit 1; }
}

# Asks it: contract PHASES EXAMPLES CHECKS ARGUMENTS…
# Of texts of Turtle most that are made up at first are thrown away: that is no failure of an endpoint.
contract() {
  local phases=$1 examples=$2 checks=$3
  shift 3
  SCHEMATHESIS_HOOKS=scripts/api_contract_hooks.py .cache/schemathesis/bin/schemathesis --config-file scripts/api_contract.toml run specs/api/openapi.yaml --url "$url" \
    --max-examples "$examples" --seed "${API_CONTRACT_SEED:-4711}" --suppress-health-check filter_too_much --no-color --phases "$phases" \
    --checks "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance$checks" "$@"
  alive || { echo "the gateway did not survive"; cat "$log"; exit 1; }
}

# Each value of each field at its bounds.
covered() {
  trap end EXIT
  start covered
  contract examples,coverage "${API_CONTRACT_EXAMPLES:-15}" ""
}

fuzzed() {
  trap end EXIT
  start fuzzed
  contract fuzzing "${API_CONTRACT_EXAMPLES:-8}" ""
}

with_keys() {
  trap end EXIT
  # Each value of each field at its bounds takes minutes, and is read by the same code as above: `make soak` has it here, too.
  phases=${API_CONTRACT_KEY_PHASES:-examples,fuzzing}
  start iam --auth iam
  key=$(curl -fs -X POST "$url/api/v1/auth/bootstrap" | python3 -c 'import json, sys; print(json.load(sys.stdin)["bootstrap_admin_api_key"])')
  # Nothing is left out: ids of users and keys are made up, so what a request deletes or revokes is not the asker's.
  contract "$phases" "${API_CONTRACT_KEY_EXAMPLES:-4}" "" --header "Authorization: Bearer $key"
  # Otherwise what came after would all be refusals, and pass.
  curl -fs "$url/api/v1/iam" -H "Authorization: Bearer $key" -d '{"operation": "whoami"}' | grep -q '"username": *"admin"' \
    || { echo "the administrator's key did not survive"; exit 1; }
  contract "$phases" 2 ",nobody_is_let_in"
}

for part in fuzzed covered with_keys; do
  (set -e; "$part") >"$work/$part.out" 2>&1 &
  parts+=("$!")
done
failed=
for at in 0 1 2; do
  wait "${parts[$at]}" || failed=yes
done
parts=()
cat "$work"/{covered,fuzzed,with_keys}.out
[ -z "$failed" ]
