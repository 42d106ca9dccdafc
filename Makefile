# The commands of the project; `make` alone lists them. Each installs what it needs first.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long lint bench fuzz fuzz-coverage sanitize mutants deny omg-suite docs deb package
FUZZ_SECONDS ?= 60
SWARM_MINUTES ?= 60
MUTANTS ?=
# Not run for each mutant.
SLOW_TESTS := --skip no_deadline_or_lease_is_missed --skip infinite_lease_ends --skip dead_reader_does_not_block \
	--skip catalogue_datagrams_are_counted

# DPDK's library, where it is installed: asked when it is used, since setup may have installed it a moment ago. Without it its ports are
# neither tested nor checked.
HAS_DPDK = $(shell pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null && echo yes)
DPDK_FEATURE = $(if $(HAS_DPDK),takt-dpdk/dpdk takt-cli/dpdk)
DPDK_TOLD = $(if $(HAS_DPDK),with DPDK,without DPDK: dpdk-dev is not installed)

# Where rustup puts cargo, for a shell that was opened before it was installed.
export PATH := $(PATH):$(HOME)/.cargo/bin

say = @printf '\n==> %s\n' "$(1)"

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: ## install what this machine lacks (see scripts/setup.sh)
	$(call say,setup: compiler and peers)
	@scripts/setup.sh all

demo: ## two minutes: an overloaded network, without and with the controller; needs root for it
	@scripts/setup.sh demo
	$(call say,building Takt and the demo)
	@cargo build --locked --release -p takt-cli -p takt-interop --bin takt --bin takt-demo --bin takt-peer
	$(call say,demo)
	@target/release/takt-demo target/takt-demo.html

test: setup ## everything that must pass: format, clippy, house rules, all tests, peers included; says what did not run
	@$(MAKE) --no-print-directory lint
	$(call say,release build of the data path: a test counts its instructions)
	@cargo build --locked --release -p takt-instructions
	$(call say,tests of all crates ($(DPDK_TOLD)))
	@cargo xtask test --workspace $(if $(HAS_DPDK),--features '$(DPDK_FEATURE)')

test-long: setup ## the tests at full length (more seeds, more samples, more datagrams)
	$(call say,tests of all crates at full length ($(DPDK_TOLD)))
	@TAKT_TEST_LONG=1 cargo xtask test --workspace --features 'takt/long-tests $(DPDK_FEATURE)' --release
	$(call say,simulated worlds for $(SWARM_MINUTES) minutes)
	@cargo xtask sim --swarm --minutes $(SWARM_MINUTES)
	$(call say,deliberate bugs)
	@cargo xtask sim --teeth
	@$(MAKE) --no-print-directory sanitize

lint: ## format, clippy, house rules
	$(call say,format)
	@cargo fmt --all --check
	$(call say,house rules)
	@cargo xtask tidy
	$(call say,clippy)
	@cargo clippy --locked --workspace $(if $(HAS_DPDK),,--exclude takt-dpdk) --all-targets --all-features -- -D warnings

bench: ## latency beside plain UDP (and the agents in $TAKT_AGENTS), and what the core's steps cost
	@scripts/setup.sh build
	$(call say,building)
	@cargo build --locked --release -p takt-cli
	$(call say,round trips; sleeping and spinning, 64 bytes)
	@cargo run --quiet --release -p takt-cli -- perf compare
	$(call say,nanoseconds per sample of each step in the core)
	@cargo bench --quiet -p takt-core --bench data_path

omg-suite: ## the OMG's interoperability suite, Takt against itself (needs root, python3 and a network; docs/reference/interop.md)
	@scripts/setup.sh build
	@scripts/omg-suite.sh

fuzz: ## every fuzz target for FUZZ_SECONDS (60) of processor time (needs cargo-fuzz and a nightly compiler)
	@scripts/setup.sh nightly
	$(call say,fuzzing: $(FUZZ_SECONDS) s of processor time for each target)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh

fuzz-coverage: ## what of parsers and core the committed corpora reach, by file (needs a nightly compiler)
	@scripts/setup.sh nightly
	$(call say,coverage of the corpora)
	@scripts/fuzz-coverage.sh

sanitize: ## the crates with unsafe under AddressSanitizer, ThreadSanitizer and Miri (needs a nightly compiler)
	@scripts/setup.sh nightly
	$(call say,sanitizers)
	@scripts/sanitize.sh

mutants: ## what no test of the QoS policies notices; MUTANTS="--shard 0/20 --sharding round-robin" for a sample (docs/reference/qos-tests.md)
	$(call say,mutants of takt-wire)
	@mkdir -p target/mutation/{wire,core,takt,durability}
	@cargo mutants -p takt-wire -o target/mutation/wire $(MUTANTS) -- --locked --lib --test it || [[ $$? == [23] ]]
	$(call say,mutants of takt-core)
	@cargo mutants -p takt-core -o target/mutation/core $(MUTANTS) -- --locked --lib --test it -- $(SLOW_TESTS) || [[ $$? == [23] ]]
	$(call say,mutants of takt)
	@cargo mutants -p takt -o target/mutation/takt $(MUTANTS) -- --locked --lib --test it || [[ $$? == [23] ]]
	$(call say,mutants of takt-durability)
	@cargo mutants -p takt-durability -o target/mutation/durability $(MUTANTS) -- --locked --lib --test it || [[ $$? == [23] ]]

deny: ## licenses, sources and advisories of the dependencies (needs cargo-deny and a network)
	@cargo deny check

docs: ## the documentation as a site with search (installs mdbook): target/docs/index.html
	@scripts/docs.sh

deb: ## a Debian package of the command, with completions, manual pages and systemd units: target/debian
	@scripts/deb.sh

package: ## the published crates as the registry would get them, each built from its package: target/package
	@cargo package --locked --workspace $(addprefix --exclude ,takt-sim takt-testkit takt-instructions takt-interop takt-examples xtask)
