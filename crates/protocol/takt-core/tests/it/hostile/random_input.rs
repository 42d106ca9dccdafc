//! Random and mutated datagrams: no panic, bounded memory, and the legitimate stream continues.

use crate::network::*;
use crate::session::{EXCHANGE, mutate};
use takt_core::*;

fn mutated(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = EXCHANGE[dice.roll(EXCHANGE.len() as u64) as usize].clone();
    (0..=dice.roll(4)).for_each(|_| mutate(dice, &mut bytes));
    bytes
}

#[test]
fn mutated_datagrams_do_not_harm_a_stream() {
    assert!(EXCHANGE.len() > 200, "{} datagrams", EXCHANGE.len());
    let mut dice = Dice(101);
    let mut network = Network::new(2, 102);
    let writer = network.writer(0, writer_spec("S", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("S", false, keep_all_reader()));
    network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let mut frame = vec![0; 65_507];
    for number in 0..200_u32 {
        for _ in 0..250 {
            let mut bytes = mutated(&mut dice);
            // The source is neither of the two nodes, but in the same network.
            if bytes.len() >= 20 {
                bytes[8..20].copy_from_slice(&prefix(7).0);
            }
            let from = Received { source: address(7), multicast: dice.percent(50) };
            network.nodes[1].handle_datagram(network.now, from, &bytes);
        }
        while let Some(transmit) = network.nodes[1].poll_transmit(network.now, &mut frame) {
            assert!(transmit.len <= 1472);
        }
        network.run(1);
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
        assert!(
            network.run_until(1_000, |n| n.take(1, reader).is_some_and(|(_, bytes)| bytes == payload(number, 100))),
            "sample {number}"
        );
    }
    let counters = network.nodes[1].counters();
    assert!(counters.malformed_submessages > 1_000 && counters.malformed_messages > 100, "{counters:?}");
}

#[test]
fn forged_traffic_of_a_matched_writer_never_panics() {
    let mut dice = Dice(103);
    let mut network = Network::new(2, 104);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let mut frame = vec![0; 65_507];
    for _ in 0..100_000 {
        let bytes = mutated(&mut dice);
        let node = dice.roll(2) as usize;
        network.now = Instant(network.now.0 + 50_000);
        let from = Received { source: address(1 - node), multicast: false };
        network.nodes[node].handle_datagram(network.now, from, &bytes);
        network.nodes[node].handle_timeout(network.now);
        while network.nodes[node].poll_transmit(network.now, &mut frame).is_some() {}
        while network.nodes[node].poll_event().is_some() {}
        while network.take(1, reader).is_some() {}
    }
    let received: u64 = network.nodes.iter().map(|node| node.counters().datagrams_received).sum();
    assert!(received > 100_000);
}
