#!/usr/bin/env bash
# Prints which commits changed the instructions that one run of the agent takes. Builds each commit that it looks at in .cache/bisect,
# and counts by valgrind. Counts the first and the last commit; then, as long as it may look at one more, it halves the span of
# commits whose two ends differ most. So a few commits already say which spans bear which share of all that changed. Counts are kept
# in .cache/bisect/counts: a second call goes on where the first ended.
# $1: the commit to begin with (default 210c5d2), $2: the last one (default HEAD), $3: how many commits it looks at, those of earlier
# calls included (default 8).
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:-210c5d2} to=${2:-HEAD} looks=${3:-8}
root=$PWD
place=$root/.cache/bisect
counts=$place/counts
command -v valgrind >/dev/null || { echo "bisect: valgrind is required: run scripts/setup.sh test" >&2; exit 1; }
[ "$looks" -ge 2 ] 2>/dev/null || { echo "bisect: it looks at two commits at least, not $looks" >&2; exit 1; }
mkdir -p "$place"
touch "$counts"

# All commits are built alike, whatever profile they bring. The lints of `make test` would refuse warnings of earlier commits.
unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS RUSTFLAGS LIBSQLITE3_FLAGS
export CARGO_PROFILE_RELEASE_OPT_LEVEL=3 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols

# What asks each of them is of this commit.
echo "bisect: building what counts" >&2
CARGO_TARGET_DIR=$place/driver cargo build --quiet --release --locked -p tg-integration-tests --example run_instructions
driver=$place/driver/release/examples/run_instructions

tree=$place/tree
# A tree that was deleted by hand is still known to git, which then refuses to make it again.
git worktree prune
[ -e "$tree/.git" ] || git worktree add --quiet --detach "$tree" "$to"

commits=$place/commits
git rev-list --first-parent --reverse "$from..$to" | cat <(git rev-parse "$from^{commit}") - > "$commits"
last=$(wc -l < "$commits")
[ "$last" -ge 2 ] || { echo "bisect: there is no commit from $from to $to" >&2; exit 1; }
echo "bisect: $last commits, looks at $looks" >&2

# Builds the commit that is checked out. Cargo also reads the configuration of this tree, below which that one lies: what it adds to
# SQLite is not that of a commit which has none.
build() (
  cd "$tree" || exit 1
  grep -qs LIBSQLITE3_FLAGS .cargo/config.toml || export LIBSQLITE3_FLAGS=
  CARGO_TARGET_DIR=$place/target cargo build --quiet --release --locked -p tg-server --bin threadgraph
)

# Counts the commit of a line. One that cannot be built or counted counts as none.
count_at() {
  local commit count=none
  commit=$(sed -n "$1p" "$commits")
  ! grep -q "^$commit " "$counts" || return 0
  echo "bisect: ${commit:0:8} ($1 of $last)" >&2
  git -C "$tree" checkout --quiet --force --detach "$commit"
  if build >&2; then
    count=$("$driver" "$place/target/release/threadgraph") || count=none
  fi
  printf '%s %s\n' "$commit" "$count" >> "$counts"
}

# How many commits of the list were looked at.
looked() {
  awk 'NR == FNR { known[$1]; next } $1 in known { n++ } END { print n + 0 }' "$counts" "$commits"
}

# The line to look at next: of the span whose ends differ most, the commit nearest to its middle that was not looked at. Nothing,
# where no span has one.
next_line() {
  awk 'NR == FNR { known[$1] = $2; next }
    { line[++n] = $1 }
    END {
      begin = 0
      for (at = 1; at <= n; at++) {
        if (!(line[at] in known) || known[line[at]] == "none") continue
        if (begin) {
          gap = known[line[at]] - known[line[begin]]; if (gap < 0) gap = -gap
          near = 0
          for (i = begin + 1; i < at; i++) if (!(line[i] in known)) {
            off = 2 * i - begin - at; if (off < 0) off = -off
            if (!near || off < least) { near = i; least = off }
          }
          if (near && (!found || gap > most)) { found = near; most = gap }
        }
        begin = at
      }
      if (found) print found
    }' "$counts" "$commits"
}

count_at 1
count_at "$last"
for line in 1 "$last"; do
  if grep -q "^$(sed -n "${line}p" "$commits") none$" "$counts"; then
    echo "bisect: commit $(sed -n "${line}p" "$commits" | cut -c1-8) cannot be counted: begin or end with another" >&2
    exit 1
  fi
done
while [ "$(looked)" -lt "$looks" ]; do
  line=$(next_line)
  [ -n "$line" ] || break
  count_at "$line"
done

# A span is what came after the commit above it, up to its own; its share is of what changed from the first to the last.
printf '| commit | instructions a run | commits of the span | more, in a hundred | share of all that changed, in a hundred | what |\n| --- | --: | --: | --: | --: | --- |\n'
awk 'NR == FNR { known[$1] = $2; next }
  $1 in known && known[$1] != "none" { at[++n] = FNR; of[n] = $1; count[n] = known[$1] }
  END {
    all = count[n] - count[1]
    for (i = 1; i <= n; i++) {
      more = share = ""
      if (i > 1) {
        more = sprintf("%+.1f", (count[i] - count[i - 1]) * 100 / count[i - 1])
        if (all) share = sprintf("%.0f", (count[i] - count[i - 1]) * 100 / all)
      }
      printf "%s\t%s\t%s\t%s\t%s\n", of[i], count[i], (i > 1 ? at[i] - at[i - 1] : 1), more, share
    }
  }' "$counts" "$commits" |
  while IFS=$'\t' read -r commit count span more share; do
    what="$span commits up to: "
    [ "$span" != 1 ] || what=
    printf '| %s | %s | %s | %s | %s | %s%s |\n' "${commit:0:8}" "$count" "$span" "$more" "$share" "$what" "$(git log -1 --format=%s "$commit" | cut -c1-100)"
  done
