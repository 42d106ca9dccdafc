//! Tests that samples outlive their writer, and PERSISTENT ones the service (DDS 1.4 §2.2.3.4).

use crate::support::*;
use takt::qos::*;

#[test]
fn late_joiner_gets_the_samples_of_a_departed_writer() {
    for durability in [Durability::Transient, Durability::Persistent] {
        let (domain, directory) = (domain(), Directory::new("durability"));
        let service = Running::start(options(domain, Some(&directory)));
        let publisher = participant(domain);
        let writer = writer(&publisher, writer_qos(durability, keep_all()));
        write(&writer, 0..500);
        await_durability(&writer);
        let origin = writer.guid();
        drop((writer, publisher));

        let subscriber = participant(domain);
        let samples = take(&reader(&subscriber, durability), 500);
        assert!(values(&samples).into_iter().eq(0..500), "{durability}: {:?}", values(&samples));
        for (sample, number) in samples.iter().zip(1..) {
            assert_eq!((sample.info.origin.writer, sample.info.origin.sn.0), (origin, number));
            assert_ne!(sample.info.publication, origin, "it comes from the service");
            assert!(sample.info.source_timestamp < sample.info.reception_timestamp);
        }
        assert_eq!(service.stop().samples, 500);
    }
}

#[test]
fn reader_of_writer_and_service_gets_each_sample_once_and_in_order() {
    let domain = domain();
    let service = Running::start(options(domain, None));
    let publisher = participant(domain);
    let qos = DataWriterQos { history: History::KeepLast(1), ..writer_qos(Durability::Transient, keep_all()) };
    let writer = writer(&publisher, qos);
    for value in 0..300 {
        write(&writer, value..value + 1);
        await_durability(&writer);
    }
    let subscriber = participant(domain);
    until("writer and service", || subscriber.discovered_publications().expect("open").len() == 2);
    let reader = reader(&subscriber, Durability::Transient);
    until("a match", || reader.matched_publications().expect("open").contains(&writer.guid()));
    let mut samples = take(&reader, 300);
    for value in 300..400 {
        write(&writer, value..value + 1);
        writer.wait_for_acknowledgments(TIMEOUT).expect("everybody follows");
    }
    samples.extend(take(&reader, 100));
    assert!(values(&samples).into_iter().eq(0..400), "{:?}", values(&samples));
    assert!(subscriber.diagnostics().counters().expect("open").repeated_samples >= 7, "both had something");
    drop(service);
}

#[test]
fn restarted_service_serves_its_stored_samples() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    for round in 0..3 {
        let service = Running::start(options(domain, Some(&directory)));
        write(&writer, round * 100..(round + 1) * 100);
        await_durability(&writer);
        assert_eq!(service.stop().samples, (round as usize + 1) * 100, "a repeated change is not stored again");
        until("an end", || writer.durability_services().expect("open").is_empty());
        assert_eq!(writer.durable_upto().expect("open"), None);
    }
    drop((writer, publisher));
    let _service = Running::start(options(domain, Some(&directory)));
    let subscriber = participant(domain);
    let samples = take(&reader(&subscriber, Durability::Persistent), 300);
    assert!(values(&samples).into_iter().eq(0..300), "{:?}", values(&samples));
}

#[test]
fn transient_samples_are_lost_when_their_service_ends() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Transient, keep_all()));
    let service = Running::start(options(domain, Some(&directory)));
    write(&writer, 0..10);
    await_durability(&writer);
    drop((writer, publisher));
    assert_eq!(service.stop().samples, 10);
    assert_eq!(Running::start(options(domain, Some(&directory))).stop().samples, 0);
}

#[test]
fn service_history_follows_durability_service_and_not_the_history_of_the_writer() {
    let domain = domain();
    let _service = Running::start(options(domain, None));
    let publisher = participant(domain);
    let policy = DurabilityService { history: History::KeepLast(2), ..DurabilityService::default() };
    let writer = writer(&publisher, writer_qos(Durability::Transient, policy));
    write(&writer, 0..70);
    await_durability(&writer);
    drop((writer, publisher));
    let subscriber = participant(domain);
    let samples = take(&reader(&subscriber, Durability::Transient), 14);
    assert!(values(&samples).into_iter().eq(56..70), "two of each of seven: {:?}", values(&samples));
}

#[test]
fn disposed_instance_is_removed_after_the_cleanup_delay() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let service = Running::start(options(domain, Some(&directory)));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    write(&writer, 0..14);
    let disposed = Number { key: 3, value: 0 };
    writer.dispose(&disposed).expect("room");
    writer.unregister_instance(&disposed).expect("room");
    await_durability(&writer);
    let subscriber = participant(domain);
    let received = || {
        let reader = reader(&subscriber, Durability::Persistent);
        until("history", || !reader.matched_publications().expect("open").is_empty());
        take(&reader, 12)
    };
    drop((writer, publisher));
    until("cleaning", || received().len() == 12);
    assert!(received().iter().all(|sample| sample.data.as_ref().is_some_and(|number| number.key != 3)));
    assert_eq!(service.stop().samples, 12);
    assert_eq!(Running::start(options(domain, Some(&directory))).stop().samples, 12, "on disk too");
}

#[test]
fn writer_serves_its_own_history_without_a_service() {
    let domain = domain();
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    write(&writer, 0..100);
    assert_eq!(writer.durable_upto().expect("open"), None, "no service stores it");
    let wait = writer.wait_for_durability(takt::Duration::from_millis(1));
    assert!(matches!(wait, Err(takt::Error::Timeout { .. })), "{wait:?}");
    let subscriber = participant(domain);
    let samples = take(&reader(&subscriber, Durability::Persistent), 100);
    assert!(values(&samples).into_iter().eq(0..100));
}

/// LATENCY_BUDGET is compared at matching (DDS 1.4 §2.2.3.8): the service requests the value that
/// the writer offers.
#[test]
fn service_stores_samples_of_a_writer_with_a_latency_budget() {
    let domain = domain();
    let service = Running::start(options(domain, None));
    let publisher = participant(domain);
    let latency_budget = LatencyBudget { duration: takt::Duration::from_millis(20) };
    let qos = DataWriterQos { latency_budget, ..writer_qos(Durability::Transient, keep_all()) };
    let writer = writer(&publisher, qos);
    until("a service", || writer.durability_services().expect("open").len() == 1);
    write(&writer, 0..5);
    await_durability(&writer);
    assert_eq!(service.stop().samples, 5);
}
