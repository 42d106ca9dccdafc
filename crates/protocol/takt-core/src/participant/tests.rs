//! Tests that deleted endpoints leave no timer behind with any policies.

use super::*;
use crate::WriterFlows;
use crate::config::Interface;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration as Span;
use takt_wire::Duration;
use takt_wire::qos::*;

/// Returns a matching writer and reader with every policy that takes a timer.
fn specs() -> (WriterSpec, ReaderSpec) {
    let period = Duration::from_millis(100);
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: period };
    let reliability = Reliability::RELIABLE;
    let (durability, deadline) = (Durability::Transient, Deadline { period });
    let latency_budget = LatencyBudget { duration: Duration::from_millis(10) };
    let lifespan = Lifespan { duration: period };
    let time_based_filter = TimeBasedFilter { minimum_separation: Duration::from_millis(50) };
    let mut writer_qos = DataWriterQos {
        liveliness,
        reliability,
        durability,
        deadline,
        latency_budget,
        lifespan,
        ..DataWriterQos::default()
    };
    let pace = Contract { minimum_separation: Some(Duration::from_millis(1)), ..Contract::default() };
    pace.put_into_writer(&mut writer_qos);
    let reader_qos = DataReaderQos {
        liveliness,
        reliability,
        durability,
        deadline,
        latency_budget,
        time_based_filter,
        ..DataReaderQos::default()
    };
    let writer = WriterSpec {
        topic_name: "T".into(),
        type_name: "Test".into(),
        keyed: false,
        qos: writer_qos,
        publisher: PublisherQos::default(),
        group: None,
        topic_data: TopicData::default(),
        type_information: None,
        max_serialized_len: Some(16),
        flows: WriterFlows::default(),
        unicast: Vec::new(),
        filters: None,
    };
    let reader = ReaderSpec {
        topic_name: "T".into(),
        type_name: "Test".into(),
        key: None,
        qos: reader_qos,
        subscriber: SubscriberQos::default(),
        group: None,
        topic_data: TopicData::default(),
        type_information: None,
        max_serialized_len: Some(16),
        unicast: Vec::new(),
        content_filter: None,
    };
    (writer, reader)
}

#[test]
fn deleted_endpoints_release_all_their_timers() {
    let mut config = Config::new(0, GuidPrefix([1; 12]));
    let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let interface = Interface { name: String::from("lo"), addresses: vec![(ip, 8)], mtu: 1500, loopback: true };
    config.interfaces = vec![interface];
    let mut now = Instant(1_000_000_000);
    let mut node = Participant::new(config, now).expect("the configuration is valid");
    let before = node.ctx.timers.in_use();
    for round in 0..6 {
        let (writer, reader) = specs();
        let first = node.create_writer(now, writer.clone()).expect("the writer is valid");
        let reader = node.create_reader(now, reader).expect("the reader is valid");
        let second = node.create_writer(now, writer).expect("the writer is valid");
        assert_eq!(node.matched_publications(reader).expect("it exists").len(), 2);
        assert!(node.ctx.timers.in_use() >= before + 10, "each has some");
        now = now.after(Span::from_millis(30));
        // The test deletes the endpoints in every order.
        let mut parts: [&dyn Fn(&mut Participant); 3] = [
            &|node| node.delete_writer(now, first).expect("it exists"),
            &|node| node.delete_reader(now, reader).expect("it exists"),
            &|node| node.delete_writer(now, second).expect("it exists"),
        ];
        parts.rotate_left(round % 3);
        if round >= 3 {
            parts.swap(0, 1);
        }
        parts.iter().for_each(|delete| delete(&mut node));
        assert_eq!(node.ctx.timers.in_use(), before, "{round}");
    }
}
