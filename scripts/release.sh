#!/usr/bin/env bash
# Packs what `make release` built: an archive of the binaries, completions, man pages, units and licence, what they are made of
# (CycloneDX), and checksums. The same binaries give the same archive: owner, modes, order and times are fixed. With `ARCH` it packs the
# static binaries that `ARCH=aarch64 scripts/image.sh binaries` (or x86_64) left; the pages are written by programs that run here.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${CARGO_TARGET_DIR:-target}
arch=$(uname -m) kind=linux built=${BUILT:-$folder/dist}
here=${HERE:-$built}
if [ -n "${ARCH:-}" ]; then
  arch=$ARCH kind=linux-static TARGET=${TARGET:-$ARCH-unknown-linux-musl}
  built=${BUILT:-$folder/$TARGET/dist} here=${HERE:-$folder/dist}
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=threadgraph-$version-$arch-$kind
out=${OUT:-target/release-files}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

mkdir -p "$out" "$stage/$name/systemd" "$stage/$name/completions" "$stage/$name/man/man1"
cp "$built/threadgraph" "$built/tg" LICENSE CHANGELOG.md "$stage/$name"
cp deploy/systemd/*.service "$stage/$name/systemd"
for shell in bash zsh fish; do
  "$here/tg" completions "$shell" > "$stage/$name/completions/tg.$shell"
done
"$here/tg" man-pages "$stage/$name/man/man1" > /dev/null
"$here/threadgraph" man-pages "$stage/$name/man/man1"
chmod 755 "$stage/$name/threadgraph" "$stage/$name/tg"
when=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$when" -cf - "$name" | gzip -n > "$out/$name.tar.gz"
scripts/sbom.py "${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}" > "$out/$name.cdx.json"
# Those of other processors stay in the list.
(cd "$out" && sha256sum "threadgraph-$version-"*.tar.gz "threadgraph-$version-"*.cdx.json > SHA256SUMS)
cat "$out/SHA256SUMS"
