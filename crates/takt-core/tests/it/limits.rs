//! Limits hold, and state goes away with what it was kept for.

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

#[test]
fn contradicting_policies_are_refused() {
    let mut network = Network::new(1, 90);
    let mut qos = keep_all_writer();
    qos.history = History::KeepLast(10);
    qos.resource_limits.max_samples_per_instance = Some(5);
    let refused = network.nodes[0].create_writer(network.now, writer_spec("T", false, qos.clone()));
    assert!(matches!(refused, Err(Error::InconsistentPolicy { .. })));
    qos.resource_limits.max_samples_per_instance = None;
    let mut greedy = qos.clone();
    greedy.resource_limits.max_samples = Some(900_000_000);
    let refused = network.nodes[0].create_writer(network.now, writer_spec("T", false, greedy));
    assert_eq!(refused, Err(Error::OutOfResources { limit: "max_samples", value: 1 << 20 }));
    let refused = network.nodes[0].create_writer(network.now, writer_spec("", false, qos.clone()));
    assert!(matches!(refused, Err(Error::BadParameter { .. })));
    let refused = network.nodes[0].create_writer(network.now, writer_spec(&"n".repeat(256), false, qos));
    assert!(matches!(refused, Err(Error::BadParameter { .. })));
}

#[test]
fn max_instances_is_never_exceeded() {
    let mut network = Network::new(2, 91);
    let mut qos = keep_all_writer();
    qos.resource_limits.max_instances = Some(3);
    let writer = network.writer(0, writer_spec("T", true, qos));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    for key in 0..3 {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(0, 20)).expect("there is room");
    }
    let refused = network.write_key(0, writer, ChangeKind::Alive, hash(9), &payload(0, 20));
    assert_eq!(refused, Err(WriteError::Refused(Error::OutOfResources { limit: "max_instances", value: 3 })));
}

#[test]
fn a_thousand_joins_and_leaves_leave_nothing_behind() {
    let mut network = Network::new(2, 92);
    network.run(2_000);
    for _ in 0..1_000 {
        let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        network.await_match((0, writer), (1, reader));
        network.write(0, writer, &payload(1, 20)).expect("there is room");
        network.run_until(1_000, |n| n.take(1, reader).is_some());
        network.nodes[0].delete_writer(network.now, writer).expect("the writer lives");
        network.nodes[1].delete_reader(network.now, reader).expect("the reader lives");
    }
    network.run(2_000);
    assert_eq!(network.nodes[1].discovered_publications().count(), 0);
    assert_eq!(network.nodes[0].discovered_subscriptions().count(), 0);
    assert_eq!(network.nodes[0].counters().refused_remote_entities, 0);
}

#[test]
fn participants_that_never_answer_push_each_other_out() {
    let mut network = Network::new(2, 93);
    network.run(1_000);
    let data = |n: u16| takt_wire::discovery::ParticipantData {
        guid: takt_wire::Guid {
            prefix: takt_wire::GuidPrefix([9, 9, 9, 9, 9, 9, 9, 9, 9, 9, (n >> 8) as u8, n as u8]),
            entity_id: takt_wire::EntityId::PARTICIPANT,
        },
        metatraffic_unicast: vec![address(200)],
        available_builtin_endpoints: 0x3f,
        ..Default::default()
    };
    for n in 0..1_000 {
        let data = data(n);
        let header = takt_wire::message::Header {
            version: takt_wire::ProtocolVersion::V2_5,
            vendor: takt_wire::VendorId::TAKT,
            prefix: data.guid.prefix,
        };
        let mut frame = [0; 1500];
        let mut builder = takt_wire::builder::MessageBuilder::new(&mut frame, &header).expect("it fits");
        builder
            .data(&takt_wire::builder::DataEmit {
                reader: takt_wire::EntityId::UNKNOWN,
                writer: takt_wire::EntityId::SPDP_WRITER,
                sn: takt_wire::SequenceNumber(1),
                inline_qos: None,
                payload: takt_wire::message::Payload::Data(&data.to_bytes()),
            })
            .expect("it fits");
        let len = builder.len();
        let from = Received { source: address(200), multicast: true };
        network.nodes[0].handle_datagram(network.now, from, &frame[..len]);
    }
    let known = network.nodes[0].discovered_participants().len();
    assert_eq!(known, 1 + Limits::default().max_unvalidated_participants);
    assert!(network.nodes[0].discovered_participants().iter().any(|data| data.guid.prefix == prefix(1)));
}
