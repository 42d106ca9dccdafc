#!/usr/bin/env bash
# record.sh PEER TAKT-PEER OUT
#
# Records what a peer of another vendor sends to one participant of Takt, for `src/recording.rs`: discovery, 20 samples of
# two instances, two of 3,000 octets, a disposal, an unregistration, acknowledgments and the farewell.
# PEER is a program of lab/interop/peers, TAKT-PEER is target/debug/takt-peer. Needs root, tshark and dumpcap. Traffic stays in two
# network namespaces that this script makes and removes.
#
# A line of OUT is a datagram of the peer: seconds, source address and port, destination address and port, octets.
set -euo pipefail
peer=$1 takt=$2 out=$3
left=takt-record-peer right=takt-record-takt
work=$(mktemp -d)

clean() {
    ip netns del $left 2>/dev/null || true
    ip netns del $right 2>/dev/null || true
    rm -r "$work"
}
trap clean EXIT

ip netns add $left
ip netns add $right
ip link add veth0 netns $left type veth peer name veth0 netns $right
for end in "$left 10.77.0.1" "$right 10.77.0.2"; do
    set -- $end
    ip -n "$1" address add "$2/24" dev veth0
    ip -n "$1" link set lo up
    ip -n "$1" link set veth0 up
    ip -n "$1" route add 224.0.0.0/4 dev veth0
done

# Becomes a program on a host, which has a /dev/shm of its own: shared memory is no way around the network.
run() {
    exec ip netns exec "$1" unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' sh "${@:2}"
}

run $left dumpcap -q -i veth0 -w "$work/all.pcapng" 2>"$work/dumpcap" &
dumpcap=$!
until grep -q '^File:' "$work/dumpcap"; do sleep 0.1; done

mkfifo "$work/to-takt" "$work/to-peer"
run $right "$takt" domain=0 interface=veth0 address=10.77.0.2 <"$work/to-takt" >"$work/takt" &
exec 3>"$work/to-takt"
type="type=key ext=final repr=xcdr1 reliability=reliable durability=transient_local history=all"
echo "reader id=r topic=Recorded $type" >&3
echo "writer id=w topic=Replies $type autodispose=0" >&3
sleep 1
run $left "$peer" domain=0 interface=veth0 address=10.77.0.1 max_message=1400 <"$work/to-peer" >"$work/peer" &
exec 4>"$work/to-peer"
echo "writer id=w topic=Recorded $type autodispose=0" >&4
echo "reader id=r topic=Replies $type" >&4
until grep -q '"matched".*"r"' "$work/takt" && grep -q '"matched".*"r"' "$work/peer"; do sleep 0.05; done
echo "write id=w first=0 count=10 key=0 keys=2 size=40 period_us=10000" >&4
echo "write id=w first=0 count=10 key=0 keys=2 size=40 period_us=10000" >&3
sleep 0.3
echo "write id=w first=10 count=2 key=0 keys=2 size=3000 period_us=10000" >&4
sleep 0.3
echo "write id=w first=12 count=10 key=0 keys=2 size=40 period_us=10000" >&4
sleep 0.3
echo "dispose id=w key=0" >&4
echo "unregister id=w key=1" >&4
sleep 0.5
echo "quit" >&4
sleep 0.5
echo "quit" >&3
exec 3>&- 4>&-
sleep 1
kill -TERM $dumpcap
wait

tshark -r "$work/all.pcapng" -n -o udp.try_heuristic_first:TRUE -Y 'rtps && ip.src == 10.77.0.1' -T fields \
    -e frame.time_relative -e ip.src -e udp.srcport -e ip.dst -e udp.dstport -e udp.payload >"$out"
wc "$out"
