#!/usr/bin/env bash
# The C compiler for another processor, as the crates with C in them call it: that of Zig, which `scripts/setup.sh cross` brings. They
# name the processor as Rust does; Zig knows it as `ZIG_TARGET`.
set -euo pipefail
arguments=()
for argument in "$@"; do
  case $argument in
    --target=*) ;;
    *) arguments+=("$argument") ;;
  esac
done
# Checks of undefined behaviour, which it adds where nothing is optimised, need a library of its own.
exec "$(dirname "$0")/../.cache/cross/bin/python-zig" cc -target "$ZIG_TARGET" -fno-sanitize=undefined "${arguments[@]}"
