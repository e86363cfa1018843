#!/usr/bin/env bash
# Builds the container image: static binaries for one processor (x86_64 or aarch64; `ARCH`, or else this machine's), then
# `deploy/container/Containerfile` with buildah or podman. `image.sh binaries` stops before the image, and `image.sh needs` once it
# has looked for what it needs. `PROFILE` names the profile of cargo, `ARCHIVE` a file that gets the image as an OCI archive. For the other processor `CC_aarch64_unknown_linux_musl` (or
# `CC_x86_64_unknown_linux_musl`) may name a compiler that links, too; else Zig compiles and Rust's own linker links.
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
authorities=${CA_CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}
# What cargo and the crates with C in them read of the environment.
compiler=CC_${target//-/_}
settings=CARGO_TARGET_$(echo "${target//-/_}" | tr a-z A-Z)
# Relocations are packed: 1.4 MB less. The C library of this target unpacks them, as it is linked into the program.
packed=-Wl,-z,pack-relative-relocs
linker=${settings}_LINKER

# All that is missing, before anything is built or fetched: that takes long.
missing=()
maker=
if [ "$what" != binaries ]; then
  maker=$(command -v buildah || command -v podman) || missing+=("buildah or podman")
  [ -r "$authorities" ] || missing+=("$authorities (Debian: ca-certificates; CA_CERTIFICATES names another file)")
fi
command -v rustup >/dev/null || missing+=("rustup, for the target $target")
command -v readelf >/dev/null || missing+=("readelf (Debian: binutils)")
if [ -z "${!compiler:-}" ] && [ "$arch" = "$(uname -m)" ]; then
  command -v musl-gcc >/dev/null || missing+=("musl-gcc (Debian: musl-tools)")
fi
if [ "${#missing[@]}" != 0 ]; then
  printf -v missing '%s; ' "${missing[@]}"
  echo "image: this machine lacks ${missing%; }" >&2
  exit 1
fi
[ "$what" != needs ] || exit 0

if [ -n "${!compiler:-}" ]; then
  # What this processor's compiler links by itself, another one's links with its own.
  [ "$arch" = "$(uname -m)" ] || export "$linker=${!linker:-${!compiler}}"
elif [ "$arch" != "$(uname -m)" ]; then
  scripts/setup.sh cross
  export "$compiler=$PWD/scripts/zig-cc.sh" "AR_${target//-/_}=$PWD/scripts/zig-ar.sh" ZIG_TARGET="$arch-linux-musl"
  # Rust's own, which has the C library of the target beside it.
  export "$linker=rust-lld"
  packed=--pack-dyn-relocs=relr
fi
flags="-C link-arg=$packed"
# With frame pointers the tables for unwinding are smaller (docs/performance.md). Other processors have them anyway.
[ "$arch" != x86_64 ] || flags+=" -C force-frame-pointers=yes"
export "${settings}_RUSTFLAGS=$flags"
# Nothing unwinds through C, which needs no tables for it.
export CFLAGS="${CFLAGS:-} -fno-asynchronous-unwind-tables"
rustup target list --installed | grep -x "$target" >/dev/null || rustup target add "$target"

cargo build --profile "${PROFILE:-dist}" --target "$target" -p tg-server -p tg-cli --locked
built=${CARGO_TARGET_DIR:-target}/$target/${PROFILE:-dist}
for program in threadgraph tg; do
  # By itself: where it cannot be read, the script ends here, and nothing counts as static.
  needed=$(readelf -d "$built/$program" | sed -n /NEEDED/p)
  if [ -n "$needed" ]; then
    echo "image: $program is not static" >&2
    exit 1
  fi
done
small_enough "$built/threadgraph" threadgraph
[ "$what" != binaries ] || { ls -l "$built/threadgraph" "$built/tg"; exit 0; }

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/data" "$stage/tmp"
cp "$built/threadgraph" "$built/tg" "$stage"
cp "$authorities" "$stage/ca-certificates.crt"
cp deploy/container/Containerfile "$stage"

tag=threadgraph:$version
case $maker in
  */buildah)
    buildah bud --platform "$platform" --tag "$tag" "$stage"
    buildah push "$tag" "oci-archive:$stage/image.tar:$tag" >/dev/null
    ;;
  *)
    podman build --platform "$platform" --tag "$tag" "$stage"
    podman save --format oci-archive --output "$stage/image.tar" "$tag"
    ;;
esac
[ -z "${ARCHIVE:-}" ] || cp "$stage/image.tar" "$ARCHIVE"
small_enough "$stage/image.tar" "$tag for $platform, as an archive,"
