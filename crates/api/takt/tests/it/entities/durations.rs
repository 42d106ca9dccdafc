//! Blocking calls and limits accept durations of the standard library and of DDS, and reject
//! invalid ones.

use std::time::Duration as StdDuration;

use crate::support::*;
use takt::real_time::{JobKind, Priority};
use takt::*;

const NEGATIVE: takt::Duration = takt::Duration { seconds: -2, fraction: 1 << 31 };
const SHORT: StdDuration = StdDuration::from_millis(5);

fn refusal<R>(result: Result<R>) -> String {
    match result {
        Err(Error::BadParameter { what, .. }) => what,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn blocking_calls_time_out_with_durations_of_either_type() {
    for runtime in RUNTIMES {
        let participant = on_loopback(domain(), runtime).build().expect("participant");
        let writer = create_writer::<Blob>(&participant, "Topic", qos::DataWriterQos::default());
        let reader = create_reader::<Blob>(&participant, "Topic", qos::DataReaderQos::default());
        writer.wait_for_readers(1, StdDuration::MAX).expect("a match");
        reader.wait_for_writers(1, takt::Duration::INFINITE).expect("a match");
        writer.wait_for_acknowledgments(StdDuration::MAX).expect("nothing to wait for");
        writer.wait_for_acknowledgments(takt::Duration::INFINITE).expect("nothing to wait for");
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(reader.read_condition(Selector::TAKE)).expect("attached");
        assert!(!waitset.wait_any(SHORT).expect("a wait"), "{runtime:?}");
        assert!(!waitset.wait_any(takt::Duration::from(SHORT)).expect("a wait"), "{runtime:?}");
        assert!(matches!(waitset.wait(SHORT), Err(Error::Timeout { .. })), "{runtime:?}");
        assert!(matches!(participant.learn_type("Nothing", SHORT), Err(Error::TypeUnavailable(_))), "{runtime:?}");
        writer.write(&Blob::new(1, 8)).expect("room");
        assert_eq!(waitset.wait(StdDuration::MAX).expect("data").len(), 1, "{runtime:?}");
        reader.recv_timeout(takt::Duration::INFINITE).expect("data");
    }
}

#[test]
fn negative_timeouts_are_bad_parameters_that_name_the_value() {
    let participant = on_loopback(domain(), Runtime::Inline).build().expect("participant");
    let publisher = participant.create_publisher(qos::PublisherQos::default()).expect("publisher");
    let writer = create_writer::<Blob>(&participant, "Topic", qos::DataWriterQos::default());
    let reader = create_reader::<Blob>(&participant, "Topic", qos::DataReaderQos::default());
    let waitset = WaitSet::new().expect("descriptors");
    let refusals = [
        refusal(participant.spin_once(NEGATIVE)),
        refusal(participant.learn_type("Topic", NEGATIVE)),
        refusal(publisher.wait_for_acknowledgments(NEGATIVE)),
        refusal(writer.wait_for_acknowledgments(NEGATIVE)),
        refusal(writer.wait_for_durability(NEGATIVE)),
        refusal(writer.wait_for_readers(0, NEGATIVE)),
        refusal(reader.wait_for_writers(0, NEGATIVE)),
        refusal(reader.wait_for_historical_data(NEGATIVE)),
        refusal(reader.recv_timeout(NEGATIVE)),
        refusal(waitset.wait(NEGATIVE)),
        refusal(waitset.wait_any(NEGATIVE)),
    ];
    for refusal in refusals {
        assert_eq!(refusal, "a timeout of -1.5s: it must not be negative");
    }
}

#[test]
fn invalid_leases_and_periods_are_rejected_by_build() {
    let build = |change: &dyn Fn(DomainParticipantBuilder) -> DomainParticipantBuilder| {
        refusal(change(on_loopback(domain(), Runtime::Inline)).build())
    };
    assert_eq!(build(&|b| b.lease_duration(StdDuration::ZERO)), "lease_duration is 0ns: it must be at least 100ms");
    assert_eq!(build(&|b| b.lease_duration(NEGATIVE)), "lease_duration is -1.5s: it must be at least 100ms");
    let endless = "announcement_period is 0ns: it must be at least 1ms";
    assert_eq!(build(&|b| b.announcement_period(takt::Duration::ZERO)), endless);
}

#[test]
fn infinite_lease_is_announced_as_infinite() {
    let domain = domain();
    let lasting = on_loopback(domain, Runtime::Shared).lease_duration(takt::Duration::INFINITE);
    let lasting = lasting.announcement_period(takt::Duration::INFINITE).build().expect("participant");
    let observer = on_loopback(domain, Runtime::Shared).build().expect("participant");
    wait_until(&[], "discovery", || {
        let known = observer.discovered_participants().expect("open");
        known.iter().any(|data| data.guid == lasting.guid() && data.lease_duration == takt::Duration::INFINITE)
    });
}

#[test]
fn budget_is_unlimited_if_infinite_and_rejected_if_negative() {
    let executor = Executor::builder("durations").start().expect("a thread");
    let participant = on_loopback(domain(), Runtime::Shared).build().expect("participant");
    let job = executor.on_event(Priority::NORMAL, "job", std::thread::yield_now).expect("room");
    let run = |count| {
        job.trigger();
        wait_until(&[], "a run", || job.statistics().durations.count() == count);
        job.statistics().overruns
    };
    job.set_budget(takt::Duration::ZERO, false).expect("a budget");
    assert_eq!(run(1), 1);
    job.set_budget(takt::Duration::INFINITE, false).expect("a budget");
    assert_eq!(run(2), 1);
    assert_eq!(refusal(job.set_budget(NEGATIVE, false)), "a budget of -1.5s: it must not be negative");
    let of_class = participant.set_job_budget(JobKind::Timers, Priority::NORMAL, NEGATIVE);
    assert_eq!(refusal(of_class), "a budget of -1.5s: it must not be negative");
    let never = executor.every(takt::Duration::INFINITE, Priority::NORMAL, "never", || {});
    assert!(refusal(never).starts_with("a period of infinite"));
}
