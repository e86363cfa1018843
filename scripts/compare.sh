#!/usr/bin/env bash
# Prints how fast a run of the agent is beside an earlier commit: ratios, each beside its target. Builds this tree and that commit
# (a worktree in .cache/compare) alike, and measures both in turns with the driver of this tree: embedded, in one process over
# RabbitMQ, and in a process per service over RabbitMQ. A missed target is printed, it is no failure.
# A turn that fails does not keep the others from running, and the script then fails.
# $1: the earlier commit (default 210c5d2), $2: rounds (default 3), $3: measurements of a turn (default 5). A round has six turns, each of
# half a minute at most by default. TG_BENCH_DRIVER names a driver that is already built (target/dist/examples/bench, after `make bench`).
set -euo pipefail
cd "$(dirname "$0")/.."
earlier=${1:-210c5d2} rounds=${2:-3} measurements=${3:-5}
commit=$(git rev-parse --verify --quiet "$earlier^{commit}") || { echo "compare: $earlier is not a commit" >&2; exit 1; }
for number in "$rounds" "$measurements"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || { echo "compare: $number is not a number of rounds or measurements" >&2; exit 2; }
done
place=$PWD/.cache/compare
results=$place/results
mkdir -p "$place"
free=$(df --output=avail -k "$place" | tail -n 1)
[ "$free" -ge $((8 << 20)) ] || { echo "compare: the two builds take up to 8 GB, and $((free >> 20)) GB are free" >&2; exit 1; }

# Both are built alike, whatever profile they bring. The lints of `make test` would refuse warnings of the earlier commit.
unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS RUSTFLAGS LIBSQLITE3_FLAGS
export CARGO_PROFILE_RELEASE_OPT_LEVEL=3 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols

# Lays a program ($2) where the driver of this tree looks for it, below $1. An earlier program refuses settings that it does not
# know, and the driver's library sets one of them: neither program has it.
lay() {
  mkdir -p "$place/$1/examples"
  cp -f "$2" "$place/$1/program"
  cp -f "$driver" "$place/$1/examples/bench"
  cat > "$place/$1/threadgraph" <<'WITHOUT'
#!/bin/sh
unset THREADGRAPH_TOOL__PRIVATE_ADDRESSES
exec "$(dirname "$0")/program" "$@"
WITHOUT
  chmod +x "$place/$1/threadgraph"
}

echo "compare: building this tree" >&2
CARGO_TARGET_DIR=$place/target cargo build --quiet --release --locked -p tg-server --bin threadgraph
driver=${TG_BENCH_DRIVER:-}
if [ -z "$driver" ]; then
  CARGO_TARGET_DIR=$place/target cargo build --quiet --release --locked -p tg-integration-tests --example bench
  driver=$place/target/release/examples/bench
fi
echo "compare: built after $SECONDS s" >&2
lay now "$place/target/release/threadgraph"

kept=$place/threadgraph-$commit
if [ ! -x "$kept" ]; then
  echo "compare: building ${commit:0:8}" >&2
  tree=$place/tree
  # A tree that was deleted by hand is still known to git, which then refuses to make it again.
  git worktree prune
  [ -e "$tree/.git" ] || git worktree add --quiet --detach "$tree" "$commit"
  git -C "$tree" checkout --quiet --force --detach "$commit"
  (
    cd "$tree"
    # Cargo also reads the configuration of this tree, below which that one lies. What it adds to SQLite is not that commit's.
    grep -qs LIBSQLITE3_FLAGS .cargo/config.toml || export LIBSQLITE3_FLAGS=
    CARGO_TARGET_DIR=$place/target-earlier cargo build --quiet --release --locked -p tg-server --bin threadgraph
  )
  cp "$place/target-earlier/release/threadgraph" "$kept.part"
  mv "$kept.part" "$kept"
  # A second call takes the copy, so the build would only fill the disk.
  rm -rf "$place/target-earlier"
  echo "compare: built after $SECONDS s" >&2
fi
lay earlier "$kept"

# The services that a program knows, as its help names them.
services() {
  "$place/$1/threadgraph" serve --help | tr -s '\n ' ' ' | grep -o 'possible values: [a-z0-9_, -]*\]' | sed -n '1s/possible values: \(.*\)\]/\1/p' | tr -d ','
}
for which in now earlier; do
  [ -n "$(services "$which")" ] || { echo "compare: $place/$which/threadgraph does not name its services" >&2; exit 1; }
done

# Each line: program, shape, round, figure, value.
: > "$results"
begun=$SECONDS failed=0
# A turn ends after so many seconds, together with all that it started.
longest=$((120 + 10 * measurements))
echo "this tree: $(git rev-parse --short=8 HEAD)$([ -z "$(git status --porcelain)" ] || echo ', changed'); beside it: ${commit:0:8}; $(nproc) cores, load before $(cut -d' ' -f1-3 /proc/loadavg)"
for round in $(seq "$rounds"); do
  for shape in embedded process services; do
    # Who comes first changes from round to round.
    order=(earlier now)
    [ $((round % 2)) = 1 ] || order=(now earlier)
    for which in "${order[@]}"; do
      echo "compare: round $round, $shape, $which" >&2
      known=$(services "$which")
      if TG_BENCH_SERVICES=$known timeout --kill-after=30 "$longest" "$place/$which/examples/bench" turn "$shape" "$measurements" </dev/null > "$place/turn"; then
        awk -F'\t' -v OFS='\t' -v which="$which" -v shape="$shape" -v round="$round" '{ print which, shape, round, $1, $2 }' "$place/turn" >> "$results"
      else
        echo "compare: round $round, $shape, $which: the turn failed" >&2
        failed=$((failed + 1))
      fi
    done
  done
done
took=$(((SECONDS - begun + 59) / 60))
echo "$rounds rounds of $measurements measurements a turn in $took minutes, $failed turns failed, load after $(cut -d' ' -f1-3 /proc/loadavg)"
[ "$took" -le 15 ] || echo "compare: the rounds took longer than a quarter of an hour: the machine may have changed meanwhile" >&2

# Shape, figure, and the ratio of now to earlier that it is to reach.
targets='embedded	agent run, p50, 1 at a time	<=	0.5
embedded	agent runs, 32 in flight	>=	2
embedded	processor time a run at 32	<=	0.5
process	agent run, p50, 1 at a time	<=	0.6
process	agent runs, 32 in flight	>=	1.8
services	agent run, p50, 1 at a time	<=	0.55
services	first text chunk, p50	<=	0.6
services	agent runs, 32 in flight	>=	2
services	processor time a run at 32	<=	0.6
services	the broker'"'"'s, a run at 32	<=	0.6'
printf '\n| shape | figure | earlier | now | ratio (least to greatest of a round) | target | |\n| --- | --- | --: | --: | --- | --- | --- |\n'
awk -F'\t' -v rounds="$rounds" -v measured="$results" '
  function median(which, of,   n, i, j, kept, sorted) {
    n = 0
    for (i = 1; i <= rounds; i++) if ((which, of, i) in value) sorted[++n] = value[which, of, i]
    for (i = 2; i <= n; i++) for (j = i; j > 1 && sorted[j - 1] > sorted[j]; j--) { kept = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = kept }
    return n ? sorted[int((n + 1) / 2)] : 0
  }
  # The first file is empty where every turn failed, so NR does not say which it is.
  FILENAME == measured { value[$1, $2 FS $4, $3] = $5; next }
  {
    of = $1 FS $2; earlier = median("earlier", of); now = median("now", of)
    if (earlier <= 0 || now <= 0) { printf "| %s | %s | | | not measured | %s %s | |\n", $1, $2, $3, $4; next }
    least = 0; greatest = 0
    for (i = 1; i <= rounds; i++) if (("earlier", of, i) in value && ("now", of, i) in value && value["earlier", of, i] > 0) {
      ratio = value["now", of, i] / value["earlier", of, i]
      if (!least || ratio < least) least = ratio
      if (ratio > greatest) greatest = ratio
    }
    ratio = now / earlier
    met = $3 == "<=" ? ratio <= $4 : ratio >= $4
    printf "| %s | %s | %.2f | %.2f | %.2f (%.2f to %.2f) | %s %s | %s |\n", $1, $2, earlier, now, ratio, least, greatest, $3, $4, met ? "met" : "MISSED"
  }' "$results" <(printf '%s\n' "$targets")
[ "$failed" = 0 ]
