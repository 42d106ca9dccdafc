#!/usr/bin/env bash
# How much of the parsers and of the protocol engine the committed corpora of lab/fuzz/ reach: a table, one line a file.
#
#   scripts/fuzz-coverage.sh
#
# Replays the corpora by the tests that `cargo test` runs too, built with coverage by the nightly compiler, whose
# llvm-tools read the result. `scripts/setup.sh nightly` installs both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}/coverage
tools=$(dirname "$(find "$(rustc +nightly --print sysroot)" -name llvm-profdata | head -n1)")
[ -x "$tools/llvm-cov" ] || { echo "no llvm-tools: run scripts/setup.sh nightly" >&2; exit 1; }
mkdir -p "$target"
rm -f "$target"/*.profraw

export CARGO_TARGET_DIR=$target RUSTFLAGS=-Cinstrument-coverage LLVM_PROFILE_FILE=$target/%p-%m.profraw
binaries=()
# replay PACKAGE FILTER: runs the tests of the integration binary `it` whose name has FILTER.
replay() {
    cargo +nightly test --locked --quiet -p "$1" --test it "$2" >&2
    binaries+=(-object "$(cargo +nightly test --locked --quiet -p "$1" --test it --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*it-[^"]*\)".*/\1/p')")
}
replay takt-core replay::committed
replay takt-xtypes corpus::
replay takt-idl corpus::

"$tools/llvm-profdata" merge -sparse "$target"/*.profraw -o "$target/corpora.profdata"
"$tools/llvm-cov" report "${binaries[@]}" -instr-profile="$target/corpora.profdata" \
    --ignore-filename-regex='(/tests/|/tests\.rs|\.cargo/|rustc/|/fuzz/|takt-derive)' |
    awk '/\.rs|^TOTAL/ { gsub(/.*crates\//, "", $1); printf "%-52s %6s regions %8s  %6s lines %8s\n", $1, $2, $4, $8, $10 }'
