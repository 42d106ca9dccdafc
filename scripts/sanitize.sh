#!/usr/bin/env bash
# Runs the crates that have `unsafe` under AddressSanitizer, their threads under ThreadSanitizer, and what Miri can
# interpret under Miri.
#
#   scripts/sanitize.sh [TEXT]      (default: all parts; with TEXT those whose name contains it)
#
# Needs a nightly compiler with miri and rust-src: `scripts/setup.sh nightly` installs them. Each part is named by what
# it checks. The end lists for each part how many tests passed, and which did not run and why. Exit code 1 if a test
# failed, or if a part ran no test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted=${1:-}
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/sanitize
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(realpath "$CARGO_TARGET_DIR")
# Tests whose preconditions are missing append a line each (takt_testkit::not_run).
export TAKT_TEST_NOT_RUN=$CARGO_TARGET_DIR/not-run
readonly LOG=$CARGO_TARGET_DIR/log
results=()
failures=0

say() { printf 'sanitize: %s\n' "$*"; }

is_wanted() { [[ $1 == *"$wanted"* ]]; }

# Runs the tests of one part: its name, then the command.
part() {
    local name=$1 status=0 passed skipped
    shift
    is_wanted "$name" || return 0
    say "$name"
    : >"$TAKT_TEST_NOT_RUN"
    "$@" 2>&1 | tee "$LOG" || status=1
    skipped=$(sort -u "$TAKT_TEST_NOT_RUN" | wc -l)
    # A test that could not run counts as passed for libtest.
    passed=$(awk -v skipped="$skipped" '/^test result: / { sum += $4 } END { print sum - skipped }' "$LOG")
    if [ "$status" -ne 0 ] || [ "$passed" -le 0 ]; then
        failures=$((failures + 1))
        results+=("FAILED: $name ($passed passed)")
    else
        results+=("$passed passed, $skipped did not run: $name")
    fi
    while IFS=$'\t' read -r test reason; do results+=("    not run: $test: $reason"); done < <(sort -u "$TAKT_TEST_NOT_RUN")
}

# Tests of the packages and targets given, under AddressSanitizer.
address() { RUSTFLAGS=-Zsanitizer=address cargo +nightly test --locked --quiet --no-fail-fast --target "$host" "$@"; }

# The same under ThreadSanitizer, on a standard library built for it.
# A process that has forked makes threads in one test.
thread() { TSAN_OPTIONS=die_after_fork=0 RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --locked --quiet --no-fail-fast --target "$host" "$@"; }

# The same interpreted by Miri; MIRIFLAGS are the caller's.
miri() { cargo +nightly miri test --locked --quiet --no-fail-fast "$@"; }

# A model has stacks of its own, which a sanitizer does not follow. A process whose address space is limited cannot
# start: the sanitizer reserves 14 TiB of it.
part "AddressSanitizer: system calls and shared memory of takt-transport" \
    address -p takt-transport --lib --tests -- --skip ring::model --skip limit_of_address_space
part "AddressSanitizer: shared frames, rings and system calls of takt-xdp, as root over interfaces of the tests' own" \
    address -p takt-xdp --lib --tests
# The simulation of the executor is arithmetic of one thread, which takes minutes.
part "AddressSanitizer: lock, event count, thread cell, clock and waker of takt, and races between its threads" \
    address -p takt --lib --test it -- \
    --skip runtime::model --skip runtime::simulation runtime:: status:: races:: blocking_write::
# What is locked into memory would be the sanitizer's own terabytes too.
part "AddressSanitizer: system calls of takt-netlink, takt-exec, takt-host and takt-bench" \
    address -p takt-netlink -p takt-exec -p takt-host -p takt-bench --lib --tests -- --skip locked_memory --skip unprivileged
dpdk="AddressSanitizer: takt-dpdk and its C shim, over rings and shared memory"
if pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null; then
    CFLAGS="${CFLAGS:-} -fsanitize=address" part "$dpdk" \
        address -p takt-dpdk --features dpdk --lib --test it -- memory ports stack ring memif
elif is_wanted "$dpdk"; then
    results+=("not run: $dpdk: dpdk-dev is not installed")
fi

part "ThreadSanitizer: the rings of shared memory" thread -p takt-transport --lib -- shm::ring::tests
part "ThreadSanitizer: the rings of takt-xdp" thread -p takt-xdp --lib -- ring:: umem::
part "ThreadSanitizer: lock, event count, thread cell, clock and waker of takt" \
    thread -p takt --lib -- --skip runtime::model --skip runtime::simulation runtime:: status::

export MIRIFLAGS=-Zmiri-disable-isolation
part "Miri: the parsers of takt-wire" miri -p takt-wire --lib -- cursor sequence parameter guid locator time
part "Miri: the cells of takt" miri -p takt --lib -- runtime::thread_cell runtime::tasks
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-many-seeds=0..16"
part "Miri: two threads at the rings of shared memory, in 16 orders" \
    miri -p takt-transport --lib -- shm::ring::tests::two_threads
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-many-seeds=0..4"
part "Miri: rings and frames of takt-xdp over memory of the test's own, in 4 orders" \
    miri -p takt-xdp --lib -- ring:: umem::

say "results"
printf '  %s\n' "${results[@]}"
[ ${#results[@]} -gt 0 ] && [ "$failures" -eq 0 ]
