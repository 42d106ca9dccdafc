//! Samples that readers of the writer's process get as they are.

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

/// Writes a sample until the reader gets this very one. From then on none is serialised.
fn until_shared<T: TypeSupport + Clone + Sync + 'static>(pair: &Pair<T>, sample: &T) {
    pair.wait_until("a way within the process", || {
        let sample = Arc::new(sample.clone());
        pair.writer.write_shared(Arc::clone(&sample)).expect("room");
        take(pair).data.is_some_and(|data| Arc::ptr_eq(&data, &sample))
    });
}

#[test]
fn readers_get_the_very_sample() {
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
        let counters = pair.publisher.counters().expect("open");
        assert_eq!(counters.data_frags_sent, 0, "nothing of 100 KB was sent as bytes");
    }
}

#[test]
fn a_writer_and_a_reader_of_one_participant_share_samples() {
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
            assert!(is_shared || shared == 0, "{runtime:?}: once it is shared, it stays so");
            shared += u32::from(is_shared);
            shared == 10
        });
    }
}

/// Keys, new instances, disposal, and readers that want values of their own.
#[test]
fn shared_samples_are_samples() {
    for runtime in RUNTIMES {
        let pair = pair::<Shape>(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        until_shared(&pair, &Shape::new("RED", 0));
        let sample = Arc::new(Shape::new("A COLOUR THAT IS TOO LONG FOR A KEY HASH", 1));
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

/// Readers elsewhere get bytes: those that are matched when it is written, and those that come later.
#[test]
fn others_get_their_bytes() {
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

/// Without shared memory `write_shared` is a `write`.
#[test]
fn without_shared_memory_samples_are_serialised() {
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

/// A sample lives for as long as somebody has it: a history, a lane, the application.
#[test]
fn what_nobody_has_is_gone() {
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
        // On its way, or arrived, when both ends go.
        let watched: Vec<_> = (0..20).map(|number| Arc::new(Blob::new(number, 10))).collect();
        let (watched, samples): (Vec<_>, Vec<_>) =
            watched.into_iter().map(|sample| (Arc::downgrade(&sample), sample)).unzip();
        samples.into_iter().for_each(|sample| pair.writer.write_shared(sample).expect("room"));
        drop(pair);
        assert!(watched.iter().all(is_gone), "{runtime:?}");
    }
}

/// Samples that stay where they are do not fill the send window, however long they are.
#[test]
fn long_samples_leave_at_once() {
    let pair = pair::<Blob>(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    until_shared(&pair, &Blob::default());
    let sent = || pair.publisher.counters().expect("open").data_sent;
    let (before, sample) = (sent(), Arc::new(Blob::new(1, 1 << 20)));
    for _ in 0..20 {
        pair.writer.write_shared(Arc::clone(&sample)).expect("room");
    }
    assert_eq!(sent() - before, 20, "nobody has acknowledged any");
    for _ in 0..20 {
        assert!(take(&pair).data.is_some_and(|data| Arc::ptr_eq(&data, &sample)));
    }
}

/// A bound of the type holds, whoever reads.
#[test]
fn a_sample_that_cannot_be_encoded_is_refused() {
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
