#!/usr/bin/env bash
# Prints which commits changed the instructions that one run of the agent takes: a table of commits with their counts. Builds
# each commit that it looks at in .cache/bisect, and counts by valgrind. It halves what lies between two commits as long as their
# counts differ by more than a share. Counts are kept in .cache/bisect/counts, so that a second call goes on where the first ended.
# $1: the commit to begin with (default 210c5d2), $2: the last one (default HEAD), $3: that share, in a hundred (default 2).
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:-210c5d2} to=${2:-HEAD} share=${3:-2}
root=$PWD
place=$root/.cache/bisect
counts=$place/counts
command -v valgrind >/dev/null || { echo "bisect: valgrind is required: run scripts/setup.sh test" >&2; exit 1; }
mkdir -p "$place"
touch "$counts"

# All commits are built alike, whatever profile they bring.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=3 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols

# What asks each of them is of this commit.
echo "bisect: building what counts" >&2
CARGO_TARGET_DIR=$place/driver cargo build --quiet --release --locked -p tg-integration-tests --example run_instructions
driver=$place/driver/release/examples/run_instructions

tree=$place/tree
[ -e "$tree/.git" ] || git worktree add --quiet --detach "$tree" "$to"

mapfile -t commits < <(git rev-list --first-parent --reverse "$from^..$to")
echo "bisect: ${#commits[@]} commits" >&2

# Of the commit at a place: its count, or "none" where it cannot be built or counted.
count_at() {
  local commit=${commits[$1]} count
  count=$(awk -v commit="$commit" '$1 == commit { print $2; exit }' "$counts")
  if [ -z "$count" ]; then
    echo "bisect: ${commit:0:8} ($1)" >&2
    git -C "$tree" checkout --quiet --force --detach "$commit"
    count=none
    if (cd "$tree" && CARGO_TARGET_DIR=$place/target cargo build --quiet --release --locked --bin threadgraph) >&2; then
      count=$("$driver" "$place/target/release/threadgraph") || count=none
    fi
    printf '%s %s\n' "$commit" "$count" >> "$counts"
  fi
  echo "$count"
}

differ() {
  awk -v one="$1" -v other="$2" -v share="$share" 'BEGIN { if (one == "none" || other == "none") exit 0
    gap = other - one; if (gap < 0) gap = -gap; exit !(gap * 100 > one * share) }'
}

# Looks between two places.
halve() {
  local first=$1 last=$2 middle
  [ $((last - first)) -gt 1 ] || return 0
  differ "$(count_at "$first")" "$(count_at "$last")" || return 0
  middle=$(((first + last) / 2))
  count_at "$middle" >/dev/null
  halve "$first" "$middle"
  halve "$middle" "$last"
}

halve 0 $((${#commits[@]} - 1))

printf '| commit | instructions a run | more than the one above | what |\n| --- | --: | --: | --- |\n'
before=
for commit in "${commits[@]}"; do
  count=$(awk -v commit="$commit" '$1 == commit { print $2; exit }' "$counts")
  [ -n "$count" ] || continue
  more=
  if [ "$count" != none ]; then
    [ -z "$before" ] || more=$(awk -v now="$count" -v before="$before" 'BEGIN { printf "%+.1f in a hundred", (now - before) * 100 / before }')
    before=$count
  fi
  printf '| %s | %s | %s | %s |\n' "${commit:0:8}" "$count" "$more" "$(git log -1 --format=%s "$commit" | cut -c1-100)"
done
