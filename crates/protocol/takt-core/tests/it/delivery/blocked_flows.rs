//! Blocked flows: fragments of large samples wait for the queue of their network interface, and all
//! other datagrams are sent.

use crate::network::*;
use takt_core::*;
use takt_wire::Locator;
use takt_wire::qos::Durability;

const UDP: LocatorKinds = LocatorKinds::NONE.with(Locator::KIND_UDP_V4);
const IMAGE_LEN: usize = 40_000;

/// Network with a writer of large samples and one of small samples on the default flow of node 0,
/// and a reader of each on node 1.
struct Pairs {
    network: Network,
    camera: (WriterHandle, ReaderHandle),
    imu: (WriterHandle, ReaderHandle),
}

impl Pairs {
    fn new() -> Self {
        let mut network = Network::new(2, 1);
        let mut pair = |topic| {
            let writer = network.writer(0, writer_spec(topic, false, keep_all_writer()));
            let reader = network.reader(1, reader_spec(topic, false, keep_all_reader()));
            network.await_match((0, writer), (1, reader));
            (writer, reader)
        };
        let (camera, imu) = (pair("Camera"), pair("Imu"));
        network.run(500);
        network.events(0);
        Self { network, camera, imu }
    }

    fn writer_node(&mut self) -> &mut Participant {
        &mut self.network.nodes[0]
    }

    fn write_image(&mut self) {
        self.network.write(0, self.camera.0, &payload(1, IMAGE_LEN)).expect("there is room");
    }

    fn takes_image(&mut self) -> bool {
        let reader = self.camera.1;
        self.network.run_until(1_000, |network| {
            network.take(1, reader).is_some_and(|(_, bytes)| bytes == payload(1, IMAGE_LEN))
        })
    }
}

#[test]
fn fragments_wait_while_their_flow_is_blocked_and_other_samples_do_not() {
    let mut pairs = Pairs::new();
    pairs.writer_node().block_fragments(FlowTag::default(), UDP);
    pairs.write_image();
    let (imu, camera) = (pairs.imu, pairs.camera.0);
    pairs.network.write(0, imu.0, &payload(2, 10)).expect("there is room");
    assert!(pairs.network.run_until(100, |network| network.take(1, imu.1).is_some()), "the small sample arrives");
    assert!(!pairs.takes_image(), "the large one does not");
    assert!(pairs.writer_node().is_writer_blocked(camera));
    assert!(!pairs.writer_node().is_writer_blocked(imu.0));

    pairs.network.events(0);
    pairs.writer_node().unblock_fragments(FlowTag::default(), UDP);
    assert!(!pairs.writer_node().has_blocked_flows());
    assert!(pairs.takes_image(), "it is sent once the queue has room");
    assert!(!pairs.writer_node().is_writer_blocked(camera));
    assert!(pairs.network.events(0).contains(&Event::WriterSpace(camera)), "the writer is notified");
}

#[test]
fn flow_that_blocks_in_the_middle_of_a_sample_delays_the_rest_of_it() {
    let mut pairs = Pairs::new();
    pairs.write_image();
    let (now, mut frame) = (pairs.network.now, vec![0; 65_536]);
    while !pairs.writer_node().poll_transmit(now, &mut frame).expect("a fragment follows the heartbeat").is_fragment {}
    pairs.writer_node().block_fragments(FlowTag::default(), UDP);
    assert_eq!(pairs.writer_node().poll_transmit(now, &mut frame), None);
    assert!(!pairs.writer_node().has_transmit(), "the driver can sleep");
    pairs.writer_node().unblock_fragments(FlowTag::default(), UDP);
    assert!(pairs.takes_image(), "the rest is sent, and the first fragment, which this test took, is repaired");
}

#[test]
fn fragments_of_other_flows_and_to_other_kinds_of_locators_do_not_wait() {
    let mut pairs = Pairs::new();
    pairs.writer_node().block_fragments(FlowTag(1), UDP);
    pairs.writer_node().block_fragments(FlowTag::default(), LocatorKinds::NONE.with(Locator::KIND_TAKT_ETHERNET));
    pairs.write_image();
    assert!(pairs.takes_image());
}

#[test]
fn repair_in_fragments_waits_and_directed_heartbeats_do_not() {
    let mut network = Network::new(2, 1);
    let mut writer_qos = keep_all_writer();
    writer_qos.durability = Durability::TransientLocal;
    let writer = network.writer(0, writer_spec("Map", false, writer_qos));
    network.write(0, writer, &payload(1, IMAGE_LEN)).expect("there is room");
    network.nodes[0].block_fragments(FlowTag::default(), UDP);
    let mut reader_qos = keep_all_reader();
    reader_qos.durability = Durability::TransientLocal;
    let reader = network.reader(1, reader_spec("Map", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    let sent = network.nodes[0].counters().data_frags_sent;
    assert!(!network.run_until(500, |network| network.take(1, reader).is_some()), "the history waits");
    let after = network.nodes[0].counters();
    assert_eq!(after.data_frags_sent, sent);
    assert!(after.heartbeats_sent > 0, "the reader learns of the history");

    network.nodes[0].unblock_fragments(FlowTag::default(), UDP);
    let arrives =
        network.run_until(1_000, |network| network.take(1, reader).is_some_and(|(_, it)| it.len() == IMAGE_LEN));
    assert!(arrives);
}

#[test]
fn all_samples_arrive_if_flows_block_and_unblock_at_random_under_loss() {
    let mut network = Network::new(2, 3);
    let writer = network.writer(0, writer_spec("Camera", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("Camera", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.faults = Faults { loss: 5, duplication: 2, reordering: 5 };
    let mut dice = Dice(7);
    let (mut written, mut taken) = (0, 0);
    let all = network.run_until(600_000, |network| {
        match dice.percent(50) {
            true => network.nodes[0].block_fragments(FlowTag::default(), UDP),
            false => network.nodes[0].unblock_fragments(FlowTag::default(), UDP),
        }
        let len = |number| if number % 2 == 0 { IMAGE_LEN } else { 100 };
        while written < 40 && network.write(0, writer, &payload(written, len(written))).is_ok() {
            written += 1;
        }
        while let Some((_, bytes)) = network.take(1, reader) {
            let len = bytes.len();
            assert!(bytes == payload(taken, len), "sample {taken} comes next, whole");
            taken += 1;
        }
        taken == 40
    });
    assert!(all, "{taken} of {written} written samples arrived");
}

#[test]
fn deleted_writer_leaves_nothing_that_waits() {
    let mut pairs = Pairs::new();
    pairs.writer_node().block_fragments(FlowTag::default(), UDP);
    pairs.write_image();
    let (now, mut frame, camera) = (pairs.network.now, vec![0; 65_536], pairs.camera.0);
    while pairs.writer_node().poll_transmit(now, &mut frame).is_some() {}
    assert!(pairs.writer_node().is_writer_blocked(camera));
    pairs.writer_node().delete_writer(now, camera).expect("it lives");
    assert!(!pairs.writer_node().is_writer_blocked(camera));
    pairs.writer_node().unblock_fragments(FlowTag::default(), UDP);
    let sends_fragments = core::iter::from_fn(|| {
        pairs.network.nodes[0].poll_transmit(now, &mut frame).map(|transmit| transmit.is_fragment)
    });
    assert!(sends_fragments.take(100).all(|is_fragment| !is_fragment));
}
