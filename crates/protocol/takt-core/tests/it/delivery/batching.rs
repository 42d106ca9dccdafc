//! Batching with LATENCY_BUDGET (DDS 1.4 §2.2.3.8): samples wait for others in the same datagram,
//! at most for their budget.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

fn pair(network: &mut Network, budget_ms: u64, reliability: Reliability) -> (WriterHandle, ReaderHandle) {
    let latency_budget = LatencyBudget { duration: Duration::from_millis(budget_ms) };
    let writer_qos = DataWriterQos { latency_budget, reliability, ..keep_all_writer() };
    let reader_qos = DataReaderQos { latency_budget, reliability, ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", false, writer_qos));
    let reader = network.reader(1, reader_spec("T", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.run(500);
    (writer, reader)
}

fn sent(network: &Network) -> (u64, u64) {
    let counters = network.nodes[0].counters();
    (counters.datagrams_sent, counters.data_sent)
}

#[test]
fn sample_is_sent_at_once_without_a_budget() {
    let mut network = Network::new(2, 380);
    let (writer, reader) = pair(&mut network, 0, best_effort());
    network.write(0, writer, &payload(1, 20)).expect("write accepted");
    assert!(network.nodes[0].has_transmit());
    network.run(0);
    assert_eq!(network.take_all(1, reader).len(), 1);
}

#[test]
fn samples_share_a_datagram_within_their_budget() {
    for reliability in [best_effort(), reliable()] {
        let mut network = Network::new(2, 381);
        let (writer, reader) = pair(&mut network, 40, reliability);
        let before = sent(&network);
        for number in 0..4 {
            network.write(0, writer, &payload(number, 20)).expect("write accepted");
            assert!(!network.nodes[0].has_transmit());
            network.run(if number < 3 { 12 } else { 3 });
        }
        assert_eq!(network.take_all(1, reader).len(), 0, "39 ms have passed");
        assert_eq!(sent(&network), before, "and no heartbeat was sent, which would announce nothing");
        network.run(1);
        assert_eq!(network.take_all(1, reader).len(), 4);
        assert_eq!(sent(&network), (before.0 + 1, before.1 + 4));
        network.write(0, writer, &payload(9, 20)).expect("write accepted");
        network.run(39);
        assert_eq!(network.take_all(1, reader).len(), 0, "it has a budget of its own");
        network.run(1);
        assert_eq!(network.take_all(1, reader).len(), 1);
        network.run(200);
        assert_eq!(network.nodes[0].is_acknowledged(writer, None), Ok(true));
    }
}

#[test]
fn batch_is_sent_at_once_when_it_fills_a_datagram() {
    let mut network = Network::new(2, 382);
    let (writer, reader) = pair(&mut network, 900, best_effort());
    let before = sent(&network);
    for number in 0..100 {
        network.write(0, writer, &payload(number, 36)).expect("write accepted");
        network.run(0);
    }
    let (datagrams, samples) = sent(&network);
    let taken = network.take_all(1, reader).len() as u64;
    assert_eq!(taken, samples - before.1);
    assert!(taken >= 80, "{taken}");
    assert!(datagrams - before.0 <= taken / 10, "{} datagrams for {taken} samples", datagrams - before.0);
    let large = payload(1, 5_000);
    network.write(0, writer, &large).expect("write accepted");
    network.run(0);
    assert_eq!(network.take_all(1, reader).last().map(|(_, bytes)| bytes.len()), Some(large.len()));
}

#[test]
fn batch_is_sent_when_it_is_flushed_or_the_budget_shrinks() {
    let mut network = Network::new(2, 383);
    let (writer, reader) = pair(&mut network, 900, best_effort());
    network.write(0, writer, &payload(1, 20)).expect("write accepted");
    network.run(1);
    network.nodes[0].flush_writer(network.now, writer).expect("the writer exists");
    network.run(0);
    assert_eq!(network.take_all(1, reader).len(), 1);
    network.write(0, writer, &payload(2, 20)).expect("write accepted");
    let qos = DataWriterQos { reliability: best_effort(), ..keep_all_writer() };
    network.nodes[0].set_writer_qos(network.now, writer, qos).expect("it may change");
    network.run(1);
    assert_eq!(network.take_all(1, reader).len(), 1);
}

#[test]
fn batch_is_sent_at_once_when_the_history_is_full() {
    let mut network = Network::new(2, 384);
    let latency_budget = LatencyBudget { duration: Duration::INFINITE };
    let resource_limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
    let writer_qos = DataWriterQos { latency_budget, resource_limits, ..keep_all_writer() };
    let reader_qos = DataReaderQos { latency_budget, ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", false, writer_qos));
    let reader = network.reader(1, reader_spec("T", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.run(500);
    for number in 0..2 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
    }
    assert_eq!(network.write(0, writer, &payload(3, 20)), Err(WriteError::WouldBlock));
    network.run(20);
    assert_eq!(network.take_all(1, reader).len(), 2);
    network.write(0, writer, &payload(3, 20)).expect("there is room again");
    network.run(999);
    assert_eq!(network.take_all(1, reader).len(), 0);
    network.run(1);
    assert_eq!(network.take_all(1, reader).len(), 1, "nothing waits for more than a second");
}

#[test]
fn batch_is_sent_at_once_when_it_fills_a_quarter_of_the_send_window() {
    let mut network = Network::with_mtu(2, 385, 65_536);
    let (writer, reader) = pair(&mut network, 900, reliable());
    let before = sent(&network);
    for number in 0..127 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
        assert!(!network.nodes[0].has_transmit());
    }
    network.write(0, writer, &payload(127, 20)).expect("write accepted");
    network.run(0);
    assert_eq!(network.take_all(1, reader).len(), 128);
    assert_eq!(sent(&network), (before.0 + 1, before.1 + 128));
}

/// Returns the datagrams that one node sends now.
fn datagrams(network: &mut Network, node: usize) -> Vec<Vec<u8>> {
    let mut frame = vec![0; 65_507];
    let (now, mut all) = (network.now, Vec::new());
    while let Some(len) = network.nodes[node].poll_transmit(now, &mut frame).map(|transmit| transmit.len) {
        all.push(frame[..len].to_vec());
    }
    all
}

fn deliver(network: &mut Network, from: usize, to: usize, datagram: &[u8]) {
    let received = Received { source: address(from), multicast: false };
    network.nodes[to].handle_datagram(network.now, received, datagram);
}

#[test]
fn full_send_window_opens_when_a_whole_datagram_fits() {
    let mut network = Network::with_mtu(2, 386, 65_536);
    let (writer, reader) = pair(&mut network, 0, reliable());
    let (begin, mut in_transit) = (sent(&network).1, Vec::new());
    for number in 0..1_500 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
        in_transit.append(&mut datagrams(&mut network, 0));
    }
    assert_eq!(sent(&network).1 - begin, 512, "up to the window");
    assert!(in_transit.len() >= 512, "each sample leaves alone");
    let (mut taken, mut later) = (0, Vec::new());
    for datagram in in_transit {
        deliver(&mut network, 0, 1, &datagram);
        taken += network.take_all(1, reader).len();
        for answer in datagrams(&mut network, 1) {
            let before = sent(&network);
            deliver(&mut network, 1, 0, &answer);
            let mut more = datagrams(&mut network, 0);
            let samples = sent(&network).1 - before.1;
            assert!(samples == 0 || (samples >= 128 && more.len() == 1), "{samples} in {} datagrams", more.len());
            later.append(&mut more);
        }
    }
    assert_eq!(taken, 512);
    later.iter().for_each(|datagram| deliver(&mut network, 0, 1, datagram));
    network.run(100);
    taken += network.take_all(1, reader).len();
    assert_eq!(taken, 1_500, "the rest follows");
}

#[test]
fn samples_are_sent_when_the_reader_of_a_full_window_is_deleted() {
    let mut network = Network::with_mtu(2, 387, 65_536);
    let (writer, reader) = pair(&mut network, 0, reliable());
    for number in 0..1_000 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
    }
    datagrams(&mut network, 0);
    network.nodes[1].delete_reader(network.now, reader).expect("it exists");
    network.run(100);
    let qos = DataReaderQos { reliability: best_effort(), ..keep_all_reader() };
    let late_reader = network.reader(1, reader_spec("T", false, qos));
    network.await_match((0, writer), (1, late_reader));
    network.run(100);
    network.write(0, writer, &payload(7, 20)).expect("write accepted");
    network.run(0);
    assert_eq!(network.take_all(1, late_reader).len(), 1);
}
