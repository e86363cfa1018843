#!/usr/bin/env bash
# Compiles a crate of ours as cargo asks (RUSTC_WORKSPACE_WRAPPER), and holds programs and tests against clippy in the same pass;
# warnings of either end the build. As two commands each crate would be read twice. Documentation is held by `make check`.
set -euo pipefail

# `-D warnings` in the form that clippy's driver reads: set by whoever calls cargo, which has to see the same.
: "${CLIPPY_ARGS:?is not set; see the target test of the Makefile}"

# Tests of their own and examples are not optimised: cargo has one level for all that a crate builds, and what takes time in them
# are the libraries and programs that they call. Tests within a library call what is compiled with them. They keep the level, but for
# the libraries named below: their tests take a few seconds in all, and more than a minute more to compile when optimised.
driven=() reads= tests= writes= library= before=
for word in "$@"; do
  case $before:$word in
    --out-dir:*) writes=$word ;;
    --crate-type:lib) library=yes ;;
    *:--test) tests=yes ;;
    *:*.rs) reads=$word ;;
  esac
  before=$word
done
aside=
case $tests:$reads:$writes in
  yes:*/tests/*:* | *:*/examples) aside=yes ;;
  yes:crates/bus/* | yes:crates/clients/* | yes:crates/collections/* | yes:crates/mesh/* | yes:crates/rpc/*) aside=yes ;;
  yes:crates/jwt/* | yes:crates/runs/* | yes:crates/settings/* | yes:crates/storage/* | yes:crates/telemetry/*) aside=yes ;;
  yes:crates/templates/* | yes:crates/tls/* | yes:schemas/* | yes:services/config/* | yes:services/knowledge/*) aside=yes ;;
esac
for word in "$@"; do
  case $aside:$word in
    yes:opt-level=[1-3]) driven+=("opt-level=0") ;;
    *) driven+=("$word") ;;
  esac
done
# Clippy's driver optimises no MIR, whatever the level is: more for LLVM to compile, and slower programs. So rustc compiles each library,
# and clippy reads the same code where the library is compiled with its tests.
if [ -n "$library" ]; then
  exec "${driven[@]}" -D warnings
fi
exec clippy-driver "${driven[@]}"
