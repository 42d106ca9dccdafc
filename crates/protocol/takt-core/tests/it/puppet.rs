//! Scripted remote participant: sends arbitrary messages to one participant under test.

use crate::network::{address, prefix};
use std::cell::Cell;
use takt_core::*;
use takt_wire::builder::{DataEmit, DataFragEmit, MessageBuilder};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::{AckNack, Header, Heartbeat, MessageView, Payload, Submessage};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId};

pub struct Puppet {
    pub prefix: GuidPrefix,
    pub vendor: VendorId,
    pub address: Locator,
    /// Locator for its user data.
    pub default_address: Locator,
    pub lease: takt_wire::Duration,
    /// Sequence number of its announcement.
    pub spdp_sn: Cell<i64>,
    /// Whether it has the endpoints of the TypeLookup service.
    pub serves_types: bool,
    /// Whether it announces itself as a discovery server.
    pub serves_discovery: bool,
    /// Number of changes written by each builtin writer, in the order of [`BUILTIN_WRITERS`].
    written: [i64; 5],
    count: i32,
}

/// Reliable builtin writers that [`Puppet::announce`] can use.
pub const BUILTIN_WRITERS: [EntityId; 5] = [
    EntityId::SEDP_PUB_WRITER,
    EntityId::SEDP_SUB_WRITER,
    EntityId::P2P_MESSAGE_WRITER,
    EntityId::TYPE_LOOKUP_REQUEST_WRITER,
    EntityId::TYPE_LOOKUP_REPLY_WRITER,
];

impl Puppet {
    /// Creates a participant that is none of the network's nodes, but in the same subnet. It is of
    /// another vendor, without Takt's conventions.
    pub fn new(number: usize) -> Self {
        let lease = takt_wire::Duration::from_secs(20);
        Self {
            prefix: prefix(number),
            vendor: VendorId([1, 250]),
            address: address(number),
            default_address: address(number),
            lease,
            serves_types: false,
            serves_discovery: false,
            written: [0; 5],
            count: 0,
            spdp_sn: Cell::new(1),
        }
    }

    /// Creates a participant of the Takt vendor.
    pub fn of_ours(number: usize) -> Self {
        Self { vendor: VendorId::TAKT, ..Self::new(number) }
    }

    pub fn guid(&self, entity_id: EntityId) -> Guid {
        Guid { prefix: self.prefix, entity_id }
    }

    pub fn header(&self) -> Header {
        Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: self.prefix }
    }

    pub fn datagram(&self, build: impl FnOnce(&mut MessageBuilder<'_>)) -> Vec<u8> {
        let mut frame = vec![0; 65_507];
        let mut builder = MessageBuilder::new(&mut frame, &self.header()).expect("the header fits");
        build(&mut builder);
        builder.bytes().to_vec()
    }

    pub fn say_bytes(&self, node: &mut Participant, now: Instant, datagram: &[u8]) {
        node.handle_datagram(now, Received { source: self.address, multicast: false }, datagram);
    }

    pub fn say(&self, node: &mut Participant, now: Instant, build: impl FnOnce(&mut MessageBuilder<'_>)) {
        self.say_bytes(node, now, &self.datagram(build));
    }

    pub fn announcement(&self) -> ParticipantData {
        let mut properties = takt_wire::qos::Property::default();
        if self.serves_discovery {
            properties.set(SERVER_PROPERTY, "1", true);
        }
        ParticipantData {
            properties,
            guid: self.guid(EntityId::PARTICIPANT),
            vendor_id: self.vendor,
            metatraffic_unicast: vec![self.address],
            default_unicast: vec![self.default_address],
            available_builtin_endpoints: if self.serves_types { 0xfc3f } else { 0xc3f },
            lease_duration: self.lease,
            ..ParticipantData::default()
        }
    }

    /// Announces itself by SPDP to a participant that does not know it yet.
    pub fn announce_itself(&self, node: &mut Participant, now: Instant) {
        let payload = self.announcement().to_bytes();
        self.say(node, now, |message| {
            message.data(&data(EntityId::SPDP_WRITER, self.spdp_sn.get(), Payload::Data(&payload))).expect("it fits");
        });
    }

    /// Announces itself by SPDP, and validates its address. Datagrams that the other side sends
    /// meanwhile are lost.
    pub fn join(&mut self, node: &mut Participant, now: Instant) {
        self.announce_itself(node, now);
        let mut frame = vec![0; 65_507];
        while let Some(transmit) = node.poll_transmit(now, &mut frame) {
            let is_for_it = transmit.destinations.contains(&self.address);
            let challenge = challenge_in(&frame[..transmit.len]);
            if is_for_it && !challenge.is_empty() {
                return self.answer_challenge(node, now, &challenge);
            }
        }
    }

    /// Answers a challenge.
    pub fn answer_challenge(&self, node: &mut Participant, now: Instant, challenge: &[Heartbeat]) {
        let to = node.guid().prefix;
        self.say(node, now, |message| {
            message.info_destination(to).expect("it fits");
            for heartbeat in challenge {
                message.acknack(&answer(heartbeat)).expect("it fits");
            }
        });
    }

    /// Sends a farewell. A later announcement has a higher number, so the puppet can return.
    pub fn leave(&self, node: &mut Participant, now: Instant) {
        let sn = self.spdp_sn.get();
        self.spdp_sn.set(sn + 2);
        let key = ParticipantData::key_payload(self.guid(EntityId::PARTICIPANT));
        let mut inline = takt_wire::inline_qos::InlineQosBuilder::<32>::new();
        inline.status_info(3).expect("it fits");
        let inline_qos = inline.finish().expect("it fits").to_vec();
        self.say(node, now, |message| {
            let data = data(EntityId::SPDP_WRITER, sn + 1, Payload::Key(&key));
            message.data(&DataEmit { inline_qos: Some(&inline_qos), ..data }).expect("it fits");
        });
    }

    pub fn publish(&mut self, node: &mut Participant, now: Instant, data: &PublicationData) {
        self.announce(node, now, EntityId::SEDP_PUB_WRITER, Payload::Data(&data.to_bytes()));
    }

    pub fn subscribe(&mut self, node: &mut Participant, now: Instant, data: &SubscriptionData) {
        self.announce(node, now, EntityId::SEDP_SUB_WRITER, Payload::Data(&data.to_bytes()));
    }

    /// Acknowledges the announcements of all `writers` writers of the participant under test, so
    /// that they count its readers as matched.
    pub fn acknowledge_writers(&self, node: &mut Participant, now: Instant, writers: i64) {
        let to = node.guid().prefix;
        // Samples of SEDP writers have numbers above those of challenges.
        let next = SequenceNumber((1 << 16) + writers + 1);
        let acknack = AckNack {
            reader: EntityId::SEDP_PUB_READER,
            writer: EntityId::SEDP_PUB_WRITER,
            reader_sn_state: SequenceNumberSet::new(next),
            count: 1_000,
            is_final: true,
        };
        self.say(node, now, |message| {
            message.info_destination(to).expect("it fits");
            message.acknack(&acknack).expect("it fits");
        });
    }

    /// Sends the next change of a builtin writer, after a heartbeat.
    pub fn announce(&mut self, node: &mut Participant, now: Instant, writer: EntityId, payload: Payload<'_>) {
        let sn = self.next_number(writer);
        let heartbeat = self.heartbeat(writer, 1, sn);
        self.say(node, now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            message.data(&data(writer, sn, payload)).expect("it fits");
        });
    }

    /// Returns the number of the next change of a builtin writer.
    pub fn next_number(&mut self, writer: EntityId) -> i64 {
        let Some(index) = BUILTIN_WRITERS.iter().position(|known| *known == writer) else {
            self.spdp_sn.set(self.spdp_sn.get() + 1);
            return self.spdp_sn.get();
        };
        self.written[index] += 1;
        self.written[index]
    }

    /// Returns a heartbeat with the next count.
    pub fn heartbeat(&mut self, writer: EntityId, first: i64, last: i64) -> Heartbeat {
        self.count += 1;
        Heartbeat {
            reader: EntityId::UNKNOWN,
            writer,
            first_sn: SequenceNumber(first),
            last_sn: SequenceNumber(last),
            count: self.count,
            is_final: false,
            liveliness: false,
            group: None,
        }
    }

    /// Returns a writer of the topic `T` with the network's specification, reliable or not.
    pub fn publication(&self, key: u32, reliable: bool) -> PublicationData {
        let mut data = PublicationData {
            guid: self.guid(EntityId::user_writer(key, false)),
            topic_name: "T".into(),
            type_name: "Test".into(),
            ..PublicationData::default()
        };
        data.qos.reliability = if reliable { crate::network::reliable() } else { crate::network::best_effort() };
        data
    }

    /// Returns a reader of the topic `T`, reliable or not.
    pub fn subscription(&self, key: u32, reliable: bool) -> SubscriptionData {
        let mut data = SubscriptionData {
            guid: self.guid(EntityId::user_reader(key, false)),
            topic_name: "T".into(),
            type_name: "Test".into(),
            ..SubscriptionData::default()
        };
        data.qos.reliability = if reliable { crate::network::reliable() } else { crate::network::best_effort() };
        data
    }
}

/// Returns the number of an announcement, and whether it is a farewell.
pub fn spdp_number(datagram: &[u8]) -> Option<(i64, bool)> {
    let message = MessageView::parse(datagram).expect("what we send is well formed");
    message.submessages().find_map(|submessage| match submessage {
        Ok(Submessage::Data(data)) if data.writer == EntityId::SPDP_WRITER => {
            Some((data.sn.0, matches!(data.payload, Payload::Key(_))))
        }
        _ => None,
    })
}

/// Returns the heartbeats without samples, which a participant on probation has to acknowledge.
pub fn challenge_in(datagram: &[u8]) -> Vec<Heartbeat> {
    let message = MessageView::parse(datagram).expect("what we send is well formed");
    let heartbeats = message.submessages().map(|submessage| match submessage.expect("what we send is well formed") {
        Submessage::Heartbeat(heartbeat) => Some(heartbeat),
        _ => None,
    });
    let is_challenge = |heartbeat: &Heartbeat| {
        heartbeat.last_sn < heartbeat.first_sn && (1 << 15..1 << 16).contains(&heartbeat.first_sn.0)
    };
    heartbeats.flatten().filter(is_challenge).collect()
}

/// Returns the acknowledgment of a reader that has everything such a heartbeat offers.
pub fn answer(challenge: &Heartbeat) -> AckNack {
    AckNack {
        reader: challenge.reader,
        writer: challenge.writer,
        reader_sn_state: SequenceNumberSet::new(challenge.first_sn),
        count: 0,
        is_final: true,
    }
}

/// Returns a change for all readers, without inline QoS.
pub fn data<'a>(writer: EntityId, sn: i64, payload: Payload<'a>) -> DataEmit<'a> {
    DataEmit { reader: EntityId::UNKNOWN, writer, sn: SequenceNumber(sn), inline_qos: None, payload }
}

/// Returns one fragment of a change whose sample has `sample_size` bytes.
pub fn fragment(writer: EntityId, sn: i64, number: u32, sample_size: u32, payload: &[u8]) -> DataFragEmit<'_> {
    DataFragEmit {
        reader: EntityId::UNKNOWN,
        writer,
        sn: SequenceNumber(sn),
        fragment_starting_num: number,
        fragments_in_submessage: 1,
        fragment_size: payload.len() as u16,
        sample_size,
        inline_qos: None,
        key: false,
        payload,
    }
}

/// Returns all pending datagrams of a participant, with their destinations.
pub fn outgoing(node: &mut Participant, now: Instant) -> Vec<(Vec<Locator>, Vec<u8>)> {
    let mut frame = vec![0; 65_507];
    let mut all = Vec::new();
    while let Some(transmit) = node.poll_transmit(now, &mut frame) {
        let (len, destinations) = (transmit.len, transmit.destinations.to_vec());
        all.push((destinations, frame[..len].to_vec()));
        assert!(all.len() < 100_000, "poll_transmit comes to an end");
    }
    all
}

/// Runs the participant's timers for `ms` milliseconds, and returns the datagrams sent meanwhile.
pub fn run_alone(node: &mut Participant, now: &mut Instant, ms: u64) -> Vec<(Vec<Locator>, Vec<u8>)> {
    let end = Instant(now.0 + ms * 1_000_000);
    let mut sent = outgoing(node, *now);
    while let Some(due) = node.poll_timeout().filter(|due| *due <= end) {
        *now = due.max(*now);
        node.handle_timeout(*now);
        sent.extend(outgoing(node, *now));
    }
    *now = end;
    sent
}

/// Applies `test` to each submessage of the datagrams; returns how often it was true.
pub fn count(sent: &[(Vec<Locator>, Vec<u8>)], test: impl Fn(&Submessage<'_>) -> bool) -> usize {
    let mut count = 0;
    for (_, datagram) in sent {
        let message = MessageView::parse(datagram).expect("what we send is well formed");
        for submessage in message.submessages() {
            count += usize::from(test(&submessage.expect("what we send is well formed")));
        }
    }
    count
}
