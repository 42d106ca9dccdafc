//! Source address checks: messages of a participant from other addresses.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::builder::{DataEmit, MessageBuilder};
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::message::{Gap, Payload};
use takt_wire::{EntityId, Locator, SequenceNumber, SequenceNumberSet};

const WRITER: EntityId = EntityId::user_writer(1, false);
const FAR: i64 = 1 << 40;

/// Participant with a reader, and a matched writer of another participant.
struct Followed {
    node: Participant,
    reader: ReaderHandle,
    now: Instant,
    puppet: Puppet,
    sent: i64,
}

impl Followed {
    fn new(checks_sources: bool, puppet: Puppet) -> Self {
        Self::with(checks_sources, puppet, |_| {})
    }

    /// Validates the puppet's address, after `prepare`.
    fn with(checks_sources: bool, mut puppet: Puppet, prepare: impl FnOnce(&mut Puppet)) -> Self {
        let now = Instant(1_000_000_000);
        let config = Config { checks_sources, ..config(0, 1500) };
        let mut node = Participant::new(config, now).expect("the configuration is valid");
        let reader = node.create_reader(now, reader_spec("T", false, keep_all_reader())).expect("the reader is valid");
        puppet.announce_itself(&mut node, now);
        let sent = outgoing(&mut node, now);
        let challenge: Vec<_> = sent.iter().flat_map(|(_, datagram)| challenge_in(datagram)).collect();
        prepare(&mut puppet);
        puppet.answer_challenge(&mut node, now, &challenge[..2]);
        puppet.publish(&mut node, now, &puppet.publication(1, true));
        let mut followed = Self { node, reader, now, puppet, sent: 0 };
        followed.assert_continues();
        followed
    }

    /// Checks that the writer's next sample arrives.
    fn assert_continues(&mut self) {
        self.sent += 1;
        let (sn, bytes) = (self.sent, payload(1, 20));
        let heartbeat = self.puppet.heartbeat(WRITER, 1, sn);
        self.puppet.say(&mut self.node, self.now, |message| {
            message.data(&data(WRITER, sn, Payload::Data(&bytes))).expect("it fits");
            message.heartbeat(&heartbeat).expect("it fits");
        });
        assert_eq!(self.taken(), [sn]);
    }

    fn taken(&mut self) -> Vec<i64> {
        let (mut taken, mut cursor) = (Vec::new(), ReadCursor::default());
        while let Some(sample) =
            self.node.read_next(self.now, self.reader, Selector::TAKE, &mut cursor).expect("it exists")
        {
            taken.push(sample.info.sequence_number.0);
        }
        taken
    }

    /// Sends a datagram with the puppet's prefix from another source.
    fn forge(&mut self, source: Locator, build: impl FnOnce(&mut MessageBuilder<'_>)) {
        let datagram = self.puppet.datagram(build);
        self.node.handle_datagram(self.now, Received { source, multicast: false }, &datagram);
    }
}

fn gap(start: i64, end: i64) -> Gap {
    Gap {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        gap_start: SequenceNumber(start),
        gap_list: SequenceNumberSet::new(SequenceNumber(end)),
    }
}

#[test]
fn forgeries_from_another_address_are_ignored_and_counted() {
    let mut t = Followed::new(true, Puppet::new(9));
    let elsewhere = address(77);
    let bytes = payload(9, 20);
    let mut heartbeat = t.puppet.heartbeat(WRITER, FAR, FAR);
    heartbeat.count = 1_000_000;
    let mut inline = InlineQosBuilder::<64>::new();
    inline.status_info(3).expect("it fits");
    inline.key_hash(t.puppet.guid(WRITER).to_bytes()).expect("it fits");
    let ended = inline.finish().expect("it fits").to_vec();
    let end = |writer, sn| DataEmit { inline_qos: Some(&ended), ..data(writer, sn, Payload::None) };
    t.forge(elsewhere, |message| message.gap(&gap(1, FAR)).expect("it fits"));
    t.assert_continues();
    t.forge(elsewhere, |message| message.heartbeat(&heartbeat).expect("it fits"));
    t.assert_continues();
    t.forge(elsewhere, |message| message.data(&data(WRITER, 4, Payload::Data(&bytes))).expect("it fits"));
    t.assert_continues();
    t.forge(elsewhere, |message| message.data(&end(EntityId::SEDP_PUB_WRITER, 2)).expect("it fits"));
    t.assert_continues();
    t.forge(elsewhere, |message| message.data(&end(EntityId::SPDP_WRITER, 2_000)).expect("it fits"));
    t.assert_continues();
    assert_eq!(t.node.counters().foreign_datagrams, 5);
}

#[test]
fn announced_addresses_are_accepted_with_any_port() {
    let mut t = Followed::new(true, Puppet::new(9));
    let mut announcement = t.puppet.announcement();
    announcement.metatraffic_unicast.push(address(10));
    let bytes = announcement.to_bytes();
    t.forge(address(9), |message| {
        message.data(&data(EntityId::SPDP_WRITER, 5, Payload::Data(&bytes))).expect("it fits");
    });
    for source in [address(9), address(10), Locator { port: 50_000, ..address(10) }] {
        t.puppet.address = source;
        t.assert_continues();
    }
    assert_eq!(t.node.counters().foreign_datagrams, 0);
    t.forge(address(11), |message| message.gap(&gap(1, FAR)).expect("it fits"));
    t.assert_continues();
}

#[test]
fn validated_address_is_accepted_although_it_is_not_announced() {
    let mut t = Followed::with(true, Puppet::new(9), |puppet| puppet.address = address(12));
    for source in [address(12), address(9), address(12)] {
        t.puppet.address = source;
        t.assert_continues();
    }
    assert_eq!(t.node.counters().foreign_datagrams, 0);
}

#[test]
fn datagrams_without_source_address_are_accepted() {
    let mut t = Followed::new(true, Puppet::new(9));
    t.puppet.address = Locator::INVALID;
    t.assert_continues();
}

#[test]
fn source_check_can_be_turned_off() {
    let mut t = Followed::new(false, Puppet::new(9));
    t.puppet.address = address(77);
    t.assert_continues();
    assert_eq!(t.node.counters().foreign_datagrams, 0);
}

#[test]
fn announcement_from_another_address_adds_no_address() {
    let mut t = Followed::new(true, Puppet::new(9));
    let mut announcement = t.puppet.announcement();
    announcement.metatraffic_unicast.push(address(77));
    let bytes = announcement.to_bytes();
    t.forge(address(77), |message| {
        message.data(&data(EntityId::SPDP_WRITER, 5, Payload::Data(&bytes))).expect("it fits");
    });
    t.forge(address(77), |message| message.gap(&gap(1, FAR)).expect("it fits"));
    t.assert_continues();
}

#[test]
fn datagrams_with_the_own_prefix_from_elsewhere_are_ignored() {
    let mut network = Network::new(1, 930);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (0, reader));
    let id = network.nodes[0].writer_guid(writer).expect("it exists").entity_id;
    let mut forger = Puppet::new(9);
    forger.prefix = prefix(0);
    let forged = forger.datagram(|message| message.gap(&Gap { writer: id, ..gap(1, FAR) }).expect("it fits"));
    let now = network.now;
    network.nodes[0].handle_datagram(now, Received { source: address(9), multicast: false }, &forged);
    network.write(0, writer, &payload(1, 20)).expect("write accepted");
    network.run(1_000);
    assert_eq!(network.take_all(0, reader).len(), 1);
}
