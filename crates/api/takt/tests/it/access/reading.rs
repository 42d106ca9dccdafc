//! Read and take: which samples remain, and which ones selectors choose (DDS 1.4 §2.2.2.5.3).

use crate::support::*;
use std::sync::mpsc::channel;
use takt::qos::*;
use takt::*;
use takt_testkit::waiting::receive;

fn filled(runtime: Runtime) -> Pair<Shape> {
    let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    for x in 0..3 {
        pair.writer.write(&Shape::new("RED", x)).expect("room");
        pair.writer.write(&Shape::new("BLUE", x)).expect("room");
    }
    pair.wait_until("samples", || pair.reader.read(usize::MAX).expect("open").len() == 6);
    pair
}

fn xs(samples: &[Sample<Shape>]) -> Vec<i32> {
    samples.iter().filter_map(|sample| sample.data.as_ref()).map(|shape| shape.x).collect()
}

#[test]
fn read_leaves_samples_and_take_removes_them() {
    for runtime in RUNTIMES {
        let pair = filled(runtime);
        assert_eq!(pair.reader.read(2).expect("open").len(), 2);
        assert_eq!(xs(&pair.reader.take(2).expect("open")), [0, 0], "{runtime:?}");
        assert_eq!(xs(&pair.reader.read(usize::MAX).expect("open")), [1, 1, 2, 2]);
        assert_eq!(xs(&pair.reader.take(usize::MAX).expect("open")), [1, 1, 2, 2]);
        assert_eq!(pair.reader.take(usize::MAX).expect("open"), []);
    }
}

/// Runs `call` while a call of another reader of the participant holds the lock of its state.
fn while_locked(reader: &DataReader<Shape>, call: impl FnOnce()) {
    let ((entered, has_entered), (leave, may_leave)) = (channel(), channel());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let visited = reader.take_payloads(1, |_, _| {
                entered.send(()).expect("the test waits");
                receive("the end of the test's call", &may_leave);
            });
            assert_eq!(visited.expect("open"), 1);
        });
        receive("a payload", &has_entered);
        call();
        leave.send(()).expect("the visitor waits");
    });
}

/// A thread that polls would otherwise hold the lock most of the time, and the receiving thread
/// would wait for it with each datagram.
#[test]
fn take_of_an_empty_reader_waits_for_no_lock() {
    let pair = filled(Runtime::Shared);
    let empty = pair.subscriber.reader::<Shape>("Other").expect("a reader");
    let takes: [fn(&DataReader<Shape>) -> bool; 6] = [
        |reader| reader.take_next_sample(&mut Shape::default()).expect("open").is_none(),
        |reader| reader.take(9).expect("open").is_empty(),
        |reader| reader.take_each(9, &mut Shape::default(), |_, _| ()).expect("open") == 0,
        |reader| reader.take_payloads(9, |_, _| ()).expect("open") == 0,
        |reader| reader.take_loaned().expect("open").is_none(),
        |reader| reader.take_shared().expect("open").is_none(),
    ];
    for take in takes {
        assert!(take(&empty));
        while_locked(&pair.reader, || assert!(take(&empty)));
    }
}

/// The call of a listener resets DATA_AVAILABLE, and a read takes nothing. Neither hides a sample.
#[test]
fn sample_after_an_empty_take_is_found() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let (called, calls) = channel();
        pair.reader.on_data_available(move |_| called.send(()).expect("the test waits")).expect("open");
        for x in 0..4 {
            assert_eq!(pair.reader.take(9).expect("open"), []);
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            pair.wait_until("the listener's call", || calls.try_recv().is_ok());
            if x % 2 == 1 {
                assert_eq!(pair.reader.read(9).expect("open").len(), 1, "{runtime:?}");
            }
            assert_eq!(xs(&pair.reader.take(9).expect("open")), [x], "{runtime:?}");
        }
        pair.reader.close().expect("open");
        assert!(matches!(pair.reader.take(1), Err(Error::AlreadyDeleted)), "{runtime:?}");
    }
}

#[test]
fn selectors_choose_by_state_and_instance() {
    for runtime in RUNTIMES {
        let pair = filled(runtime);
        assert_eq!(pair.reader.select().not_read().read().expect("open"), [], "all were read");
        pair.writer.write(&Shape::new("BLUE", 3)).expect("room");
        let mut unread = Vec::new();
        pair.wait_until("news", || {
            unread = pair.reader.select().not_read().read().expect("open");
            !unread.is_empty()
        });
        assert_eq!(xs(&unread), [3], "{runtime:?}");
        let blue = unread[0].info.instance_handle;
        assert_eq!(xs(&pair.reader.select().instance(blue).max(3).take().expect("open")), [0, 1, 2]);
        assert_eq!(pair.reader.select().alive().read().expect("open").len(), 4);
        let disposed = |reader: &DataReader<Shape>| {
            let states = InstanceStates::NOT_ALIVE_DISPOSED;
            reader.select().states(SampleStates::ANY, ViewStates::ANY, states).read()
        };
        assert_eq!(disposed(&pair.reader).expect("open"), []);
    }
}

#[test]
fn emptied_reader_finds_later_samples_disposals_and_its_end() {
    for runtime in RUNTIMES {
        let pair = filled(runtime);
        let mut shape = Shape::default();
        let mut next = || {
            let mut found = None;
            pair.wait_until("an entry", || {
                found = pair.reader.take_next_sample(&mut shape).expect("open");
                found.is_some()
            });
            (found.expect("it was waited for"), shape.x)
        };
        for _ in 0..6 {
            next();
        }
        for x in 7..10 {
            assert_eq!(pair.reader.take_next_sample(&mut Shape::default()).expect("open"), None, "{runtime:?}");
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            assert_eq!(next().1, x, "{runtime:?}");
        }
        assert_eq!(pair.reader.take_next_sample(&mut Shape::default()).expect("open"), None);
        pair.writer.dispose(&Shape::new("RED", 0)).expect("open");
        assert_eq!(next().0.instance_state, InstanceState::NotAliveDisposed, "{runtime:?}");
        assert_eq!(pair.reader.take_next_sample(&mut Shape::default()).expect("open"), None);
        pair.reader.close().expect("open");
        let closed = pair.reader.take_next_sample(&mut Shape::default());
        assert!(matches!(closed, Err(Error::AlreadyDeleted)), "{runtime:?}: {closed:?}");
    }
}

#[test]
fn next_sample_operations_return_samples_one_by_one() {
    for runtime in RUNTIMES {
        let pair = filled(runtime);
        let mut shape = Shape::default();
        assert_eq!(pair.reader.read_next_sample(&mut shape).expect("open"), None, "all were read");
        for x in [0, 0, 1, 1, 2, 2] {
            let info = pair.reader.take_next_sample(&mut shape).expect("open").expect("a sample");
            assert!(info.valid_data && shape.x == x, "{runtime:?}: {shape:?}");
        }
        assert_eq!(pair.reader.take_next_sample(&mut shape).expect("open"), None);
    }
}

#[test]
fn take_into_reuses_its_elements() {
    for runtime in RUNTIMES {
        let pair = filled(runtime);
        let mut batch = Vec::new();
        pair.reader.take_into(&mut batch, 4).expect("open");
        assert_eq!(xs(&batch), [0, 0, 1, 1]);
        let address = batch[0].data.as_ref().map(|shape| shape.color.as_ptr());
        pair.reader.take_into(&mut batch, 4).expect("open");
        assert_eq!(xs(&batch), [2, 2], "{runtime:?}");
        assert_eq!(batch[0].data.as_ref().map(|shape| shape.color.as_ptr()), address);
        pair.reader.take_into(&mut batch, 4).expect("open");
        assert_eq!(batch, []);
    }
}

#[test]
fn keep_last_keeps_the_last_sample_of_each_instance() {
    for runtime in RUNTIMES {
        let reader = reliable_reader(History::KeepLast(1));
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reader);
        for x in 0..5 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            pair.writer.write(&Shape::new("BLUE", x)).expect("room");
        }
        pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
        assert_eq!(xs(&pair.reader.take(usize::MAX).expect("open")), [4, 4], "{runtime:?}");
    }
}

#[test]
fn full_reader_rejects_samples_and_receives_them_when_space_is_free() {
    for runtime in RUNTIMES {
        let resource_limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
        let reader = DataReaderQos { resource_limits, ..reliable_reader(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reader);
        for x in 0..6 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
        pair.wait_until("rejection", || pair.reader.sample_rejected_status().expect("open").total_count > 0);
        assert_eq!(xs(&pair.take(6)), [0, 1, 2, 3, 4, 5], "{runtime:?}: rejected, not lost");
        assert_eq!(pair.reader.sample_lost_status().expect("open").total_count, 0);
    }
}

#[test]
fn source_timestamp_is_the_writers_or_the_callers() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        let chosen = Timestamp::from_nanos(1_000_000_007);
        pair.writer.write_w_timestamp(&Shape::new("RED", 2), chosen).expect("room");
        let samples = pair.take(2);
        let age = i128::from(samples[0].info.source_timestamp.to_nanos()) - before.as_nanos() as i128;
        assert!((-1_000_000_000..60_000_000_000).contains(&age), "{runtime:?}: {age} ns");
        assert_eq!(samples[1].info.source_timestamp, chosen);
    }
}

#[test]
fn samples_of_one_call_report_the_view_state_before_the_call() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let arrived = || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok();
        let views = |samples: &[Sample<Shape>]| samples.iter().map(|sample| sample.info.view_state).collect::<Vec<_>>();
        for x in 0..3 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
        pair.wait_until("arrival", arrived);
        assert_eq!(
            views(
                &pair
                    .reader
                    .select()
                    .states(SampleStates::ANY, ViewStates::NEW, InstanceStates::ANY)
                    .max(8)
                    .read()
                    .expect("open")
            ),
            [ViewState::New; 3],
            "{runtime:?}"
        );
        assert_eq!(views(&pair.reader.read(8).expect("open")), [ViewState::NotNew; 3]);
        pair.writer.dispose(&Shape::new("RED", 0)).expect("room");
        for x in 3..5 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
        pair.wait_until("arrival", arrived);
        let samples = pair.reader.take(8).expect("open");
        assert_eq!(views(&samples), [ViewState::New; 6], "born again");
        let generations: Vec<_> = samples.iter().map(|sample| sample.info.disposed_generation_count).collect();
        assert_eq!(generations, [0, 0, 0, 0, 1, 1]);
        assert!(samples.iter().all(|sample| sample.info.instance_state == InstanceState::Alive), "as it is now");
    }
}
