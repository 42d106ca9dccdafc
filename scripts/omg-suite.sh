#!/usr/bin/env bash
# Runs the OMG's DDS-RTPS interoperability suite and prints a table.
#
#   scripts/omg-suite.sh [-P PUBLISHER] [-S SUBSCRIBER] [-j JOBS] [-v] [CASE]...
#
# PUBLISHER and SUBSCRIBER are programs that take the place of the suite's shape_main; takt-shape-main by default. CASE is a
# name such as Test_Reliability_4 or a beginning of one; all by default. -v keeps what the programs printed.
#
# The suite is downloaded to target/omg-suite and never committed; OMG_SUITE names a checkout to use instead. Each case
# runs in a network namespace of its own (as root), JOBS at a time (4), so nothing leaves this machine. What each printed
# is in target/omg-suite/results/. Fails if a case does.
set -euo pipefail

cd "$(dirname "$0")/.."
readonly commit=270eac28
readonly address=https://github.com/omg-dds/dds-rtps
readonly target=${CARGO_TARGET_DIR:-target}
home=$PWD/target/omg-suite
publisher='' subscriber='' jobs=4 verbose=()

while getopts P:S:j:v option; do
    case $option in
        P) publisher=$(realpath "$OPTARG") ;;
        S) subscriber=$(realpath "$OPTARG") ;;
        j) jobs=$OPTARG ;;
        v) verbose=(-v) ;;
        *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
shift $((OPTIND - 1))

if ((EUID != 0)); then
    echo "omg-suite: network namespaces need root" >&2
    exit 1
fi

# The harness takes a product's name from its program's, up to _shape_main.
mkdir -p "$home"
if [[ -z $publisher || -z $subscriber ]]; then
    [[ -n ${OMG_NO_BUILD:-} ]] || cargo build --locked --release -p takt-interop --bin takt-shape-main
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    own=$home/takt-${version}_shape_main_linux
    cp -f "$target/release/takt-shape-main" "$own"
    publisher=${publisher:-$own} subscriber=${subscriber:-$own}
fi

suite=${OMG_SUITE:-$home/dds-rtps}
if [[ ! -f $suite/interoperability_report.py ]]; then
    git clone --quiet "$address" "$suite"
    git -C "$suite" checkout --quiet "$commit"
fi
python=$home/venv/bin/python
if [[ ! -x $python ]]; then
    python3 -m venv "$home/venv"
    "$home/venv/bin/pip" install --quiet --requirement "$suite/requirements.txt"
fi

name() { basename "$1" | sed 's/_shape_main.*//'; }
results=$home/results/$(name "$publisher")--$(name "$subscriber")
mkdir -p "$results"

all=$(cd "$suite" && "$python" -c 'import test_suite as t; print("\n".join(t.rtps_test_suite_1))')
cases=()
for wanted in "${@:-}"; do
    while read -r case; do
        [[ $case == "$wanted" || ($case == "$wanted"* && ! $wanted =~ [0-9]$) ]] && cases+=("$case")
    done <<<"$all"
done
((${#cases[@]})) || { echo "omg-suite: no such case: $*" >&2; exit 2; }

# One case in a network of its own: an interface with multicast, and nothing behind it.
run_case() {
    local case=$1 space=takt-omg-$$-$1 log=$results/$1.log
    trap 'ip netns del "$space" 2>/dev/null || true' RETURN
    ip netns add "$space"
    ip -n "$space" link set lo up
    ip -n "$space" link add veth0 type veth peer name veth1
    ip -n "$space" addr add 10.77.0.1/24 dev veth0
    ip -n "$space" link set veth0 up
    ip -n "$space" link set veth1 up
    ip -n "$space" route add 224.0.0.0/4 dev veth0
    rm -f "$results/$case.xml"
    (cd "$suite" && ip netns exec "$space" "$python" interoperability_report.py -P "$publisher" -S "$subscriber" \
        -t "$case" -o "$results/$case.xml" "${verbose[@]}") >"$log" 2>&1 </dev/null || true
    if grep -q "rtps_test_suite_1_$case : OK" "$log"; then
        echo "ok      $case"
    else
        echo "FAILED  $case: $(grep -o '[^ ]* expected code: .*' "$log" | paste -sd' ' | cut -c-150)"
    fi
}
echo "$(name "$publisher") publishes, $(name "$subscriber") subscribes: ${#cases[@]} cases, $jobs at a time"
running=0
summary=$results/summary.txt
: >"$summary"
for case in "${cases[@]}"; do
    if ((running >= jobs)); then
        wait -n || true
        running=$((running - 1))
    fi
    run_case "$case" >>"$summary" &
    running=$((running + 1))
done
wait
sort -t_ -k2,2 -k3,3n "$summary"
failed=$(grep -c '^FAILED' "$summary" || true)
echo "$((${#cases[@]} - failed)) of ${#cases[@]} passed"
((failed == 0))
