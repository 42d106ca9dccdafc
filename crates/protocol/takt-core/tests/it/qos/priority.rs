//! Priorities: the datagram of the highest priority is built first, regardless of the order of
//! writes.

use takt_core::*;

use crate::network::*;

/// Returns the priorities of all pending datagrams of a node, in the order of sending.
fn drain(network: &mut Network, node: usize) -> Vec<i32> {
    let (now, mut frame) = (network.now, vec![0; 65_536]);
    let mut order = Vec::new();
    loop {
        let announced = network.nodes[node].transmit_priority();
        let Some(transmit) = network.nodes[node].poll_transmit(now, &mut frame) else { return order };
        assert!(announced >= Some(transmit.priority), "the next priority was announced before: {announced:?}");
        order.push(transmit.priority.get());
    }
}

#[test]
fn data_and_acknowledgments_have_the_priority_of_their_endpoint() {
    let mut network = Network::new(2, 1);
    let mut endpoints = Vec::new();
    for (topic, priority) in [("Log", -5), ("Camera", 0), ("Brake", 40)] {
        let writer = network.writer(0, writer_spec(topic, false, keep_all_writer()));
        let reader = network.reader(1, reader_spec(topic, false, keep_all_reader()));
        network.nodes[0].set_writer_priority(writer, Priority::new(priority)).expect("lives");
        network.nodes[1].set_reader_priority(reader, Priority::new(priority)).expect("lives");
        network.await_match((0, writer), (1, reader));
        endpoints.push((writer, reader));
    }
    network.run(500);
    assert_eq!(drain(&mut network, 0), [], "nothing is left from before");

    for (writer, _) in &endpoints {
        for _ in 0..2 {
            network.write(0, *writer, &payload(1, 40_000)).expect("room");
        }
    }
    let order = drain(&mut network, 0);
    assert!(order.is_sorted_by(|earlier, later| earlier >= later), "{order:?}");
    for priority in [-5, 0, 40] {
        let fragments = order.iter().filter(|it| **it == priority).count();
        assert!(fragments > 50, "two samples of 40 kB are many datagrams: {fragments} of priority {priority}");
    }
}

#[test]
fn raised_priority_overtakes_queued_datagrams() {
    let mut network = Network::new(2, 1);
    let mut writers = Vec::new();
    for (topic, priority) in [("Camera", 0), ("Brake", 40)] {
        let writer = network.writer(0, writer_spec(topic, false, keep_all_writer()));
        let reader = network.reader(1, reader_spec(topic, false, keep_all_reader()));
        network.nodes[0].set_writer_priority(writer, Priority::new(priority)).expect("lives");
        network.await_match((0, writer), (1, reader));
        writers.push(writer);
    }
    network.run(500);
    assert_eq!(drain(&mut network, 0), []);

    network.write(0, writers[0], &payload(1, 40_000)).expect("room");
    let (now, mut frame) = (network.now, vec![0; 65_536]);
    let first = network.nodes[0].poll_transmit(now, &mut frame).expect("data").priority;
    assert_eq!(first, Priority::NORMAL);
    network.write(0, writers[1], &payload(2, 10)).expect("room");
    let next = network.nodes[0].poll_transmit(now, &mut frame).expect("data").priority;
    assert_eq!(next, Priority::new(40), "in the middle of a large sample of the other topic");
    assert!(drain(&mut network, 0).iter().all(|priority| *priority == 0), "and the rest follows");
}

#[test]
fn priority_of_a_deleted_writer_cannot_be_set() {
    let mut network = Network::new(1, 1);
    let writer = network.writer(0, writer_spec("Camera", false, keep_all_writer()));
    let now = network.now;
    network.nodes[0].delete_writer(now, writer).expect("lives");
    let refused = network.nodes[0].set_writer_priority(writer, Priority::MAX);
    assert!(matches!(refused, Err(Error::AlreadyDeleted)), "{refused:?}");
}

#[test]
fn priority_is_kept_when_policies_change_before_enabling() {
    let mut network = Network::new(2, 1);
    let (now, urgent) = (network.now, Priority::new(40));
    let node = &mut network.nodes[0];
    let writer = node.prepare_writer(now, writer_spec("Brake", false, keep_all_writer())).expect("it is valid");
    node.set_writer_priority(writer, urgent).expect("lives");
    node.set_writer_qos(now, writer, keep_all_writer()).expect("anything may change");
    node.enable_writer(now, writer).expect("the participant is enabled");
    let node = &mut network.nodes[1];
    let reader = node.prepare_reader(reader_spec("Brake", false, keep_all_reader())).expect("it is valid");
    node.set_reader_priority(reader, urgent).expect("lives");
    node.set_reader_qos(now, reader, keep_all_reader()).expect("anything may change");
    node.enable_reader(now, reader).expect("the participant is enabled");
    network.await_match((0, writer), (1, reader));
    network.run(500);

    (0..100).for_each(|_| network.write(0, writer, &payload(1, 10)).expect("room"));
    assert_eq!(network.nodes[0].transmit_priority(), Some(urgent));
    let (now, mut frame) = (network.now, vec![0; 65_536]);
    while let Some(transmit) = network.nodes[0].poll_transmit(now, &mut frame) {
        let len = transmit.len;
        let from = Received { source: address(0), multicast: false };
        network.nodes[1].handle_datagram(now, from, &frame[..len]);
    }
    let node = &mut network.nodes[1];
    let acknowledges = (0..10).any(|_| {
        let is_urgent = node.transmit_priority() == Some(urgent);
        node.poll_timeout().into_iter().for_each(|due| node.handle_timeout(due));
        is_urgent
    });
    assert!(acknowledges, "its heartbeats have the same priority");
}
