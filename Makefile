# Two commands matter: `make demo` and `make test`. Each does all its own set-up.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
export PATH := $(HOME)/.cargo/bin:$(PATH)
# What is built once and thrown away is not built in steps.
ifdef CI
export CARGO_INCREMENTAL := 0
endif

.PHONY: help demo demo-rabbitmq console release test check bench setup-build setup-console setup-test

help:
	@echo "make demo           build, start on embedded defaults, ask the agent of a dataset and documents, show the traces"
	@echo "make demo-rabbitmq  the same with a process per service over a private RabbitMQ node"
	@echo "make release        the build that ships, with the page: target/dist/threadgraph and target/dist/tg"
	@echo "make console        build the page at /, which the next build puts into the binary"
	@echo "make test           all set-up and every check"
	@echo "make check          fast: formatting, clippy, architecture, unit tests"
	@echo "make bench          build that ships, figures against their targets"

setup-build:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh test

setup-console:
	@scripts/setup.sh console

# Types first: the bundler does not look at them.
console: setup-console
	@.cache/node/bin/node console/node_modules/typescript/bin/tsc --project console
	.cache/node/bin/node console/build.mjs

release: console
	@cargo build --profile dist -p tg-server -p tg-cli --locked

demo: setup-build console
	@scripts/demo.sh embedded

demo-rabbitmq: setup-test console
	@scripts/demo.sh rabbitmq

check: setup-build
	@cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	cargo test -p tg-architecture-tests -p tg-fuzz --locked
	cargo test --workspace --lib --bins --locked
	cargo test -p tg-mesh --doc --locked

test: setup-test console
	@stage() { printf '\n== %s, after %s s\n' "$$1" "$$SECONDS"; }
	stage "Formatting, lints, documentation"
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	stage "Build"
	cargo build --workspace --all-targets --locked
	# Every suite runs, so that one run tells all that fails. A test that hangs is named by the harness after a minute; this ends it, so that the run says which.
	# Some 75 targets of fuzzing, 0.8 s each: a minute together. More targets, less time for each.
	# Most tests wait for processes and brokers: twice as many as there are processors keep these busy. Those that are held
	# to seconds or less (`alone::`) come after them, one at a time.
	# What a failed test said is repeated at the end: between thousands of lines nobody finds it.
	failed= said=.cache/said
	: > "$$said"
	export RUST_TEST_THREADS=$$(( 2 * $$(nproc) ))
	stage "Suites"
	TG_FUZZ_MS=800 timeout 50m cargo test --workspace --locked --no-fail-fast -- --skip alone:: | tee -a "$$said" || failed=yes
	stage "Tests that have the machine to themselves"
	timeout 15m cargo test --workspace --locked --test it -- alone:: --test-threads 1 | tee -a "$$said" || failed=yes
	if [ -n "$$failed" ]; then
		stage "What failed"
		awk '/^---- .* stdout ----$$/ { shown = 1; lines = 0 } /^[Ss]tack backtrace:|^failures:/ { shown = 0 } shown && lines++ < 40' "$$said" | cut -c1-400
		exit 1
	fi
	stage "The API contract"
	scripts/api-contract.sh
	stage "Done"
	echo "in $$((SECONDS / 60)) minutes of the 40 that an idle machine is meant to take"

bench: setup-test console
	@cargo build --profile dist --workspace --bins --examples --locked
	scripts/bench.sh
