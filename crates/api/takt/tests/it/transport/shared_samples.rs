//! In-process samples: readers in the writer's process receive the writer's object.

use std::sync::{Arc, Weak};

use crate::support::*;
use takt::qos::*;
use takt::*;

fn on_shared_memory(domain: u32, runtime: Runtime) -> DomainParticipant {
    on_loopback(domain, runtime).shared_memory(true).build().expect("participant")
}

fn pair<T: TypeSupport>(runtime: Runtime, writer: DataWriterQos, reader: DataReaderQos) -> Pair<T> {
    let domain = domain();
    Pair::between(on_shared_memory(domain, runtime), on_shared_memory(domain, runtime), writer, reader)
}

fn take<T: TypeSupport + Sync>(pair: &Pair<T>) -> SharedSample<T> {
    let mut found = None;
    pair.wait_until("a sample", || {
        found = pair.reader.take_shared().expect("open");
        found.is_some()
    });
    found.expect("there is one")
}

/// Writes a sample repeatedly until the reader receives the same object. From then on, samples are
/// not serialized.
fn until_shared<T: TypeSupport + Clone + Sync + 'static>(pair: &Pair<T>, sample: &T) {
    pair.wait_until("a path within the process", || {
        let sample = Arc::new(sample.clone());
        pair.writer.write_shared(Arc::clone(&sample)).expect("room");
        take(pair).data.is_some_and(|data| Arc::ptr_eq(&data, &sample))
    });
}

#[test]
fn readers_receive_the_same_object() {
    for runtime in RUNTIMES {
        let pair = pair::<Blob>(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        until_shared(&pair, &Blob::default());
        let samples: Vec<_> = (0..100).map(|number| Arc::new(Blob::new(number, 100_000))).collect();
        for sample in &samples {
            pair.writer.write_shared(Arc::clone(sample)).expect("room");
        }
        for sample in &samples {
            let taken = take(&pair);
            assert!(taken.data.is_some_and(|data| Arc::ptr_eq(&data, sample)), "{runtime:?}");
            assert!(taken.info.valid_data && taken.info.publication == pair.writer.guid());
        }
        let counters = pair.publisher.diagnostics().counters().expect("open");
        assert_eq!(counters.data_frags_sent, 0, "nothing of 100 KB was sent as bytes");
    }
}

#[test]
fn writer_and_reader_of_one_participant_share_samples() {
    for runtime in RUNTIMES {
        let participant = on_shared_memory(domain(), runtime);
        let writer = create_writer::<Blob>(&participant, "Topic", reliable_writer(History::KeepAll));
        let reader = create_reader::<Blob>(&participant, "Topic", reliable_reader(History::KeepAll));
        let mut shared = 0;
        wait_until(&[&participant], "shared samples", || {
            let sample = Arc::new(Blob::new(shared, 10));
            writer.write_shared(Arc::clone(&sample)).expect("room");
            let mut taken = None;
            wait_until(&[&participant], "the sample", || {
                taken = reader.take_shared().expect("open");
                taken.is_some()
            });
            let data = taken.and_then(|taken| taken.data).expect("data");
            assert_eq!(data, sample, "{runtime:?}");
            let is_shared = Arc::ptr_eq(&data, &sample);
            assert!(is_shared || shared == 0, "{runtime:?}: a shared sample stays shared");
            shared += u32::from(is_shared);
            shared == 10
        });
    }
}

/// Keys, new instances, dispose, and readers that decode into values of their own.
#[test]
fn shared_samples_support_keys_dispose_and_decoding() {
    for runtime in RUNTIMES {
        let pair = pair::<Shape>(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        until_shared(&pair, &Shape::new("RED", 0));
        let sample = Arc::new(Shape::new("A COLOR THAT IS TOO LONG FOR A KEY HASH", 1));
        pair.writer.write_shared(Arc::clone(&sample)).expect("room");
        let taken = take(&pair);
        assert!(taken.data.is_some_and(|data| Arc::ptr_eq(&data, &sample)), "{runtime:?}");
        let instance = taken.info.instance_handle;
        let mut key = Shape::default();
        assert!(pair.reader.key_value(&mut key, instance).expect("open") && key.color == sample.color);
        pair.writer.write_shared(Arc::new(Shape::new("RED", 2))).expect("room");
        assert_eq!(pair.take(1)[0].data, Some(Shape::new("RED", 2)), "{runtime:?}: decoded as any other");
        pair.writer.dispose(&sample).expect("room");
        let gone = take(&pair);
        assert!(gone.data.is_none() && gone.info.instance_state == InstanceState::NotAliveDisposed);
        assert_eq!(gone.info.instance_handle, instance);
    }
}

/// Readers in other processes receive serialized samples, both those matched at the time of writing
/// and late joiners.
#[test]
fn readers_in_other_processes_receive_serialized_samples() {
    for runtime in RUNTIMES {
        let durability = Durability::TransientLocal;
        let writer = DataWriterQos { durability, ..reliable_writer(History::KeepAll) };
        let reader = DataReaderQos { durability, ..reliable_reader(History::KeepAll) };
        let pair = pair::<Blob>(runtime, writer, reader.clone());
        until_shared(&pair, &Blob::default());
        let sample = Arc::new(Blob::new(7, 200_000));
        pair.writer.write_shared(Arc::clone(&sample)).expect("room");
        assert!(take(&pair).data.is_some_and(|data| Arc::ptr_eq(&data, &sample)), "{runtime:?}");
        let domain = pair.publisher.domain_id();
        let late = on_loopback(domain, runtime).shared_memory(false).build().expect("participant");
        let by_network = create_reader::<Blob>(&late, "Topic", reader);
        let participants = [&pair.publisher, &pair.subscriber, &late];
        let mut last = None;
        wait_until(&participants, "history", || {
            let taken = by_network.take_shared().expect("open");
            last = taken.and_then(|taken| taken.data).or(last.take());
            last.as_deref() == Some(&*sample)
        });
        let next = Arc::new(Blob::new(8, 10));
        pair.writer.write_shared(Arc::clone(&next)).expect("room");
        wait_until(&participants, "the next one", || {
            by_network.take_shared().expect("open").is_some_and(|taken| taken.data.as_ref() == Some(&next))
        });
        assert_eq!(take(&pair).data, Some(next));
    }
}

/// Without shared memory, `write_shared` acts like `write`.
#[test]
fn samples_are_serialized_without_shared_memory() {
    for runtime in RUNTIMES {
        let domain = domain();
        let participant = || on_loopback(domain, runtime).shared_memory(false).build().expect("participant");
        let (writer, reader) = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let pair = Pair::<Blob>::between(participant(), participant(), writer, reader);
        let sample = Arc::new(Blob::new(1, 1000));
        pair.writer.write_shared(Arc::clone(&sample)).expect("room");
        let taken = take(&pair).data.expect("data");
        assert!(taken == sample && !Arc::ptr_eq(&taken, &sample), "{runtime:?}");
    }
}

/// A sample exists as long as it is referenced by a history, a ring or the application.
#[test]
fn unreferenced_samples_are_freed() {
    for runtime in RUNTIMES {
        let pair = pair::<Blob>(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        until_shared(&pair, &Blob::default());
        let is_gone = |sample: &Weak<Blob>| sample.strong_count() == 0;
        let first = Arc::new(Blob::new(1, 10));
        let watched = Arc::downgrade(&first);
        pair.writer.write_shared(first).expect("room");
        let taken = take(&pair);
        pair.wait_until("the writer's history to let go", || watched.strong_count() == 1);
        drop(taken);
        assert!(is_gone(&watched), "{runtime:?}");
        // In transit or received when both participants are closed.
        let watched: Vec<_> = (0..20).map(|number| Arc::new(Blob::new(number, 10))).collect();
        let (watched, samples): (Vec<_>, Vec<_>) =
            watched.into_iter().map(|sample| (Arc::downgrade(&sample), sample)).unzip();
        samples.into_iter().for_each(|sample| pair.writer.write_shared(sample).expect("room"));
        drop(pair);
        assert!(watched.iter().all(is_gone), "{runtime:?}");
    }
}

/// Samples by reference do not fill the send window, regardless of their length.
#[test]
fn long_shared_samples_are_sent_at_once() {
    let pair = pair::<Blob>(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    until_shared(&pair, &Blob::default());
    let sent = || pair.publisher.diagnostics().counters().expect("open").data_sent;
    let (before, sample) = (sent(), Arc::new(Blob::new(1, 1 << 20)));
    for _ in 0..20 {
        pair.writer.write_shared(Arc::clone(&sample)).expect("room");
    }
    assert_eq!(sent() - before, 20, "no reader has acknowledged a sample");
    for _ in 0..20 {
        assert!(take(&pair).data.is_some_and(|data| Arc::ptr_eq(&data, &sample)));
    }
}

/// Bounds of the type are enforced although nothing is serialized.
#[test]
fn sample_exceeding_a_bound_is_rejected() {
    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(name = "Bounded")]
    struct Bounded {
        #[dds(bound = 3)]
        text: String,
    }
    let pair = pair::<Bounded>(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    until_shared(&pair, &Bounded::default());
    let written = pair.writer.write_shared(Arc::new(Bounded { text: "four".into() }));
    assert!(matches!(written, Err(Error::Encode(_))), "{written:?}");
}
