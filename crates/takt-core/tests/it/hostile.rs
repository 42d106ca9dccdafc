//! Random and mutated datagrams: no panic, bounded memory, and the legitimate stream goes on.

use crate::network::*;
use takt_core::*;

/// Datagrams of a real exchange, to be mutated.
fn corpus() -> Vec<Vec<u8>> {
    let mut network = Network::new(2, 100);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    let mut frame = vec![0; 65_507];
    let mut corpus = Vec::new();
    for step in 0..200_u32 {
        network.now = Instant(network.now.0 + 20_000_000);
        if step > 20 {
            let len = if step % 10 == 0 { 5_000 } else { 50 };
            let _ = network.write_key(0, writer, ChangeKind::Alive, hash(step as u8), &payload(step, len));
        }
        for node in 0..2 {
            network.nodes[node].handle_timeout(network.now);
            while let Some(transmit) = network.nodes[node].poll_transmit(network.now, &mut frame) {
                let bytes = frame[..transmit.len].to_vec();
                // Some loss, so that repairs are in the corpus too.
                if step % 7 != 0 {
                    let from = Received { source: address(node), multicast: true };
                    network.nodes[1 - node].handle_datagram(network.now, from, &bytes);
                }
                corpus.push(bytes);
            }
            while network.nodes[node].poll_event().is_some() {}
        }
        while network.take(1, reader).is_some() {}
    }
    corpus
}

fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len().max(1) as u64) as usize;
        match dice.roll(6) {
            0 => bytes.truncate(at),
            1 if !bytes.is_empty() => bytes[at] = dice.roll(256) as u8,
            2 if !bytes.is_empty() => bytes[at] ^= 1 << dice.roll(8),
            3 if bytes.len() >= at + 4 => bytes[at..at + 4].fill([0, 0xff, 0x7f, 0x80][dice.roll(4) as usize]),
            4 => bytes.extend((0..dice.roll(40)).map(|i| i as u8)),
            _ if bytes.len() > 24 => {
                let (from, to) = (20 + dice.roll((bytes.len() - 20) as u64) as usize, at.max(20));
                let piece = bytes[from..].to_vec();
                bytes.splice(to..to, piece.into_iter().take(64));
            }
            _ => {}
        }
    }
}

#[test]
fn mutated_datagrams_do_not_harm_a_stream() {
    let corpus = corpus();
    assert!(corpus.len() > 200, "{} datagrams", corpus.len());
    let mut dice = Dice(101);
    let mut network = Network::new(2, 102);
    let writer = network.writer(0, writer_spec("S", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("S", false, keep_all_reader()));
    network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let mut frame = vec![0; 65_507];
    for number in 0..200_u32 {
        for _ in 0..250 {
            let mut bytes = corpus[dice.roll(corpus.len() as u64) as usize].clone();
            mutate(&mut dice, &mut bytes);
            // A source that is not one of the two, in the same network.
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
        network.write(0, writer, &payload(number, 100)).expect("there is room");
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
    let corpus = corpus();
    let mut dice = Dice(103);
    let mut network = Network::new(2, 104);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let mut frame = vec![0; 65_507];
    for _ in 0..100_000 {
        let mut bytes = corpus[dice.roll(corpus.len() as u64) as usize].clone();
        mutate(&mut dice, &mut bytes);
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
