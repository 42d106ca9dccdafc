#!/usr/bin/env bash
# Fuzzes targets, each for a given processor time, so that other work on the machine does not shorten the search.
#
#   scripts/fuzz.sh [TARGET...]      (default: every target of lab/fuzz/Cargo.toml)
#
# FUZZ_SECONDS is the processor time of each target in seconds (default 60). The first finding ends the run; libFuzzer
# prints the path of its input below lab/fuzz/artifacts. Needs cargo-fuzz and a nightly compiler (`scripts/setup.sh nightly`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../lab/fuzz"

readonly SECONDS_EACH=${FUZZ_SECONDS:-60}
# Wall-clock time after which the processor time is read again.
readonly ROUND_SECONDS=600
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_odr_violation=0}

say() { printf 'fuzz: %s\n' "$*"; }

# Octets of the longest input of a target. A script of the interceptor reaches a match only after some 6,000.
longest() {
    case "$1" in
        discovery_interceptor) echo 32768 ;;
        *) echo 4096 ;;
    esac
}

# Processor time of the commands that this shell has waited for, in seconds.
spent() { awk -v ticks="$(getconf CLK_TCK)" '{ print int(($16 + $17) / ticks) }' "/proc/$$/stat"; }

fuzz() {
    local target=$1 dictionary=rtps.dict executions=0 start left
    [ ! -f "$target.dict" ] || dictionary=$target.dict
    cargo +nightly fuzz build "$target"
    mkdir -p "scratch/$target" "artifacts/$target"
    say "$target: $SECONDS_EACH s of processor time"
    start=$(spent)
    while left=$((SECONDS_EACH - $(spent) + start)) && [ "$left" -gt 0 ]; do
        "target/$host/release/$target" "scratch/$target" "corpus/$target" -dict="$dictionary" \
            -max_len="$(longest "$target")" -max_total_time=$((left < ROUND_SECONDS ? left : ROUND_SECONDS)) \
            -print_final_stats=1 -artifact_prefix="artifacts/$target/" &>"scratch/$target.log" ||
            { tail -n 60 "scratch/$target.log"; say "$target: a finding"; exit 1; }
        executions=$((executions + $(sed -n 's/^stat::number_of_executed_units: *//p' "scratch/$target.log")))
    done
    say "$target: $executions executions in $(($(spent) - start)) s of processor time, no finding"
}

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
if [ $# -eq 0 ]; then
    mapfile -t targets < <(cargo +nightly fuzz list)
    set -- "${targets[@]}"
fi
for target in "$@"; do
    fuzz "$target"
done
