#!/usr/bin/env bash
# Prints how many lines outside tests each idea takes that once was written several times: before (at a commit of then)
# and now, as a Markdown table. docs/house.md holds the last output and what it says.
# $1: the commit before (default 210c5d2), $2: the one to compare (default HEAD).
set -euo pipefail
cd "$(dirname "$0")/.."
then=${1:-210c5d2} now=${2:-HEAD}

# Rust files below paths of a commit, tests left out.
files() {
  local commit=$1; shift
  # shellcheck disable=SC2086
  git ls-tree -r --name-only "$commit" -- $* | grep '\.rs$' |
    grep -vE '(^|/)(tests|testing|examples|benches|conformance|testkit)(/|\.rs$)|_tests?\.rs$|/fuzz\.rs$' || true
}

# Fails for paths of now that are not there any more: a figure does not fall because a file was moved.
there() {
  local path
  for path in $1; do
    git cat-file -e "$now:$path" 2>/dev/null || { echo "$path is not in $now" >&2; return 1; }
  done
}

# Text of those, without what follows a test module.
text() {
  local commit=$1 file; shift
  files "$commit" "$@" | while read -r file; do
    git show "$commit:$file" | awk '
      /^#\[cfg\(test\)\]/ { held = $0; next }
      held != "" { if ($0 ~ /^(pub(\((crate|super)\))? )?mod [a-z_]+ \{/) exit; if ($0 !~ /^(pub(\((crate|super)\))? )?mod /) { print held; print } held = ""; next }
      { print }'
  done
}

# A number of places.
places() { if [ "$1" = 1 ]; then echo '1 place'; else echo "$1 places"; fi; }

row() { printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4"; }

# Number, idea, paths then, paths now.
lines() { there "$4"; row "$1" "$2" "$(text "$then" "$3" | wc -l)" "$(text "$now" "$4" | wc -l)"; }

# Number, idea, a pattern of what was written again and again, then and now, in all crates and services.
times() {
  local at="crates services cli server"
  row "$1" "$2" "$(places "$(text "$then" "$at" | grep -cE -- "$3" || true)")" "$(places "$(text "$now" "$at" | grep -cE -- "$3" || true)")"
}

# The same in tests: whoever implements or writes it there.
in_tests() {
  local count='git grep -hE -- "$pattern" "$commit" -- "services/*test*" "crates/*test*" "services/*examples*" ":!crates/testkit" | wc -l || true'
  local pattern=$3 commit before after
  commit=$then before=$(eval "$count") commit=$now
  after=$(eval "$count")
  row "$1" "$2" "$(places "$before")" "$(places "$after")"
}

s=services
printf '| # | idea | then | now |\n|---|---|--:|--:|\n'
lines 1 'life cycle of what is stored for a collection and a workspace' \
  "$s/graph/src/key.rs $s/graph/src/service/run.rs $s/graph/src/service/forget.rs $s/graph/src/service/tidy.rs $s/graph/src/ended.rs $s/vectors/src/key.rs $s/vectors/src/service/forget.rs $s/vectors/src/service/run.rs $s/vectors/src/service/tidy.rs $s/rows/src/key.rs $s/rows/src/service/forget.rs $s/knowledge/src/key.rs $s/knowledge/src/service/tidy.rs $s/extract/src/service/tidy.rs $s/librarian/src/keeper.rs" \
  "crates/collections/src $s/graph/src/store/embedded/ended.rs $s/graph/src/store/embedded/lifecycle.rs $s/vectors/src/store/keywords/lifecycle.rs $s/vectors/src/store/points/lifecycle.rs $s/rows/src/store/sqlite/lifecycle.rs $s/knowledge/src/engine/key.rs $s/knowledge/src/store/sqlite/lifecycle.rs $s/extract/src/store/lifecycle.rs $s/librarian/src/reconciler.rs $s/librarian/src/reaped.rs $s/flow/src/reaped.rs $s/iam/src/generations.rs"
lines 2 'settings' \
  "server/src/settings.rs server/src/settings $s/embeddings/src/settings.rs $s/llm/src/settings.rs $s/rag/src/settings.rs" \
  "server/src/settings.rs server/src/settings crates/settings/src $s/embeddings/src/options.rs $s/llm/src/options.rs $s/rag/src/options.rs"
in_tests 3a 'test worlds: fakes of the config service' '(Serve|RequestHandler)<ConfigRequest, ConfigResponse> for'
in_tests 3b 'test worlds: `topic()` of a flow' '^ *(pub )?fn topic\('
lines 4 'asking the librarian' \
  "$s/ingest/src/library.rs $s/knowledge/src/library.rs $s/rag/src/ask/library.rs $s/rag/src/keep.rs $s/agent/src/run/keep.rs crates/mesh/src/library_texts.rs" \
  "crates/clients/src/library.rs crates/clients/src/traces.rs $s/knowledge/src/library.rs $s/rag/src/ask/library.rs $s/agent/src/run/titles.rs"
lines 5 'HTTP to a provider' \
  "$s/llm/src/providers/http.rs $s/llm/src/retry.rs $s/llm/src/secret.rs $s/embeddings/src/provider/http.rs $s/embeddings/src/retry.rs $s/embeddings/src/secret.rs $s/rag/src/reranker/endpoint.rs $s/tool/src/mcp/pool.rs" \
  "crates/provider-http/src $s/rag/src/endpoint.rs $s/tool/src/mcp/pool.rs"
lines 6 'the record of a flow' \
  "$s/flow/src/engine/record.rs $s/flow/src/engine/names.rs $s/librarian/src/engine/flow.rs $s/knowledge/src/flow.rs $s/gateway/src/flows.rs" \
  "schemas/src/flow_record.rs crates/clients/src/flow_records.rs $s/librarian/src/engine/flow.rs $s/knowledge/src/flow.rs $s/gateway/src/flows.rs"
lines 7 'asking the config service' \
  "$s/flow/src/config.rs $s/librarian/src/config.rs $s/iam/src/remote.rs $s/config/src/bootstrap.rs $s/config/src/announce.rs crates/mesh/src/config_watch.rs" \
  "crates/clients/src/config.rs crates/clients/src/caller.rs $s/flow/src/config.rs $s/librarian/src/config.rs $s/iam/src/remote.rs $s/config/src/bootstrap.rs $s/config/src/announce.rs crates/mesh/src/config_watch.rs"
c=cli/src/commands
lines 8 'rules of typed values' \
  "$s/rows/src/value.rs $s/extract/src/rows/value.rs $s/extract/src/ontology/datatype.rs $c/structured/rows.rs $c/structured/validate.rs $c/structured/transform.rs" \
  "schemas/src/table/value.rs $s/rows/src/engine/value.rs $s/extract/src/engine/rows/value.rs $s/extract/src/engine/ontology/datatype.rs $c/structured/rows.rs $c/structured/validate.rs $c/structured/transform.rs"
lines 9 'commits of several writers together' \
  "crates/storage/src/writer.rs $s/vectors/src/commits.rs $s/graph/src/commit.rs" \
  "crates/storage/src/group.rs crates/storage/src/writer.rs $s/graph/src/store/embedded/commit.rs"
lines 10 'values derived from the rows of a workspace' \
  "$s/extract/src/service/ready.rs $s/extract/src/service/models.rs $s/rows/src/service/schemas.rs $s/prompt/src/handler.rs $s/agent/src/run/tools.rs $s/gateway/src/auth/cache.rs" \
  "crates/mesh/src/derived.rs $s/extract/src/replies/models.rs $s/rows/src/handlers/schemas.rs crates/clients/src/rendering.rs $s/agent/src/run/tools.rs $s/gateway/src/auth/cache.rs"
times 11 'whether a failure is worth a retry: functions that say so' 'fn (later|is_final|is_transient|is_retryable|retryable|worth_(a_)?(retry|try)[a-z_]*|comes_again|may_pass)\(|-> Again \{'
times 12 'asking for embeddings: requests made' '= EmbeddingsRequest \{|\(EmbeddingsRequest \{|&EmbeddingsRequest \{'
times 13 'RDF names written as text' '"http://www\.w3\.org/'
times 14a 'small tools: hexadecimal' 'fn (to_)?hex[a-z_]*\(|\{:02x\}|\{byte:02x\}'
times 14b 'small tools: `now()`' 'fn now(_[a-z]+)?\('
times 14c 'small tools: `__workspaces__`' '"__workspaces__"'
times 14d 'small tools: the collection `default`' '"collection", "default"|collection: "default"|"" => "default"|DEFAULT_COLLECTION: &str'
times 14e 'small tools: doubling pauses' 'saturating_mul\((2|1 <<)|\* 2\)\.min\(|(pause|patience|delay|wait) \*=? 2|1 ?<< ?(attempt|tries|failed)|2_?u32\.pow\('
lines 15 'preambles of commands, dialects of models' \
  "$c/explain/fetch.rs $c/explain/list.rs $c/explain/show.rs $c/explain/extraction.rs $c/explain/verify.rs $c/graph/load_turtle.rs $c/graph/load_knowledge.rs $s/llm/src/providers/anthropic.rs $s/llm/src/providers/openai.rs" \
  "$c/explain/fetch.rs $c/explain/list.rs $c/explain/show.rs $c/explain/extraction.rs $c/explain/verify.rs $c/graph/load_turtle.rs $c/graph/load_knowledge.rs $s/llm/src/providers/anthropic.rs $s/llm/src/providers/openai.rs $s/llm/src/providers/chats.rs"
prompts="$s/agent/src/kinds/model.rs $s/extract/src/service/desk.rs $s/rag/src/ask/model.rs"
lines 16 'asking the prompt service' "$prompts" \
  "crates/clients/src/prompt.rs $s/agent/src/kinds/model.rs $s/extract/src/replies/mod.rs $s/rag/src/ask/model.rs"
lines clients 'clients of other services: part of seven services and of `crates/mesh`, then `crates/clients`' \
  "$prompts $s/ingest/src/library.rs $s/knowledge/src/library.rs $s/rag/src/ask/library.rs $s/rag/src/keep.rs $s/agent/src/run/keep.rs crates/mesh/src/library_texts.rs $s/flow/src/config.rs $s/librarian/src/config.rs $s/iam/src/remote.rs $s/librarian/src/engine/flow.rs $s/knowledge/src/flow.rs" \
  crates/clients/src
m=crates/mesh/src
bus="$m/bus.rs $m/carried.rs $m/embedded.rs $m/embedded $m/rabbitmq.rs $m/rabbitmq $m/task.rs"
rpc="$m/asker.rs $m/holder.rs $m/answer.rs $m/deadline.rs"
runs="$m/run.rs $m/tally.rs"
lines bus 'the bus: part of `crates/mesh`, then `crates/bus`' "$bus" crates/bus/src
lines rpc 'questions and answers: part of `crates/mesh`, then `crates/rpc`' "$rpc" crates/rpc/src
hosting=$(files "$then" $m | grep -vxFf <(files "$then" "$bus $rpc $runs") | tr '\n' ' ')
lines mesh 'hosting: the rest of `crates/mesh`' "$hosting" crates/mesh/src
lines runs 'jobs: part of `crates/mesh`, then `crates/runs`' "$runs" crates/runs/src
