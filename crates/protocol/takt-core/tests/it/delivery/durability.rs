//! Late joiners: transient-local history, and none for volatile readers.

use crate::network::*;
use takt_core::{FlowTag, WriterFlows, WriterSpec};
use takt_wire::qos::*;

fn writer_qos(history: History) -> DataWriterQos {
    DataWriterQos {
        durability: Durability::TransientLocal,
        history,
        reliability: reliable(),
        ..DataWriterQos::default()
    }
}

fn numbers(network: &mut Network, node: usize, reader: takt_core::ReaderHandle) -> Vec<u32> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
    network.take_all(node, reader).iter().map(|(_, bytes)| number(bytes)).collect()
}

#[test]
fn late_joiner_gets_exactly_the_history_and_then_new_samples() {
    for (seed, loss) in [(70, 0), (71, 30)] {
        let mut network = Network::new(2, seed);
        let writer = network.writer(0, writer_spec("T", false, writer_qos(History::KeepLast(1000))));
        for number in 0..1_500 {
            network.write(0, writer, &payload(number, 20)).expect("old samples make room");
        }
        network.faults = Faults { loss, duplication: loss, reordering: loss };
        let reader_qos = DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() };
        let reader = network.reader(1, reader_spec("T", false, reader_qos));
        network.await_match((0, writer), (1, reader));
        for number in 1_500..1_600 {
            network.write(0, writer, &payload(number, 20)).expect("old samples make room");
        }
        let mut got = Vec::new();
        network.run_until(30_000, |network| {
            got.extend(numbers(network, 1, reader));
            got.last() == Some(&1_599)
        });
        // Samples replaced by KEEP_LAST while the reader was requesting them may be missing, but
        // only at the start.
        let first = *got.first().expect("history arrives");
        assert!((500..=600).contains(&first), "{first}");
        assert!(got.iter().copied().eq(first..1_600), "in order and without a hole");
    }
}

#[test]
fn history_uses_its_own_flow_and_repairs_use_that_of_new_samples() {
    let flows = WriterFlows { live: FlowTag(7), history: FlowTag(3) };
    for reliability in [reliable(), best_effort()] {
        let mut network = Network::new(2, 75);
        let spec = WriterSpec { flows, ..writer_spec("T", false, writer_qos(History::KeepAll)) };
        let writer = network.writer(0, spec);
        for number in 0..100 {
            network.write(0, writer, &payload(number, 1_000)).expect("write accepted");
        }
        let durability = Durability::TransientLocal;
        let reader_qos = DataReaderQos { durability, reliability, ..keep_all_reader() };
        let reader = network.reader(1, reader_spec("T", false, reader_qos));
        network.await_match((0, writer), (1, reader));
        let mut got = Vec::new();
        network.run_until(10_000, |network| {
            got.extend(numbers(network, 1, reader));
            got.len() == 100
        });
        assert!(got.iter().copied().eq(0..100), "{got:?}");
        let history = network.sent_by.get(&FlowTag(3)).copied().unwrap_or_default();
        assert!(history >= 50, "{:?}", network.sent_by);
        let live = network.sent_by.get(&FlowTag(7)).copied().unwrap_or_default();
        assert!(live < 50, "{:?}", network.sent_by);

        network.faults.loss = if reliability == reliable() { 30 } else { 0 };
        for number in 100..200 {
            network.write(0, writer, &payload(number, 1_000)).expect("write accepted");
        }
        network.run_until(30_000, |network| {
            got.extend(numbers(network, 1, reader));
            got.len() == 200
        });
        assert!(got.iter().copied().eq(0..200), "{got:?}");
        assert_eq!(network.sent_by[&FlowTag(3)], history);
        assert!(network.sent_by[&FlowTag(7)] >= live + 50, "{:?}", network.sent_by);
    }
}

#[test]
fn volatile_reader_of_a_writer_with_history_gets_only_new_samples() {
    let mut network = Network::new(2, 72);
    let writer = network.writer(0, writer_spec("T", false, writer_qos(History::KeepAll)));
    for number in 0..100 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
    }
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    for number in 100..200 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
    }
    network.run(1_000);
    assert!(numbers(&mut network, 1, reader).into_iter().eq(100..200));
}

#[test]
fn best_effort_late_joiner_is_sent_the_history_once() {
    let mut network = Network::new(2, 73);
    let writer = network.writer(0, writer_spec("T", false, writer_qos(History::KeepAll)));
    for number in 0..50 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
    }
    let reader_qos =
        DataReaderQos { durability: Durability::TransientLocal, reliability: best_effort(), ..keep_all_reader() };
    let reader = network.reader(1, reader_spec("T", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.run(1_000);
    let got = numbers(&mut network, 1, reader);
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(got.last(), Some(&49));
}

#[test]
fn history_of_each_instance_reaches_a_late_joiner() {
    let mut network = Network::new(2, 74);
    let writer = network.writer(0, writer_spec("T", true, writer_qos(History::KeepLast(1))));
    for round in 0..20_u32 {
        for key in 0..10_u8 {
            let bytes = payload(u32::from(key) | round << 8, 20);
            network.write_key(0, writer, takt_core::ChangeKind::Alive, hash(key), &bytes).expect("write accepted");
        }
    }
    let reader_qos =
        DataReaderQos { durability: Durability::TransientLocal, reliability: reliable(), ..DataReaderQos::default() };
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.run(1_000);
    let got = numbers(&mut network, 1, reader);
    assert!(got.iter().copied().eq((0..10).map(|key| key | 19 << 8)), "{got:?}");
}
