//! Content filters at the reader (DDS 1.4 §2.2.2.3.3): what does not pass leaves no trace.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::discovery::ContentFilterProperty;
use takt_wire::qos::*;

/// Lets through what [`payload`] made of a multiple of a number.
pub struct Multiples(pub u32);

impl ContentFilter for Multiples {
    fn passes(&mut self, payload: &[u8]) -> bool {
        number(payload).is_multiple_of(self.0)
    }
}

/// The number that [`payload`] put there.
pub fn number(payload: &[u8]) -> u32 {
    u32::from_le_bytes(payload[4..8].try_into().expect("four bytes"))
}

pub fn multiples_of(number: u32) -> Option<ReaderFilter> {
    let property = ContentFilterProperty {
        content_filtered_topic_name: "Multiples".into(),
        related_topic_name: "T".into(),
        filter_class_name: "TEST".into(),
        filter_expression: "%0".into(),
        expression_parameters: vec![number.to_string()],
    };
    Some(ReaderFilter { property, filter: Box::new(Multiples(number)) })
}

/// A writer at node 0, a reader of multiples at node 1.
fn pair(
    network: &mut Network,
    keyed: bool,
    qos: (DataWriterQos, DataReaderQos),
    number: u32,
) -> (WriterHandle, ReaderHandle) {
    let writer = network.writer(0, writer_spec("T", keyed, qos.0));
    let spec = ReaderSpec { content_filter: multiples_of(number), ..reader_spec("T", keyed, qos.1) };
    let reader = network.reader(1, spec);
    network.await_match((0, writer), (1, reader));
    (writer, reader)
}

fn numbers(network: &mut Network, reader: ReaderHandle) -> Vec<u32> {
    network.take_all(1, reader).iter().map(|(_, payload)| number(payload)).collect()
}

#[test]
fn what_passes_arrives_whole_and_in_order_whatever_is_lost() {
    for len in [20, 5_000] {
        let mut network = Network::new(2, 600);
        let (writer, reader) = pair(&mut network, false, (keep_all_writer(), keep_all_reader()), 3);
        network.faults = Faults { loss: 20, duplication: 5, reordering: 10 };
        for number in 0..60 {
            network.write(0, writer, &payload(number, len)).expect("there is room");
        }
        network.run_until(20_000, |network| network.nodes[0].is_acknowledged(writer, None).expect("the writer lives"));
        let expected: Vec<u32> = (0..60).step_by(3).collect();
        assert_eq!(numbers(&mut network, reader), expected, "{len}");
        let changed = network.nodes[1].set_content_filter(network.now, reader, multiples_of(10));
        changed.expect("the reader lives");
        network.run(1_000);
        for number in 60..90 {
            network.write(0, writer, &payload(number, len)).expect("there is room");
        }
        network.run_until(20_000, |network| network.nodes[0].is_acknowledged(writer, None).expect("the writer lives"));
        assert_eq!(numbers(&mut network, reader), [60, 70, 80], "{len}");
    }
}

#[test]
fn a_deadline_counts_what_passes_only() {
    let mut network = Network::new(2, 601);
    let deadline = Deadline { period: Duration::from_millis(100) };
    let qos = (DataWriterQos { deadline, ..keep_all_writer() }, DataReaderQos { deadline, ..keep_all_reader() });
    let (writer, reader) = pair(&mut network, true, qos, 2);
    let write = |network: &mut Network, key: u8, number: u32| {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(number, 20)).expect("there is room");
        network.run(60);
    };
    // An instance nothing of which passes is none to this reader: nobody waits for it.
    for _ in 0..5 {
        write(&mut network, 1, 1);
    }
    let missed = |network: &mut Network| network.nodes[1].requested_deadline_missed_status(reader).expect("it lives");
    assert_eq!(missed(&mut network).total_count, 0);
    write(&mut network, 2, 2);
    for _ in 0..4 {
        write(&mut network, 2, 1);
    }
    assert_eq!(missed(&mut network).total_count, 2, "300 ms since the only sample that passed");
    assert_eq!(network.take_all(1, reader).len(), 1);
}

#[test]
fn a_best_effort_reader_does_not_take_what_is_filtered_for_lost() {
    let mut network = Network::new(2, 602);
    let qos = (DataWriterQos { reliability: best_effort(), ..keep_all_writer() }, DataReaderQos::default());
    let qos = (qos.0, DataReaderQos { history: History::KeepAll, ..qos.1 });
    let (writer, reader) = pair(&mut network, false, qos, 4);
    for number in 0..20 {
        network.write(0, writer, &payload(number, 20)).expect("there is room");
        network.run(1);
    }
    assert_eq!(numbers(&mut network, reader), [0, 4, 8, 12, 16]);
    assert_eq!(network.nodes[1].sample_lost_status(reader).expect("the reader lives").total_count, 0);
}
