//! Content filters at the reader and at the writer (DDS 1.4 §2.2.2.3.3): rejected samples leave no
//! trace.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::discovery::ContentFilterProperty;
use takt_wire::qos::*;

/// Filter that accepts payloads of [`payload`] whose number is a multiple of the given one.
pub struct Multiples(pub u32);

impl ContentFilter for Multiples {
    fn passes(&mut self, payload: &[u8]) -> bool {
        number(payload).is_multiple_of(self.0)
    }
}

/// Returns the number that [`payload`] stored.
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

/// Creates a writer at node 0 and a reader of multiples at node 1.
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
fn accepted_samples_arrive_completely_and_in_order_under_loss() {
    for len in [20, 5_000] {
        let mut network = Network::new(2, 600);
        let (writer, reader) = pair(&mut network, false, (keep_all_writer(), keep_all_reader()), 3);
        network.faults = Faults { loss: 20, duplication: 5, reordering: 10 };
        for number in 0..60 {
            network.write(0, writer, &payload(number, len)).expect("write accepted");
        }
        network.run_until(20_000, |network| network.nodes[0].is_acknowledged(writer, None).expect("the writer exists"));
        let expected: Vec<u32> = (0..60).step_by(3).collect();
        assert_eq!(numbers(&mut network, reader), expected, "{len}");
        let changed = network.nodes[1].set_content_filter(network.now, reader, multiples_of(10));
        changed.expect("the reader exists");
        network.run(1_000);
        for number in 60..90 {
            network.write(0, writer, &payload(number, len)).expect("write accepted");
        }
        network.run_until(20_000, |network| network.nodes[0].is_acknowledged(writer, None).expect("the writer exists"));
        assert_eq!(numbers(&mut network, reader), [60, 70, 80], "{len}");
    }
}

#[test]
fn deadline_counts_only_accepted_samples() {
    let mut network = Network::new(2, 601);
    let deadline = Deadline { period: Duration::from_millis(100) };
    let qos = (DataWriterQos { deadline, ..keep_all_writer() }, DataReaderQos { deadline, ..keep_all_reader() });
    let (writer, reader) = pair(&mut network, true, qos, 2);
    let write = |network: &mut Network, key: u8, number: u32| {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(number, 20)).expect("write accepted");
        network.run(60);
    };
    // An instance of which every sample is rejected does not exist for the reader and misses no
    // deadline.
    for _ in 0..5 {
        write(&mut network, 1, 1);
    }
    let missed = |network: &mut Network| network.nodes[1].requested_deadline_missed_status(reader).expect("it exists");
    assert_eq!(missed(&mut network).total_count, 0);
    write(&mut network, 2, 2);
    for _ in 0..4 {
        write(&mut network, 2, 1);
    }
    assert_eq!(missed(&mut network).total_count, 2, "300 ms since the only sample that passed");
    assert_eq!(network.take_all(1, reader).len(), 1);
}

#[test]
fn best_effort_reader_does_not_count_filtered_samples_as_lost() {
    let mut network = Network::new(2, 602);
    let qos = (DataWriterQos { reliability: best_effort(), ..keep_all_writer() }, DataReaderQos::default());
    let qos = (qos.0, DataReaderQos { history: History::KeepAll, ..qos.1 });
    let (writer, reader) = pair(&mut network, false, qos, 4);
    for number in 0..20 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
        network.run(1);
    }
    assert_eq!(numbers(&mut network, reader), [0, 4, 8, 12, 16]);
    assert_eq!(network.nodes[1].sample_lost_status(reader).expect("the reader exists").total_count, 0);
}

/// Factory for the filter class of [`multiples_of`].
#[derive(Debug)]
pub struct Factory;

impl FilterFactory for Factory {
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>> {
        let number = property.expression_parameters.first()?.parse().ok()?;
        (property.filter_class_name == "TEST").then(|| Box::new(Multiples(number)) as _)
    }
}

/// Creates a writer at node 0 that filters for its readers.
fn filtering_writer(network: &mut Network, qos: DataWriterQos) -> WriterHandle {
    let spec = WriterSpec { filters: Some(std::sync::Arc::new(Factory)), ..writer_spec("T", false, qos) };
    network.writer(0, spec)
}

fn filtered_reader(network: &mut Network, node: usize, qos: DataReaderQos, number: u32) -> ReaderHandle {
    let content_filter = if number == 1 { None } else { multiples_of(number) };
    network.reader(node, ReaderSpec { content_filter, ..reader_spec("T", false, qos) })
}

fn write_numbers(network: &mut Network, writer: WriterHandle, numbers: std::ops::Range<u32>, len: usize) {
    for number in numbers {
        let bytes = payload(number, len);
        let written = network.run_until(60_000, |network| network.write(0, writer, &bytes).is_ok());
        assert!(written, "there is room for {number}");
    }
}

fn await_acknowledgment(network: &mut Network, writer: WriterHandle) {
    let is_acknowledged = |network: &mut Network| network.nodes[0].is_acknowledged(writer, None).expect("it exists");
    assert!(network.run_until(60_000, is_acknowledged));
}

#[test]
fn writer_does_not_send_samples_that_its_only_reader_rejects() {
    let mut network = Network::new(2, 603);
    let writer = filtering_writer(&mut network, keep_all_writer());
    let reader = filtered_reader(&mut network, 1, keep_all_reader(), 10);
    network.await_match((0, writer), (1, reader));
    network.run(1_000);
    let before = *network.nodes[0].counters();
    write_numbers(&mut network, writer, 0..100, 20);
    await_acknowledgment(&mut network, writer);
    let counters = network.nodes[0].counters();
    assert_eq!(counters.data_sent - before.data_sent, 10);
    assert_eq!(counters.withheld_samples, 90);
    let gaps = counters.gaps_sent - before.gaps_sent;
    assert!((1..=20).contains(&gaps), "{gaps}");
    assert_eq!(numbers(&mut network, reader), (0..100).step_by(10).collect::<Vec<_>>());
    assert_eq!(network.nodes[1].counters().filtered_samples, 0, "nothing was left to filter");
}

#[test]
fn each_reader_gets_its_accepted_samples_of_any_size_under_loss() {
    for (len, seed) in [(20, 604), (5_000, 605)] {
        let mut network = Network::new(4, seed);
        let writer = filtering_writer(&mut network, keep_all_writer());
        let multiples = [(1, 3), (2, 5), (3, 1), (3, 7)];
        let readers = multiples
            .map(|(node, number)| (node, number, filtered_reader(&mut network, node, keep_all_reader(), number)));
        readers.iter().for_each(|(node, _, reader)| network.await_match((0, writer), (*node, *reader)));
        network.faults = Faults { loss: 20, duplication: 5, reordering: 10 };
        write_numbers(&mut network, writer, 0..100, len);
        await_acknowledgment(&mut network, writer);
        assert_eq!(network.nodes[0].counters().withheld_samples, 66 + 80 + 85, "of 3, 5 and 7");
        for (node, wanted, reader) in readers {
            let got: Vec<u32> = network.take_all(node, reader).iter().map(|(_, payload)| number(payload)).collect();
            assert_eq!(got, (0..100).step_by(wanted as usize).collect::<Vec<_>>(), "{len} {wanted}");
        }
    }
}

#[test]
fn changed_filter_is_recompiled_and_unknown_class_filters_nothing() {
    let mut network = Network::new(2, 606);
    let writer = filtering_writer(&mut network, keep_all_writer());
    let reader = filtered_reader(&mut network, 1, keep_all_reader(), 10);
    network.await_match((0, writer), (1, reader));
    write_numbers(&mut network, writer, 0..20, 20);
    await_acknowledgment(&mut network, writer);
    let withheld = |network: &Network| network.nodes[0].counters().withheld_samples;
    assert_eq!(withheld(&network), 18);
    network.nodes[1].set_content_filter(network.now, reader, multiples_of(5)).expect("the reader exists");
    network.run(1_000);
    write_numbers(&mut network, writer, 20..40, 20);
    await_acknowledgment(&mut network, writer);
    assert_eq!(withheld(&network), 18 + 16);
    let mut unknown = multiples_of(5).expect("a filter");
    unknown.property.filter_class_name = "ANOTHER".into();
    network.nodes[1].set_content_filter(network.now, reader, Some(unknown)).expect("the reader exists");
    network.run(1_000);
    write_numbers(&mut network, writer, 40..60, 20);
    await_acknowledgment(&mut network, writer);
    assert_eq!(withheld(&network), 18 + 16);
    assert_eq!(numbers(&mut network, reader), [0, 10, 20, 25, 30, 35, 40, 45, 50, 55]);
}

#[test]
fn full_history_ignores_readers_whose_filter_rejects_everything() {
    let mut network = Network::new(2, 607);
    let resource_limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let writer = filtering_writer(&mut network, DataWriterQos { resource_limits, ..keep_all_writer() });
    let reader = filtered_reader(&mut network, 1, keep_all_reader(), 1_000);
    network.await_match((0, writer), (1, reader));
    let begin = network.now;
    write_numbers(&mut network, writer, 1..400, 20);
    await_acknowledgment(&mut network, writer);
    // No round waits for a heartbeat of the timer, except perhaps the last.
    assert!(network.now.0 - begin.0 < 500_000_000, "{} ns", network.now.0 - begin.0);
    assert!(numbers(&mut network, reader).is_empty());
}

#[test]
fn readers_beyond_the_limit_of_filters_filter_for_themselves() {
    let mut network = Network::new(2, 608);
    let writer = filtering_writer(&mut network, keep_all_writer());
    let readers: Vec<_> =
        (2..42).map(|number| (number, filtered_reader(&mut network, 1, keep_all_reader(), number))).collect();
    readers.iter().for_each(|(_, reader)| network.await_match((0, writer), (1, *reader)));
    write_numbers(&mut network, writer, 0..50, 20);
    await_acknowledgment(&mut network, writer);
    for (wanted, reader) in readers {
        assert_eq!(numbers(&mut network, reader), (0..50).step_by(wanted as usize).collect::<Vec<_>>(), "{wanted}");
    }
}

#[test]
fn late_joiner_gets_the_filtered_history() {
    let mut network = Network::new(2, 609);
    let durability = Durability::TransientLocal;
    let writer = filtering_writer(&mut network, DataWriterQos { durability, ..keep_all_writer() });
    for number in 0..20 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
    }
    for wanted in [4, 6] {
        let reader = filtered_reader(&mut network, 1, DataReaderQos { durability, ..keep_all_reader() }, wanted);
        network.await_match((0, writer), (1, reader));
        await_acknowledgment(&mut network, writer);
        assert_eq!(numbers(&mut network, reader), (0..20).step_by(wanted as usize).collect::<Vec<_>>(), "{wanted}");
        network.nodes[1].delete_reader(network.now, reader).expect("the reader exists");
        network.run(100);
    }
}

/// Found by the simulation, seeds 2661 and 321205.
#[test]
fn filtered_sample_asserts_the_liveliness_of_its_writer() {
    let kinds = [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant];
    let of_both = kinds.map(|kind| [(kind, Reliability::RELIABLE), (kind, Reliability::BEST_EFFORT)]);
    for (kind, reliability) in of_both.into_iter().flatten() {
        let mut network = Network::new(2, 611);
        let lease_duration = Duration::from_millis(300);
        let liveliness = Liveliness { kind, lease_duration };
        let writer = filtering_writer(&mut network, DataWriterQos { liveliness, ..keep_all_writer() });
        let qos = DataReaderQos { liveliness, reliability, ..keep_all_reader() };
        let reader = filtered_reader(&mut network, 1, qos, 1_000);
        network.await_match((0, writer), (1, reader));
        for number in 1..20 {
            write_numbers(&mut network, writer, number..number + 1, 20);
            network.run(200);
            let status = network.nodes[1].liveliness_changed_status(reader).expect("the reader exists");
            assert_eq!((status.alive_count, status.not_alive_count), (1, 0), "{kind:?} {number}");
        }
        assert_eq!(network.nodes[0].counters().withheld_samples, if reliability.is_reliable() { 19 } else { 0 });
        assert_eq!(network.nodes[1].counters().filtered_samples, 0, "nothing was sent");
    }
}

#[test]
fn writer_of_coherent_sets_or_of_a_group_does_not_filter() {
    for presentation in [
        Presentation { coherent_access: true, ..Presentation::default() },
        Presentation { access_scope: AccessScope::Group, ordered_access: true, ..Presentation::default() },
    ] {
        let mut network = Network::new(2, 610);
        let mut spec = writer_spec("T", false, keep_all_writer());
        spec.publisher.presentation = presentation;
        spec.filters = Some(std::sync::Arc::new(Factory));
        let writer = network.writer(0, spec);
        let reader = filtered_reader(&mut network, 1, keep_all_reader(), 10);
        network.await_match((0, writer), (1, reader));
        write_numbers(&mut network, writer, 0..20, 20);
        await_acknowledgment(&mut network, writer);
        assert_eq!(network.nodes[0].counters().withheld_samples, 0);
        assert_eq!(numbers(&mut network, reader), [0, 10]);
    }
}

#[test]
fn accepted_sample_is_sent_at_once_when_other_readers_reject_it() {
    let mut network = Network::new(3, 612);
    let writer = filtering_writer(&mut network, keep_all_writer());
    let qos = DataReaderQos { reliability: best_effort(), ..keep_all_reader() };
    let of_all = filtered_reader(&mut network, 1, qos, 1);
    let of_third = filtered_reader(&mut network, 2, keep_all_reader(), 3);
    network.await_match((0, writer), (1, of_all));
    network.await_match((0, writer), (2, of_third));
    network.run(1_000);
    for number in 1..10 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
        network.run(0);
        assert_eq!(numbers(&mut network, of_all), [number]);
        let few = network.take_all(2, of_third).len();
        assert_eq!(few, usize::from(number % 3 == 0), "{number}");
    }
    assert_eq!(network.nodes[2].counters().filtered_samples, 0);
}

#[test]
fn removed_filter_makes_room_for_another() {
    let mut network = Network::new(2, 613);
    let writer = filtering_writer(&mut network, keep_all_writer());
    let lasting = filtered_reader(&mut network, 1, keep_all_reader(), 10);
    network.await_match((0, writer), (1, lasting));
    for round in 0..40 {
        let passing = filtered_reader(&mut network, 1, keep_all_reader(), 10);
        network.await_match((0, writer), (1, passing));
        network.run(50);
        network.nodes[1].delete_reader(network.now, passing).expect("the reader exists");
        network.nodes[1].set_content_filter(network.now, lasting, multiples_of(5 + round % 2)).expect("it exists");
        network.run(100);
    }
    let last = filtered_reader(&mut network, 1, keep_all_reader(), 10);
    network.await_match((0, writer), (1, last));
    network.run(50);
    write_numbers(&mut network, writer, 0..60, 20);
    await_acknowledgment(&mut network, writer);
    assert_eq!(network.nodes[0].counters().withheld_samples, 50 + 54, "both have a place");
    network.nodes[1].delete_reader(network.now, last).expect("the reader exists");
    network.run(100);
    network.nodes[1].set_content_filter(network.now, lasting, None).expect("it exists");
    network.run(100);
    write_numbers(&mut network, writer, 60..70, 20);
    await_acknowledgment(&mut network, writer);
    assert_eq!(network.nodes[0].counters().withheld_samples, 50 + 54, "no reader has a filter");
    let all: Vec<u32> = (0..60).step_by(6).chain(60..70).collect();
    assert_eq!(numbers(&mut network, lasting), all);
}

/// Factory of filters that reject everything after a thousand steps, or a million if their
/// parameter is a multiple of 1,000.
#[derive(Debug)]
struct Costly;

struct CostlyFilter(u64);

impl ContentFilter for CostlyFilter {
    fn passes(&mut self, _: &[u8]) -> bool {
        false
    }

    fn passes_within(&mut self, _: &[u8], steps: &mut u64) -> Option<bool> {
        *steps = steps.checked_sub(self.0)?;
        Some(false)
    }
}

impl FilterFactory for Costly {
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>> {
        let number: u64 = property.expression_parameters[0].parse().expect("a number");
        Some(Box::new(CostlyFilter(if number.is_multiple_of(1_000) { 1_000_000 } else { 1_000 })))
    }
}

#[test]
fn filters_beyond_the_budget_of_a_write_are_left_to_their_readers() {
    let mut network = Network::new(5, 612);
    let spec = WriterSpec { filters: Some(std::sync::Arc::new(Costly)), ..writer_spec("T", false, keep_all_writer()) };
    let writer = network.writer(0, spec);
    let mut readers = Vec::new();
    for (node, number) in [(1, 1_000), (2, 7), (3, 2_000), (4, 11)] {
        let reader = filtered_reader(&mut network, node, keep_all_reader(), number);
        network.await_match((0, writer), (node, reader));
        readers.push((node, number, reader));
    }
    network.run(500);
    network.nodes[0].take_work();
    for number in 1..=2_000 {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
        let work = network.nodes[0].take_work();
        assert!(work.steps_of_one_max <= network.nodes[0].steps_per_unit_max(), "{work:?}");
        network.run(1);
    }
    assert_eq!(network.nodes[0].counters().dropped_filters, 2, "the costly ones, and no other");
    for (node, number, reader) in readers {
        let got = network.take_all(node, reader).len();
        // The filters reject all samples at the writer; readers whose filter was dropped filter for
        // themselves.
        assert_eq!(got > 0, number >= 1_000, "reader of multiples of {number}: {got}");
    }
}
