#!/usr/bin/env bash
# Discovery in the three architectures of docs/guide/daemon.md, on two hosts that are network namespaces: the time in which one newcomer
# matches all participants of the other host, and the frames of UDP on the link, while nothing changes and while it joins.
#
#   scripts/architectures.sh TAKT [COUNT]...      a built takt, and participants of the other host [1 10 50]
set -euo pipefail

takt=$(realpath "${1:?usage: scripts/architectures.sh TAKT [COUNT]...}")
shift
counts=("${@:-1 10 50}")
# shellcheck disable=SC2206 # the default is three words
counts=(${counts[@]})
here=takt-arch-$$-a there=takt-arch-$$-b
work=$(mktemp -d)
processes=()

end() {
    for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    processes=()
}
finish() {
    end
    ip netns del "$here" 2>/dev/null || true
    ip netns del "$there" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

ip netns add "$here"
ip netns add "$there"
ip -n "$here" link add eth0 type veth peer name eth0 netns "$there"
for side in "$here 1" "$there 2"; do
    read -r name number <<<"$side"
    ip -n "$name" addr add "10.99.0.$number/24" dev eth0
    ip -n "$name" link set lo up
    ip -n "$name" link set eth0 up
    ip -n "$name" route add 224.0.0.0/4 dev eth0
done

# Frames that the host of the newcomer has sent and received.
frames() {
    ip -n "$here" -s -j link show dev eth0 | grep -o '"packets":[0-9]*' | cut -d: -f2 | paste -sd+ | bc
}

agent() {
    local namespace=$1 out=$2
    shift 2
    ip netns exec "$namespace" "$takt" perf agent "$@" iface=eth0 domain=7 >"$out" 2>/dev/null &
    processes+=($!)
}

await() {
    local file=$1 word=$2
    for _ in $(seq 600); do
        if grep -q "\"$word\"" "$file" 2>/dev/null; then return; fi
        sleep 0.05
    done
    echo "no $word in $file: $(cat "$file")" >&2
    exit 1
}

measure() {
    local architecture=$1 count=$2 before after quiet
    shift 2
    if [[ $architecture == centralized ]]; then
        agent "$there" "$work/broker" broker broker=10.99.0.2:17400
        await "$work/broker" ready
    fi
    for number in $(seq "$count"); do
        agent "$there" "$work/$number" disc id=1 n=1 addr=10.99.0.2 "$@"
    done
    for number in $(seq "$count"); do await "$work/$number" ready; done
    sleep 6
    before=$(frames)
    sleep 12
    quiet=$((($(frames) - before)))
    before=$(frames)
    agent "$here" "$work/newcomer" disc id=0 "n=$count" addr=10.99.0.1 "$@" \
        "t0=$(awk '{printf "%.0f", $1 * 1e9}' /proc/uptime)"
    await "$work/newcomer" matched
    sleep 3
    after=$(frames)
    local init match
    init=$(grep -o '"init_ms":[0-9.]*' "$work/newcomer" | cut -d: -f2)
    match=$(grep -o '"match_ms":[0-9.]*' "$work/newcomer" | cut -d: -f2)
    printf '%-14s %4d %14.1f %18.1f %16d\n' "$architecture" "$count" \
        "$(echo "$match - $init" | bc)" "$(echo "scale=2; $quiet / 4" | bc)" $((after - before))
    end
    rm -f "$work"/*
}

printf '%-14s %4s %14s %18s %16s\n' architecture of match_ms frames_per_3_s frames_to_join
for count in "${counts[@]}"; do
    measure decentralized "$count" transport=udp
    measure federated "$count" daemon=start
    measure centralized "$count" transport=udp discovery=server broker=10.99.0.2:17400
done
