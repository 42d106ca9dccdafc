//! Policies that decide which samples an application receives, and when: LATENCY_BUDGET,
//! TIME_BASED_FILTER, LIFESPAN, DESTINATION_ORDER, READER_DATA_LIFECYCLE, WRITER_DATA_LIFECYCLE
//! (DDS 1.4 §2.2.3.8, §2.2.3.12, §2.2.3.16, §2.2.3.17, §2.2.3.21, §2.2.3.22).

use std::time::Instant;

use crate::support::*;
use takt::qos::*;
use takt::*;

const MILLIS_100: takt::Duration = takt::Duration::from_millis(100);

fn numbers(samples: Vec<Sample<Shape>>) -> Vec<i32> {
    samples.into_iter().filter_map(|sample| sample.data).map(|shape| shape.x).collect()
}

#[test]
fn sample_is_removed_when_its_lifespan_expires() {
    for runtime in RUNTIMES {
        let lifespan = Lifespan { duration: MILLIS_100 };
        let writer =
            DataWriterQos { lifespan, durability: Durability::TransientLocal, ..reliable_writer(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reliable_reader(History::KeepAll));
        // On a loaded machine a sample may expire before it is read.
        let write_until = |what: &str, number: i32, reader: &DataReader<Shape>| {
            let mut seen = Vec::new();
            pair.wait_until(what, || {
                pair.writer.write(&Shape::new("RED", number)).expect("room");
                seen.extend(numbers(reader.read(usize::MAX).expect("open")));
                !seen.is_empty()
            });
            seen
        };
        write_until("the first sample", 1, &pair.reader);
        pair.wait_until("the end of its life", || pair.reader.read(usize::MAX).expect("open").is_empty());
        assert_eq!(pair.reader.take(10).expect("open"), []);
        assert_eq!(pair.reader.sample_lost_status().expect("open").total_count, 0);
        let late = DataReaderQos { durability: Durability::TransientLocal, ..reliable_reader(History::KeepAll) };
        let late = create_reader::<Shape>(&pair.subscriber, "Topic", late);
        pair.wait_until("the late joiner", || late.matched_publications().expect("open").len() == 1);
        let seen = write_until("the last sample", 2, &late);
        assert!(!seen.contains(&1), "{runtime:?}: {seen:?}");
    }
}

#[test]
fn destination_order_by_source_timestamp_keeps_the_last_written_value() {
    for runtime in RUNTIMES {
        let destination_order = DestinationOrder::BySourceTimestamp;
        let writer = DataWriterQos { destination_order, ..reliable_writer(History::KeepAll) };
        let reader = DataReaderQos { destination_order, ..reliable_reader(History::KeepLast(1)) };
        let pair = Pair::<Shape>::new(runtime, writer.clone(), reader);
        let other = create_writer::<Shape>(&pair.publisher, "Topic", writer);
        pair.wait_until("the other writer", || {
            !other.matched_subscriptions().expect("open").is_empty()
                && pair.reader.matched_publications().expect("open").len() == 2
        });
        let at = |seconds| Timestamp { seconds, fraction: 0 };
        pair.writer.write_w_timestamp(&Shape::new("RED", 1), at(2_000)).expect("room");
        other.write_w_timestamp(&Shape::new("RED", 2), at(1_000)).expect("room");
        other.dispose_w_timestamp(&Shape::new("RED", 0), at(1_001)).expect("room");
        other.write_w_timestamp(&Shape::new("BLUE", 3), at(1_002)).expect("room");
        let taken = pair.take(2);
        assert_eq!(taken[0].info.instance_state, InstanceState::Alive, "{runtime:?}: it was disposed of earlier");
        assert_eq!(numbers(taken), [1, 3], "{runtime:?}");
        let refused = other.unregister_instance_w_timestamp(&Shape::new("RED", 0), at(1_001));
        assert!(matches!(refused, Err(Error::BadParameter { .. })), "{refused:?}");
        pair.writer.unregister_instance_w_timestamp(&Shape::new("RED", 0), at(3_000)).expect("room");
        let taken = pair.take(1);
        assert_eq!(taken[0].info.instance_state, InstanceState::NotAliveDisposed, "{runtime:?}");
        assert_eq!(taken[0].info.source_timestamp, at(3_000));
    }
}

#[test]
fn time_based_filter_delivers_first_and_last_sample_of_a_burst() {
    for runtime in RUNTIMES {
        let time_based_filter = TimeBasedFilter { minimum_separation: takt::Duration::from_millis(300) };
        let reader = DataReaderQos { time_based_filter, ..reliable_reader(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reader);
        for number in 0..1_000 {
            pair.writer.write(&Shape::new("RED", number)).expect("room");
        }
        let mut seen = Vec::new();
        pair.wait_until("the last one", || {
            seen.extend(pair.reader.take(usize::MAX).expect("open"));
            seen.last().and_then(|sample| sample.data.as_ref()).is_some_and(|shape| shape.x == 999)
        });
        for pair in seen.windows(2) {
            let between = pair[1].info.reception_timestamp.to_nanos() - pair[0].info.reception_timestamp.to_nanos();
            // Timestamps and separations use different clocks, which are read one after the other.
            assert!(between > 250_000_000, "{runtime:?}: {between} ns");
        }
        assert_eq!(numbers(seen)[0], 0);
    }
}

#[test]
fn time_based_filter_longer_than_the_deadline_is_rejected() {
    let participant = on_loopback(domain(), Runtime::Shared).build().expect("participant");
    let topic = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let time_based_filter = TimeBasedFilter { minimum_separation: takt::Duration::from_millis(101) };
    let qos =
        DataReaderQos { deadline: Deadline { period: MILLIS_100 }, time_based_filter, ..DataReaderQos::default() };
    let refused = subscriber.create_datareader(&topic, qos).map(|_| ());
    assert!(matches!(refused, Err(Error::InconsistentPolicy { .. })), "{refused:?}");
}

#[test]
fn samples_of_an_ended_instance_are_purged_after_the_autopurge_delay() {
    for autodispose in [false, true] {
        let reader_data_lifecycle = ReaderDataLifecycle {
            autopurge_nowriter_samples_delay: MILLIS_100,
            autopurge_disposed_samples_delay: MILLIS_100,
        };
        let reader = DataReaderQos { reader_data_lifecycle, ..reliable_reader(History::KeepAll) };
        let writer_data_lifecycle = WriterDataLifecycle { autodispose_unregistered_instances: autodispose };
        let writer = DataWriterQos { writer_data_lifecycle, ..reliable_writer(History::KeepAll) };
        let pair = Pair::<Shape>::new(Runtime::Shared, writer, reader);
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.writer.write(&Shape::new("BLUE", 2)).expect("room");
        pair.wait_until("both", || pair.reader.read(10).expect("open").len() == 2);
        pair.writer.unregister_instance(&Shape::new("RED", 0)).expect("room");
        pair.wait_until("the end", || pair.reader.read(10).expect("open").len() == 1);
        assert_eq!(numbers(pair.reader.take(10).expect("open")), [2]);
    }
}

#[test]
fn unregister_disposes_if_autodispose_is_set() {
    for (autodispose, state) in [(true, InstanceState::NotAliveDisposed), (false, InstanceState::NotAliveNoWriters)] {
        let writer_data_lifecycle = WriterDataLifecycle { autodispose_unregistered_instances: autodispose };
        let writer = DataWriterQos { writer_data_lifecycle, ..reliable_writer(History::KeepAll) };
        let pair = Pair::<Shape>::new(Runtime::Shared, writer, reliable_reader(History::KeepAll));
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.writer.unregister_instance(&Shape::new("RED", 0)).expect("room");
        assert_eq!(pair.take(2)[1].info.instance_state, state);
    }
}

#[test]
fn samples_are_held_for_the_latency_budget_unless_flushed() {
    for runtime in RUNTIMES {
        let budget = |millis| LatencyBudget { duration: takt::Duration::from_millis(millis) };
        let writer = DataWriterQos { latency_budget: budget(500), ..reliable_writer(History::KeepAll) };
        let reader = DataReaderQos { latency_budget: budget(500), ..reliable_reader(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reader);
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        let info = pair.take(1)[0].info;
        let waited = info.reception_timestamp.to_nanos() - info.source_timestamp.to_nanos();
        assert!(waited > 400_000_000, "{runtime:?}: {waited} ns");
        pair.writer.write(&Shape::new("RED", 2)).expect("room");
        pair.writer.flush().expect("open");
        assert_eq!(numbers(pair.take(1)), [2]);
        pair.writer.write(&Shape::new("RED", 3)).expect("room");
        let sent = || pair.publisher.diagnostics().counters().expect("open").data_sent;
        let before = sent();
        pair.writer.close().expect("open");
        assert!(sent() >= before + 2, "{runtime:?}: waiting samples leave before the writer's departure is announced");
    }
}

#[test]
fn writer_respects_the_minimum_separation_of_its_contract() {
    for runtime in RUNTIMES {
        let contract =
            Contract { minimum_separation: Some(MILLIS_100), max_sample_bytes: Some(64), ..Contract::default() };
        let mut qos = reliable_writer(History::KeepAll);
        contract.put_into_writer(&mut qos);
        let mut wanted = reliable_reader(History::KeepAll);
        Contract { max_sample_bytes: Some(63), ..Contract::default() }.put_into_reader(&mut wanted);
        let pair = Pair::<Shape>::new(runtime, qos, wanted);
        assert_eq!(pair.publisher.diagnostics().contradictions().expect("open").len(), 1);
        assert_eq!(pair.subscriber.diagnostics().contradictions().expect("open").len(), 1);
        let begun = Instant::now();
        for (number, separations) in (1..=3).zip(0..) {
            pair.writer.write(&Shape::new("RED", number)).expect("it waits for its time");
            // Timestamps are unsuitable: they use another clock, and preemption may occur between
            // the two readings.
            let minimum = separations * std::time::Duration::from_millis(100);
            assert!(begun.elapsed() >= minimum, "{runtime:?}: {:?} after {separations} separations", begun.elapsed());
        }
        assert_eq!(numbers(pair.take(3)), [1, 2, 3]);
        let long = pair.writer.write(&Shape::new(&"RED".repeat(30), 4));
        assert!(matches!(long, Err(Error::OutOfResources { .. })), "{runtime:?}: {long:?}");
    }
}
