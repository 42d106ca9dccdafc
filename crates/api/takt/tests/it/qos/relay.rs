//! Relay readers and writers, the basis of durability services.

use crate::support::*;
use takt::dynamic::DynamicTypeSupport;
use takt::qos::*;
use takt::relay::{RelayReader, RelayTopic};
use takt::*;

/// Creates a TRANSIENT writer of ten samples, and a participant that has discovered it.
fn writer_and_service() -> (DomainParticipant, DataWriter<Shape>, DomainParticipant) {
    let domain = domain();
    let publisher = on_loopback(domain, Runtime::Inline).build().expect("participant");
    let service = on_loopback(domain, Runtime::Inline).build().expect("participant");
    let qos = DataWriterQos { durability: Durability::Transient, ..reliable_writer(History::KeepLast(100)) };
    let writer = create_writer::<Shape>(&publisher, "Topic", qos);
    for x in 0..10 {
        writer.write(&Shape::new("RED", x)).expect("room");
    }
    wait_until(&[&publisher, &service], "announcement", || {
        service.discovered_publications().expect("open").iter().any(|data| data.guid == writer.guid())
    });
    (publisher, writer, service)
}

fn relay_reader(service: &DomainParticipant) -> RelayReader {
    let type_ = DynamicTypeSupport::of::<Shape>().expect("a type within the limits");
    let qos = DataReaderQos { durability: Durability::Transient, ..reliable_reader(History::KeepAll) };
    service.create_relay_reader("Topic", &type_, &qos, &SubscriberQos::default()).expect("reader")
}

#[test]
fn relay_reader_reports_history_complete_when_all_samples_have_arrived() {
    let (publisher, writer, service) = writer_and_service();
    let reader = relay_reader(&service);
    assert_eq!(reader.as_any().matched_publications().expect("open"), [writer.guid()]);
    assert!(!reader.has_history().expect("open"), "nothing has been received since the match");
    let announced = |writer| reader.last_announced(writer).expect("open").map(|upto| upto.0);
    assert_eq!(announced(writer.guid()), None);
    wait_until(&[&publisher, &service], "history", || reader.has_history().expect("open"));
    let mut numbers = Vec::new();
    reader.take(|info, _, _| numbers.push(info.sequence_number.0)).expect("open");
    assert!(numbers.iter().copied().eq(1..=10), "{numbers:?}");
    assert_eq!(announced(writer.guid()), Some(10));
    assert_eq!(announced(reader.as_any().guid()), None, "it is not a matched writer");
}

#[test]
fn samples_are_durable_when_every_service_has_acknowledged_them() {
    let (publisher, writer, service) = writer_and_service();
    let wait = |what: &str, is_so: &dyn Fn() -> bool| wait_until(&[&publisher, &service], what, is_so);
    let durable_upto = || writer.durable_upto().expect("open").map(|upto| upto.0);
    assert_eq!(durable_upto(), None, "there is no service");
    let mut readers = Vec::new();
    for count in 1..=2 {
        let reader = relay_reader(&service);
        wait("a service", &|| writer.durability_services().expect("open").len() == count);
        wait("history", &|| reader.has_history().expect("open"));
        assert_eq!(durable_upto(), Some(0), "the samples have arrived at service {count}, which has not kept them");
        let early = writer.wait_for_durability(takt::Duration::ZERO);
        assert!(matches!(early, Err(Error::Timeout { .. })), "{early:?}");
        let mut taken = 0;
        reader.take(|_, _, _| taken += 1).expect("open");
        assert_eq!(taken, 10);
        reader.acknowledge_taken().expect("open");
        wait("an acknowledgment", &|| durable_upto() == Some(10));
        writer.wait_for_durability(takt::Duration::ZERO).expect("all services have acknowledged all");
        readers.push(reader);
    }
}

#[test]
fn relay_is_not_announced_before_it_is_enabled() {
    let (publisher, writer, service) = writer_and_service();
    let type_ = DynamicTypeSupport::of::<Shape>().expect("a type within the limits");
    let topic = RelayTopic {
        name: "Topic".to_owned(),
        type_name: type_.type_name().to_owned(),
        has_key: true,
        type_information: None,
        topic_data: TopicData::default(),
    };
    let qos = DataWriterQos { durability: Durability::Transient, ..reliable_writer(History::KeepLast(1)) };
    let relay = service.create_relay_writer(&topic, &qos, &PublisherQos::default()).expect("writer");
    // An endpoint that is created later and announced at once is discovered first if the relay
    // writer is not announced.
    let other = create_writer::<Shape>(&service, "Other", DataWriterQos::default());
    let known = |guid| publisher.discovered_publications().expect("open").iter().any(|data| data.guid == guid);
    let of_relay = || {
        let all = publisher.discovered_publications().expect("open");
        all.iter().filter(|data| data.topic_name == "Topic" && data.guid != writer.guid()).count()
    };
    wait_until(&[&publisher, &service], "the other writer", || known(other.guid()));
    assert_eq!(of_relay(), 0);
    relay.enable().expect("open");
    wait_until(&[&publisher, &service], "the relay's writer", || of_relay() == 1);
}
