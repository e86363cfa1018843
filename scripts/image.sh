#!/usr/bin/env bash
# Builds the container image: static binaries for one processor (x86_64 or aarch64, this machine's unless said), then
# `deploy/container/Containerfile` with buildah or podman. `image.sh binaries` stops before the image.
set -euo pipefail
cd "$(dirname "$0")/.."

# Ends where a file is larger than it may be.
small_enough() {
  local size
  size=$(stat -c %s "$1")
  echo "image: $2 has $size bytes"
  [ "$size" -le "$most" ] || { echo "image: $2 has more than $most bytes" >&2; exit 1; }
}

what=${1:-image}
arch=${ARCH:-$(uname -m)}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
target=$arch-unknown-linux-musl
# Bytes of the program, and of the archive of the image: what is transferred, compressed. docs/deploy.md says so.
most=50000000

case "$arch" in
  x86_64) platform=linux/amd64 ;;
  aarch64) platform=linux/arm64 ;;
  *) echo "image: no image for $arch" >&2; exit 1 ;;
esac
compiler=CC_${target//-/_}
command -v musl-gcc >/dev/null || [ -n "${!compiler:-}" ] || {
  echo "image: musl-gcc is missing (Debian: musl-tools)" >&2; exit 1; }
# Another processor's programs are linked by its own C compiler.
if [ "$arch" != "$(uname -m)" ]; then
  [ -n "${!compiler:-}" ] || { echo "image: $compiler must name a C compiler for $arch" >&2; exit 1; }
  linker=CARGO_TARGET_$(echo "${target//-/_}" | tr a-z A-Z)_LINKER
  export "$linker=${!linker:-${!compiler}}"
fi
rustup target list --installed 2>/dev/null | grep -qx "$target" || rustup target add "$target"

cargo build --profile "${PROFILE:-dist}" --target "$target" -p tg-server -p tg-cli --locked
built=${CARGO_TARGET_DIR:-target}/$target/${PROFILE:-dist}
for program in threadgraph tg; do
  # Read to its end: a pipe that closes early would fail, and count as static.
  if [ -n "$(readelf -d "$built/$program" | sed -n /NEEDED/p)" ]; then
    echo "image: $program is not static" >&2
    exit 1
  fi
done
small_enough "$built/threadgraph" threadgraph
[ "$what" != binaries ] || { ls -l "$built/threadgraph" "$built/tg"; exit 0; }

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/data" "$stage/tmp"
chmod 700 "$stage/data"
cp "$built/threadgraph" "$built/tg" "$stage"
cp "${CA_CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}" "$stage/ca-certificates.crt"
cp deploy/container/Containerfile "$stage"

tag=threadgraph:$version
if command -v buildah >/dev/null; then
  buildah bud --platform "$platform" --tag "$tag" "$stage"
  buildah push "$tag" "oci-archive:$stage/image.tar:$tag" >/dev/null
elif command -v podman >/dev/null; then
  podman build --platform "$platform" --tag "$tag" "$stage"
  podman save --format oci-archive --output "$stage/image.tar" "$tag"
else
  echo "image: needs buildah or podman" >&2
  exit 1
fi
[ -z "${ARCHIVE:-}" ] || cp "$stage/image.tar" "$ARCHIVE"
small_enough "$stage/image.tar" "$tag for $platform, as an archive,"
