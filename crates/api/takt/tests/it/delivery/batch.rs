//! Batch reads and writes: each sample behaves as with `write` and `take`.

use std::ops::Range;
use std::time::Instant;

use crate::support::*;
use takt::qos::*;
use takt::*;

fn shapes(numbers: Range<i32>) -> Vec<Shape> {
    numbers.map(|x| Shape::new(["RED", "GREEN", "BLUE"][x as usize % 3], x)).collect()
}

fn data<T: TypeSupport + Clone>(samples: &[Sample<T>]) -> Vec<T> {
    samples.iter().filter_map(|sample| sample.data.clone()).collect()
}

fn slots<T: TypeSupport>(count: usize) -> Vec<Sample<T>> {
    (0..count).map(|_| Sample::default()).collect()
}

fn small_history(max_blocking_time: takt::Duration) -> DataWriterQos {
    let resource_limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let reliability = Reliability { max_blocking_time, ..Reliability::RELIABLE };
    DataWriterQos { reliability, resource_limits, ..reliable_writer(History::KeepAll) }
}

#[test]
fn batch_arrives_in_order_and_shares_datagrams() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let sent = shapes(0..700);
        let before = pair.publisher.diagnostics().counters().expect("open").datagrams_sent;
        assert_eq!(pair.writer.write_batch(&sent).expect("room"), 700, "{runtime:?}");
        let datagrams = pair.publisher.diagnostics().counters().expect("open").datagrams_sent - before;
        assert!(datagrams < 100, "{runtime:?}: {datagrams} datagrams for 700 samples");
        let samples = pair.take(700);
        assert_eq!(data(&samples), sent, "{runtime:?}");
        let stamps = samples.windows(2).filter(|two| two[0].info.source_timestamp != two[1].info.source_timestamp);
        assert_eq!(stamps.count(), 2, "{runtime:?}: three runs, a time stamp each");
    }
}

#[test]
fn batch_accepts_empty_input_and_any_iterator() {
    let pair =
        Pair::<Shape>::new(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    assert_eq!(pair.writer.write_batch::<Shape>([]).expect("nothing to do"), 0);
    assert_eq!(pair.writer.write_batch((0..3).map(|x| Shape::new("RED", x))).expect("room"), 3);
    assert_eq!(pair.writer.write_batch(shapes(3..9).iter().filter(|shape| shape.x % 2 == 1)).expect("room"), 3);
    let numbers: Vec<_> = data(&pair.take(6)).iter().map(|shape| shape.x).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 5, 7]);
}

#[test]
fn keep_last_batch_never_displaces_unsent_samples() {
    for (runtime, depth) in [(Runtime::Inline, 1), (Runtime::Shared, 1), (Runtime::Inline, 5)] {
        let writer = reliable_writer(History::KeepLast(depth));
        let pair = Pair::<Shape>::new(runtime, writer, reliable_reader(History::KeepAll));
        let sent = shapes(0..60);
        assert_eq!(pair.writer.write_batch(&sent).expect("room"), 60);
        assert_eq!(data(&pair.take(60)), sent, "{runtime:?}, depth {depth}");
    }
}

#[test]
fn best_effort_batch_longer_than_the_history_is_sent_completely() {
    let reliability = Reliability::BEST_EFFORT;
    let writer = DataWriterQos { reliability, ..small_history(takt::Duration::ZERO) };
    let reader = DataReaderQos { reliability, ..reliable_reader(History::KeepAll) };
    let pair = Pair::<Shape>::new(Runtime::Inline, writer, reader);
    assert_eq!(pair.writer.write_batch(shapes(0..30)).expect("sending frees room"), 30);
    assert_eq!(data(&pair.take(30)), shapes(0..30));
}

#[test]
fn batch_timeout_reports_the_number_of_samples_written() {
    for runtime in RUNTIMES {
        let domain = domain();
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        // Inline, so that nothing is acknowledged until it is driven.
        let subscriber = on_loopback(domain, Runtime::Inline).build().expect("participant");
        let writer = small_history(takt::Duration::from_millis(20));
        let pair = Pair::<Shape>::between(publisher, subscriber, writer, reliable_reader(History::KeepAll));
        let stopped = pair.writer.write_batch(shapes(0..9)).expect_err("the history holds four");
        assert_eq!(stopped.written, 4, "{runtime:?}");
        assert!(matches!(stopped.error, Error::Timeout { .. }), "{runtime:?}: {stopped}");
        assert_eq!(data(&pair.take(4)), shapes(0..4), "{runtime:?}");
        pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
        assert_eq!(pair.writer.write_batch(shapes(4..8)).expect("room again"), 4);
        assert_eq!(data(&pair.take(4)), shapes(4..8), "{runtime:?}");
    }
}

#[test]
fn batch_blocks_repeatedly_until_readers_acknowledge() {
    let writer = small_history(takt::Duration::from_secs(60));
    let pair = Pair::<Shape>::new(Runtime::Shared, writer, reliable_reader(History::KeepAll));
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| pair.writer.write_batch(shapes(0..300)));
        assert_eq!(data(&pair.take(300)), shapes(0..300));
        assert_eq!(writes.join().expect("no panic").expect("room in time"), 300);
    });
}

#[test]
fn minimum_separation_applies_within_a_batch() {
    let mut qos = reliable_writer(History::KeepAll);
    let contract = Contract {
        minimum_separation: Some(takt::Duration::from_secs(3_600)),
        early_write: EarlyWrite::Refuse,
        ..Contract::default()
    };
    contract.put_into_writer(&mut qos);
    let pair = Pair::<Shape>::new(Runtime::Inline, qos, reliable_reader(History::KeepAll));
    let stopped = pair.writer.write_batch(shapes(0..3)).expect_err("too early");
    assert_eq!(stopped.written, 1);
    assert!(matches!(stopped.error, Error::PreconditionNotMet { .. }), "{stopped}");
    assert_eq!(data(&pair.take(1)), shapes(0..1));

    let separation = takt::Duration::from_millis(5);
    let mut qos = reliable_writer(History::KeepAll);
    Contract { minimum_separation: Some(separation), ..Contract::default() }.put_into_writer(&mut qos);
    let pair = Pair::<Shape>::new(Runtime::Inline, qos, reliable_reader(History::KeepAll));
    let begun = Instant::now();
    assert_eq!(pair.writer.write_batch(shapes(0..4)).expect("waits for its time"), 4);
    // Timestamps are unsuitable: they use another clock, and preemption may occur between the two
    // readings.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(15), "{:?}", begun.elapsed());
    assert_eq!(data(&pair.take(4)), shapes(0..4));
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Word {
    #[dds(bound = 4)]
    text: String,
}

#[test]
fn unserializable_sample_ends_a_batch_after_earlier_samples_are_sent() {
    let pair = Pair::<Word>::new(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    let words = ["one", "two", "three", "four"].map(|text| Word { text: text.to_owned() });
    let stopped = pair.writer.write_batch(&words).expect_err("one word is too long");
    assert_eq!(stopped.written, 2);
    assert!(matches!(stopped.error, Error::Encode(_)), "{stopped}");
    assert_eq!(data(&pair.take(2)), words[..2]);
    let error: Error = stopped.into();
    assert!(matches!(error, Error::Encode(_)), "`?` passes the reason on: {error}");
}

#[test]
fn iterator_of_a_batch_must_not_write() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let mut inner = Vec::new();
        let samples = shapes(0..2).into_iter().inspect(|shape| inner.push(pair.writer.write(shape)));
        assert_eq!(pair.writer.write_batch(samples).expect("room"), 2);
        assert!(inner.iter().all(|result| matches!(result, Err(Error::IllegalOperation { .. }))), "{inner:?}");
        assert_eq!(data(&pair.take(2)), shapes(0..2), "{runtime:?}");
    }
}

#[test]
fn batch_belongs_to_the_open_coherent_set() {
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent_access: true, ordered_access: false };
    let domain = domain();
    let [left, right] = [(); 2].map(|()| on_loopback(domain, Runtime::Inline).build().expect("participant"));
    let publisher = left.create_publisher(PublisherQos { presentation, ..PublisherQos::default() }).expect("open");
    let topic = left.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let writer = publisher.create_datawriter(&topic, reliable_writer(History::KeepAll)).expect("writer");
    let subscriber = right.create_subscriber(SubscriberQos { presentation, ..SubscriberQos::default() }).expect("open");
    let topic = right.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let reader = subscriber.create_datareader(&topic, reliable_reader(History::KeepAll)).expect("reader");
    let wait = |what: &str, condition: &mut dyn FnMut() -> bool| wait_until(&[&left, &right], what, condition);
    wait("match", &mut || {
        writer.matched_subscriptions().expect("open").len() + reader.matched_publications().expect("open").len() == 2
    });

    publisher.begin_coherent_changes().expect("open");
    assert_eq!(writer.write_batch(shapes(0..40)).expect("room"), 40);
    wait("acknowledgment", &mut || writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    let mut slots = slots(100);
    assert!(reader.take_batch(&mut slots).expect("open").is_empty(), "the set is not complete");
    publisher.end_coherent_changes().expect("it was begun");
    let mut taken = Vec::new();
    wait("the set", &mut || {
        taken.extend(data(reader.take_batch(&mut slots).expect("open")));
        !taken.is_empty()
    });
    assert_eq!(taken, shapes(0..40));
}

#[test]
fn content_filter_applies_to_each_sample_of_a_batch() {
    let domain = domain();
    let [publisher, subscriber] = [(); 2].map(|()| on_loopback(domain, Runtime::Inline).build().expect("participant"));
    let writer = create_writer(&publisher, "Topic", reliable_writer(History::KeepAll));
    let topic = subscriber.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let topic = subscriber.create_contentfilteredtopic("Filtered", &topic, "x > 20", &[]).expect("filter");
    let reader = subscriber
        .create_subscriber(SubscriberQos::default())
        .and_then(|subscriber| subscriber.create_datareader(&topic, reliable_reader(History::KeepAll)))
        .expect("reader");
    let pair = Pair { publisher, subscriber, writer, reader };
    pair.wait_until("match", || {
        !pair.writer.matched_subscriptions().expect("open").is_empty()
            && !pair.reader.matched_publications().expect("open").is_empty()
    });
    assert_eq!(pair.writer.write_batch(shapes(0..40)).expect("room"), 40);
    pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    assert_eq!(data(&pair.reader.take(usize::MAX).expect("open")), shapes(21..40));
}

#[test]
fn take_batch_fills_slots_with_data_and_instance_changes() {
    let pair =
        Pair::<Shape>::new(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    pair.writer.write_batch(shapes(0..6)).expect("room");
    pair.writer.dispose(&Shape::new("RED", 0)).expect("room");
    pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());

    let mut slots = slots(10);
    let read = pair.reader.read_batch(&mut slots[..4]).expect("open");
    assert_eq!(data(read), shapes(0..4), "at most the number of slots");
    assert_eq!(read[0].info.sample_rank, 1, "one more red one follows");
    assert!(read.iter().all(|sample| sample.info.sample_state == SampleState::NotRead));
    let taken = pair.reader.take_batch(&mut slots).expect("open");
    assert_eq!(taken.len(), 7, "what was read is still there");
    assert_eq!(data(taken), shapes(0..6));
    assert_eq!(taken[0].info.sample_state, SampleState::Read);
    let disposal = &taken[6];
    assert!(!disposal.info.valid_data && disposal.data.is_none(), "{disposal:?}");
    assert_eq!(disposal.key.as_ref().map(|key| key.color.as_str()), Some("RED"));
    assert_eq!(disposal.info.instance_state, InstanceState::NotAliveDisposed);
    assert!(pair.reader.take_batch(&mut slots).expect("open").is_empty());

    pair.reader.close().expect("open");
    assert!(matches!(pair.reader.take_batch(&mut slots), Err(Error::AlreadyDeleted)));
}

#[test]
fn take_each_passes_samples_one_by_one() {
    let pair =
        Pair::<Shape>::new(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    pair.writer.write_batch(shapes(0..6)).expect("room");
    pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    let (mut shape, mut seen) = (Shape::default(), Vec::new());
    let read = pair.reader.read_each(2, &mut shape, |shape, info| seen.push((shape.clone(), info.sample_state)));
    assert_eq!(read.expect("open"), 2);
    let taken = pair.reader.take_each(usize::MAX, &mut shape, |shape, info| {
        assert!(matches!(pair.reader.take(1), Err(Error::IllegalOperation { .. })), "inside a call");
        seen.push((shape.clone(), info.sample_state));
    });
    assert_eq!(taken.expect("open"), 6);
    let states: Vec<_> = seen.iter().map(|(_, state)| *state).collect();
    assert_eq!(states[..4], [SampleState::NotRead, SampleState::NotRead, SampleState::Read, SampleState::Read]);
    let shapes_seen: Vec<_> = seen.into_iter().map(|(shape, _)| shape).collect();
    assert_eq!(shapes_seen, [shapes(0..2), shapes(0..6)].concat());
    assert_eq!(pair.reader.take_each(1, &mut shape, |_, _| ()).expect("open"), 0);
    let mut samples = Vec::new();
    pair.writer.write_batch(shapes(6..8)).expect("room");
    pair.wait_until("samples", || {
        pair.reader.read_into(&mut samples, 9).expect("open");
        samples.len() == 2
    });
    assert_eq!(data(&samples), shapes(6..8));
}
