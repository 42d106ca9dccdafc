#!/usr/bin/env bash
# Runs the crates that have `unsafe` under AddressSanitizer, their threads under ThreadSanitizer, and what Miri can
# interpret under Miri.
#
#   scripts/sanitize.sh
#
# Needs a nightly compiler with miri and rust-src: `scripts/setup.sh nightly` installs them. Each part is named by what
# it checks; the first that fails ends the run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/sanitize
say() { printf 'sanitize: %s\n' "$*"; }

# A model has stacks of its own, which a sanitizer does not follow.
say "AddressSanitizer: system calls and shared memory of takt-transport"
RUSTFLAGS=-Zsanitizer=address cargo +nightly test --locked --quiet --target "$host" -p takt-transport --lib --tests -- \
    --skip ring::model

say "AddressSanitizer: shared frames, rings and system calls of takt-xdp, as root over interfaces of the tests' own"
RUSTFLAGS=-Zsanitizer=address cargo +nightly test --locked --quiet --target "$host" -p takt-xdp --lib --tests

say "AddressSanitizer: lock, event count, thread cell, clock and waker of takt, and races between its threads"
RUSTFLAGS=-Zsanitizer=address cargo +nightly test --locked --quiet --target "$host" -p takt --lib --test it -- \
    --skip runtime::model runtime:: status:: races:: blocking_write::

# What is locked into memory would be the sanitizer's own terabytes too.
say "AddressSanitizer: system calls of takt-netlink, takt-exec, takt-host and takt-bench"
RUSTFLAGS=-Zsanitizer=address cargo +nightly test --locked --quiet --target "$host" \
    -p takt-netlink -p takt-exec -p takt-host -p takt-bench --lib --tests -- --skip locked_memory --skip as_nobody

if pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null; then
    say "AddressSanitizer: takt-dpdk and its C shim, over rings and shared memory"
    CFLAGS="${CFLAGS:-} -fsanitize=address" RUSTFLAGS=-Zsanitizer=address cargo +nightly test --locked --quiet \
        --target "$host" -p takt-dpdk --features dpdk --lib --test it -- memory ports stack ring memif
else
    say "not run: takt-dpdk, since dpdk-dev is not installed"
fi

say "ThreadSanitizer: the rings of shared memory"
RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --locked --quiet --target "$host" -p takt-transport --lib -- \
    shm::ring::tests

say "ThreadSanitizer: the rings of takt-xdp"
RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --locked --quiet --target "$host" -p takt-xdp --lib -- ring:: umem::

say "ThreadSanitizer: the same without its sockets, on a standard library built for it"
RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --locked --quiet --target "$host" -p takt --lib -- \
    --skip runtime::model runtime:: status::

say "Miri: takt-wire, the cells of takt, and the rings of shared memory with several orders of threads and memory"
export MIRIFLAGS=-Zmiri-disable-isolation
cargo +nightly miri test --locked --quiet -p takt-wire --lib -- cursor sequence parameter guid locator time
cargo +nightly miri test --locked --quiet -p takt --lib -- runtime::thread_cell runtime::tasks
MIRIFLAGS="$MIRIFLAGS -Zmiri-many-seeds=0..16" cargo +nightly miri test --locked --quiet -p takt-transport --lib -- \
    shm::ring::tests::two_threads
say "Miri: rings and frames of takt-xdp, over memory of the test's own"
MIRIFLAGS="$MIRIFLAGS -Zmiri-many-seeds=0..4" cargo +nightly miri test --locked --quiet -p takt-xdp --lib -- ring:: umem::
