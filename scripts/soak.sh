#!/usr/bin/env bash
# What needs hours, luck or a quiet machine: first the tests that `make test` leaves out (tests/soak.toml), one line per promise; then
# kills, outages and outside bytes with other seeds, again and again; and a document too large for minutes. Prints its seeds and times.
# $1: hours (default 4). `make soak` builds what this runs.
set -euo pipefail
cd "$(dirname "$0")/.."
hours=${1:-4}
end=$((SECONDS + hours * 3600))
failed=0 round=0
say() { printf '\n== %s, after %s s\n' "$*" "$SECONDS"; }
say "Commit $(git rev-parse --short HEAD): static programs, of which a test makes the image"
scripts/image.sh binaries || failed=1
say "Tests that have the machine to themselves"
scripts/suites.py soak || failed=1
say "The conformance suite of the bus over RabbitMQ 4"
scripts/rabbitmq-4.sh || failed=1
# Tests that kill at random moments, meet outages, or compare contents after both.
chaos=(
  a_killed_process_is_survived:: a_restore_is_killed_anywhere:: a_torn_blob_is_mended:: ingestion_is_exact:: outage_is_survived::
  patterns_survive_a_killed_agent:: second_owner_stands_by:: stored_means_stored:: uploads_go_on:: upgrades_lose_nothing::
  a_collection_changes_its_model:: detached_runs_count:: flow_stop_adds_up:: names_never_meet:: sparql_agrees_with_oracle::
)

# Optimised, beside the programs that it measures. What a night does not take a smaller number does: SOAK_MIB.
say "A document of ${SOAK_MIB:-1024} MiB through the shipped flow, for at most half of the time"
cargo build --release -p tg-server -p tg-cli --locked
cargo build --release -p tg-integration-tests --example memory_bench --locked
timeout $((hours * 1800)) "${CARGO_TARGET_DIR:-target}/release/examples/memory_bench" 64 100 "${SOAK_MIB:-1024}" || failed=1
while [ "$SECONDS" -lt "$end" ]; do
  round=$((round + 1))
  seed=$((RANDOM * 32768 + RANDOM))
  say "Round $round: each parser of outside bytes for a minute, seed $seed"
  TG_FUZZ_SEED=$seed TG_FUZZ_MS=60000 cargo test --workspace --locked --no-fail-fast fuzz || failed=1
  say "Round $round: kills and outages"
  cargo test --workspace --locked --test it -- "${chaos[@]}" || failed=1
  say "Round $round: the API contract, 300 examples an operation"
  API_CONTRACT_EXAMPLES=300 API_CONTRACT_KEY_EXAMPLES=30 API_CONTRACT_KEY_PHASES=examples,coverage,fuzzing API_CONTRACT_SEED=$RANDOM scripts/api-contract.sh || failed=1
done
say "Done: $round rounds"
exit $failed
