#!/usr/bin/env bash
# Compiles a crate of ours as cargo asks (RUSTC_WORKSPACE_WRAPPER), holds programs and tests against clippy in the same pass, and
# makes the documentation; warnings of any end the build. As three commands each crate would be read three times, and those of
# others twice.
set -euo pipefail

# `-D warnings` in the form that clippy's driver reads: set by whoever calls cargo, which has to see the same.
: "${CLIPPY_ARGS:?is not set; see the target test of the Makefile}"

# Tests of their own and examples are not optimised: cargo has one level for all that a crate builds, and what takes time in them
# are the libraries and programs that they call. Tests within a library call what is compiled with them. They keep the level, but for
# the libraries named below: their tests take a second in all, and a minute more to compile when optimised.
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
  yes:services/config/* | yes:services/knowledge/*) aside=yes ;;
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
  "${driven[@]}" -D warnings
else
  clippy-driver "${driven[@]}"
fi

name= out= documented=
of_doc=()
shift
while [ $# -gt 0 ]; do
  case $1 in
    --crate-name) name=$2; of_doc+=("$1" "$2"); shift ;;
    --out-dir) out=$2; shift ;;
    --crate-type) [ "$2" = cdylib ] || documented=yes; of_doc+=("$1" "$2"); shift ;;
    # Tests are no documentation; what cargo asks about the compiler has no sources.
    --test | --print | --print=* | -vV) exit 0 ;;
    # What is written and how it is called is the compiler's business.
    --emit | --diagnostic-width) shift ;;
    --emit=* | --diagnostic-width=*) ;;
    -C) case $2 in extra-filename=* | metadata=* | incremental=* | embed-bitcode=* | linker-plugin-lto) ;; *) of_doc+=("$1" "$2") ;; esac; shift ;;
    -Cextra-filename=* | -Cmetadata=* | -Cincremental=*) ;;
    *) of_doc+=("$1") ;;
  esac
  shift
done
case $name:$out in
  build_script_*: | build_script_*:* | *:*/examples | :* | *:) exit 0 ;;
esac
[ -n "$documented" ] || exit 0
# Each crate's pages have a folder of their own: in a common one each run waits for the others and writes the index of all crates anew,
# which takes 5 s a crate in the end, and a tenth of that here.
exec rustdoc -D warnings "${of_doc[@]}" --output "${out%/*/deps}/documented/$name"
