# Two commands matter: `make demo` and `make test`. Each does all its own set-up.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
export PATH := $(HOME)/.cargo/bin:$(PATH)
# What is built once and thrown away is not built in steps.
ifdef CI
export CARGO_INCREMENTAL := 0
endif

.PHONY: help demo demo-rabbitmq console release image test soak check bench setup-build setup-console setup-test setup-soak

help:
	@echo "make demo           build, start on embedded defaults, ask the agent of a dataset and documents, show the traces"
	@echo "make demo-rabbitmq  the same with a process per service over a private RabbitMQ node"
	@echo "make release        the build that ships, with the page: target/dist/threadgraph and target/dist/tg, packed with checksums"
	@echo "make image          a container image of static binaries (needs musl-tools and buildah or podman)"
	@echo "make console        build the page at /, which the next build puts into the binary"
	@echo "make test           all set-up and the gate: every suite over a real broker, the official clients and a browser"
	@echo "make soak           hours: tests of tests/soak.toml, kills, outages and outside bytes, a gigabyte through the shipped flow"
	@echo "make check          fast, without a broker: formatting, clippy, documentation, architecture, unit tests"
	@echo "make bench          build that ships, figures against their targets"

setup-build:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh test

setup-soak:
	@scripts/setup.sh soak

setup-console:
	@scripts/setup.sh console

# Types first: the bundler does not look at them.
console: setup-console
	@.cache/node/bin/node console/node_modules/typescript/bin/tsc --project console
	@.cache/node/bin/node --test console/test/order.test.mjs >/dev/null
	.cache/node/bin/node console/build.mjs

# With frame pointers the tables for unwinding are smaller (docs/performance.md). Other processors than x86-64 have them anyway.
# Nothing unwinds through C.
SHIP = CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C force-frame-pointers=yes" CFLAGS="$${CFLAGS:-} -fno-asynchronous-unwind-tables"

release: console
	@$(SHIP) cargo build --profile dist -p tg-server -p tg-cli --locked
	scripts/release.sh

# What is missing shows before the page is built.
image:
	@scripts/image.sh needs
	$(MAKE) --no-print-directory console
	scripts/image.sh

demo: setup-build console
	@scripts/demo.sh embedded

demo-rabbitmq: setup-test console
	@scripts/demo.sh rabbitmq

check: setup-build
	@cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	cargo test -p tg-architecture-tests -p tg-fuzz --locked
	# What runs over RabbitMQ is in modules of that name, and in `make test`.
	cargo test --workspace --lib --bins --locked -- --skip rabbitmq:: --skip over_a_broker
	cargo test -p tg-mesh --doc --locked

# The instructions of a run are counted: a build in steps has others, as the parts of a crate do not take in functions of each other.
test: export CARGO_INCREMENTAL := 0
test: setup-test console
	@took=() began=0 now=
	stage() {
		[ -z "$$now" ] || took+=("$$((SECONDS - began)) s  $$now")
		now=$$1 began=$$SECONDS
		printf '\n== %s, after %s s\n' "$$1" "$$SECONDS"
	}
	stage "Formatting; lints and build in one pass"
	cargo fmt --all --check
	export RUSTC_WORKSPACE_WRAPPER=$$PWD/scripts/rustc-with-lints.sh
	# Cargo remembers what clippy read of the environment, and compiles all again where it is not the same.
	export CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
	# Of the examples, those that tests start. The others measure: `make check`, `make bench` and `make soak` compile them.
	cargo build --workspace --lib --bins --tests --example greeter --example counted_server --locked
	# Fuzzing reads a fixed number of inputs from a fixed seed: what reads frames of the gateway, bodies and messages of queues
	# a million together, which are counted.
	fuzzed=$$PWD/.cache/fuzzed
	: > "$$fuzzed"
	stage "The suites and the API contract"
	TG_FUZZ_INPUTS=1000000 TG_FUZZ_COUNTS="$$fuzzed" scripts/suites.py gate
	awk '{ inputs += $$1 } END { print inputs + 0, "fuzzed frames, bodies and messages of queues in", NR, "targets"; exit inputs < 1000000 }' "$$fuzzed" || { echo "fewer than a million" >&2; exit 1; }
	stage "Done"
	printf '%s\n' "$${took[@]}" "in $$((SECONDS / 60)) minutes"
	# Which commit passed: only where the tree is that commit.
	[ -n "$$(git status --porcelain 2>/dev/null)" ] || git rev-parse HEAD > .cache/last-green 2>/dev/null || true
	tail -n 1 .cache/summary

soak: setup-soak console
	@cargo build --workspace --all-targets --locked
	scripts/soak.sh "$${SOAK_HOURS:-4}"

bench: setup-test console
	@$(SHIP) cargo build --profile dist --workspace --bins --examples --locked
	scripts/bench.sh
