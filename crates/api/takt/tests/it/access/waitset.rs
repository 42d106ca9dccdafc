//! Wait sets: events that end a wait, under both runtimes and all idle modes.

use crate::support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::waiting::{OnDrop, join, until_some};

const LONG: takt::Duration = takt::Duration::from_secs(60);
const SHORT: takt::Duration = takt::Duration::from_millis(5);

/// Creates a pair whose publisher has its own thread, so that only the subscriber must be driven.
fn pair(runtime: Runtime, idle: Idle) -> Pair<Shape> {
    let domain = domain();
    let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let subscriber = on_loopback(domain, runtime).idle(idle).build().expect("participant");
    Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

/// Spins for less than the waits of these tests.
const A_WHILE: Idle = Idle::SpinThenBlock(std::time::Duration::from_millis(1));

const WAYS: [(Runtime, Idle); 6] = [
    (Runtime::Inline, Idle::Block),
    (Runtime::Inline, Idle::Spin),
    (Runtime::Inline, A_WHILE),
    (Runtime::Shared, Idle::Block),
    (Runtime::Shared, Idle::Spin),
    (Runtime::Shared, A_WHILE),
];

#[test]
fn data_end_a_wait_and_taking_resets_the_condition() {
    for (runtime, idle) in WAYS {
        let pair = pair(runtime, idle);
        let condition = pair.reader.status_condition();
        condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(&condition).expect("attached");
        assert!(matches!(waitset.wait(SHORT), Err(Error::Timeout { .. })), "{runtime:?} {idle:?}");
        for x in 0..20 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            let active = waitset.wait(LONG).expect("data");
            assert_eq!(active, [Condition::from(&condition)], "{runtime:?} {idle:?}");
            assert_eq!(pair.reader.take(2).expect("open")[0].data, Some(Shape::new("RED", x)));
            assert!(!condition.trigger_value(), "take has reset it");
        }
    }
}

#[test]
fn sample_admitted_when_another_is_taken_ends_a_wait() {
    for (runtime, idle) in WAYS {
        let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
        let domain = domain();
        let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).idle(idle).build().expect("participant");
        let qos = DataReaderQos { resource_limits: limits, ..reliable_reader(History::KeepAll) };
        let pair = Pair::<Shape>::between(publisher, subscriber, reliable_writer(History::KeepAll), qos);
        let condition = pair.reader.status_condition();
        condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(&condition).expect("attached");
        for x in 0..2 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
        pair.wait_until("no room", || pair.reader.status_changes().intersects(StatusMask::SAMPLE_REJECTED));
        assert_eq!(pair.reader.take(1).expect("open")[0].data, Some(Shape::new("RED", 0)), "{runtime:?} {idle:?}");
        assert!(waitset.wait_any(LONG).expect("a wait"));
        pair.wait_until("the other", || {
            pair.reader.take(1).expect("open").first().is_some_and(|sample| sample.data == Some(Shape::new("RED", 1)))
        });
    }
}

#[test]
fn read_condition_is_true_while_matching_samples_exist() {
    for (runtime, idle) in WAYS {
        let pair = pair(runtime, idle);
        let unread = Selector { sample_states: SampleStates::NOT_READ, ..Selector::READ };
        let condition = pair.reader.read_condition(unread);
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(&condition).expect("attached");
        assert!(!waitset.wait_any(SHORT).expect("a wait"), "{runtime:?} {idle:?}");
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        assert!(waitset.wait_any(LONG).expect("a wait"));
        assert!(waitset.wait_any(LONG).expect("a wait"), "still unread");
        assert_eq!(pair.reader.read(8).expect("open").len(), 1);
        assert!(!condition.trigger_value().expect("own thread"), "read, though still there");
        assert!(!waitset.wait_any(SHORT).expect("a wait"));
    }
}

#[test]
fn guard_condition_set_by_another_thread_ends_a_wait() {
    for (runtime, idle) in WAYS {
        let pair = pair(runtime, idle);
        let guard = GuardCondition::new();
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(&guard).expect("attached");
        let condition = pair.reader.read_condition(Selector::READ);
        waitset.attach(&condition).expect("attached");
        std::thread::scope(|scope| {
            scope.spawn(|| guard.set_trigger_value(true));
            assert_eq!(waitset.wait(LONG).expect("the guard"), [Condition::from(&guard)], "{runtime:?} {idle:?}");
        });
        guard.set_trigger_value(false);
        assert!(matches!(waitset.wait(SHORT), Err(Error::Timeout { .. })));
    }
}

#[test]
fn status_ends_waits_until_it_is_read() {
    for (runtime, idle) in WAYS {
        let domain = domain();
        let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).idle(idle).build().expect("participant");
        let reader = create_reader::<Shape>(&subscriber, "Topic", DataReaderQos::default());
        let waitset = WaitSet::new().expect("descriptors");
        let condition = reader.status_condition();
        condition.set_enabled_statuses(StatusMask::SUBSCRIPTION_MATCHED);
        waitset.attach(condition).expect("attached");
        let writer = create_writer::<Shape>(&publisher, "Topic", DataWriterQos::default());
        assert!(waitset.wait_any(LONG).expect("a wait"), "{runtime:?} {idle:?}");
        let status = reader.subscription_matched_status().expect("open");
        assert_eq!((status.total_count, status.total_count_change, status.current_count), (1, 1, 1));
        assert_eq!(status.last_peer, Some(writer.guid()));
        assert!(!waitset.wait_any(SHORT).expect("a wait"), "seen");
        drop(writer);
        assert!(waitset.wait_any(LONG).expect("a wait"), "the writer has gone");
        let status = reader.subscription_matched_status().expect("open");
        assert_eq!((status.total_count_change, status.current_count, status.current_count_change), (0, 0, -1));
    }
}

#[test]
fn detached_condition_ends_no_wait() {
    let waitset = WaitSet::new().expect("descriptors");
    let (kept, gone) = (GuardCondition::new(), GuardCondition::new());
    waitset.attach(&kept).expect("attached");
    waitset.attach(&gone).expect("attached");
    waitset.attach(&gone).expect("attached once all the same");
    assert_eq!(waitset.conditions().len(), 2);
    waitset.detach(&gone).expect("attached");
    assert!(matches!(waitset.detach(&gone), Err(Error::PreconditionNotMet { .. })));
    gone.set_trigger_value(true);
    assert!(matches!(waitset.wait(SHORT), Err(Error::Timeout { .. })));
    kept.set_trigger_value(true);
    assert_eq!(waitset.wait(LONG).expect("the guard"), [Condition::from(&kept)]);
}

#[test]
fn deleting_the_entity_of_a_condition_ends_the_wait() {
    for round in 0..30 {
        let pair = pair(Runtime::Shared, if round % 4 < 2 { Idle::Block } else { Idle::Spin });
        let waitset = WaitSet::new().expect("descriptors");
        let (read, status) = (pair.reader.read_condition(Selector::READ), pair.reader.status_condition());
        status.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
        waitset.attach(&read).expect("attached");
        waitset.attach(&status).expect("attached");
        let waiting = std::thread::spawn(move || {
            let result = waitset.wait_any(takt::Duration::INFINITE);
            (waitset, result)
        });
        if round % 2 == 0 { pair.reader.close() } else { pair.subscriber.close() }.expect("open");
        let (waitset, result) = join("the wait ends with what it waits for", waiting);
        assert!(matches!(result, Err(Error::AlreadyDeleted)), "{result:?}");
        let guard = GuardCondition::new();
        guard.set_trigger_value(true);
        waitset.attach(&guard).expect("attached");
        assert!(waitset.wait_any(LONG).expect("a condition is true all the same"));
        guard.set_trigger_value(false);
        waitset.detach(&read).expect("attached");
        waitset.detach(&status).expect("attached");
        assert!(!waitset.wait_any(SHORT).expect("it goes on without what was deleted"));
    }
}

#[test]
fn deleting_an_inline_reader_ends_waits_for_its_conditions() {
    let pair = pair(Runtime::Inline, Idle::Block);
    let waitset = WaitSet::new().expect("descriptors");
    waitset.attach(pair.reader.read_condition(Selector::READ)).expect("attached");
    pair.reader.close().expect("open");
    let result = waitset.wait_any(LONG);
    assert!(matches!(result, Err(Error::AlreadyDeleted)), "{result:?}");
}

#[test]
fn second_concurrent_wait_is_an_error() {
    let waitset = WaitSet::new().expect("descriptors");
    let guard = GuardCondition::new();
    waitset.attach(&guard).expect("attached");
    std::thread::scope(|scope| {
        let _ending = OnDrop(|| guard.set_trigger_value(true));
        let waiter = scope.spawn(|| {
            loop {
                // The other thread may be waiting at this moment, though only briefly.
                match waitset.wait_any(LONG) {
                    Err(Error::PreconditionNotMet { .. }) => std::thread::yield_now(),
                    result => break result,
                }
            }
        });
        let refused = until_some("the other thread waits", || match waitset.wait(takt::Duration::ZERO) {
            Err(Error::Timeout { .. }) => None,
            result => Some(result),
        });
        assert!(matches!(refused, Err(Error::PreconditionNotMet { .. })), "{refused:?}");
        guard.set_trigger_value(true);
        match waiter.join().expect("no panic") {
            Ok(is_true) => assert!(is_true),
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn conditions_of_several_inline_participants_share_a_wait() {
    let domain = domain();
    let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let writer = create_writer::<Shape>(&publisher, "Topic", reliable_writer(History::KeepAll));
    let subscribers: Vec<_> =
        (0..3).map(|_| on_loopback(domain, Runtime::Inline).build().expect("participant")).collect();
    let readers: Vec<_> = subscribers
        .iter()
        .map(|subscriber| create_reader::<Shape>(subscriber, "Topic", reliable_reader(History::KeepAll)))
        .collect();
    let waitset = WaitSet::new().expect("descriptors");
    for reader in &readers {
        let condition = reader.status_condition();
        condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
        waitset.attach(condition).expect("attached");
    }
    let all: Vec<_> = subscribers.iter().collect();
    wait_until(&all, "match", || writer.matched_subscriptions().expect("open").len() == 3);
    writer.write(&Shape::new("RED", 1)).expect("room");
    let mut taken = 0;
    while taken < 3 {
        waitset.wait(LONG).expect("data");
        taken += readers.iter().map(|reader| reader.take(8).expect("open").len()).sum::<usize>();
    }
    assert_eq!(taken, 3);
}
