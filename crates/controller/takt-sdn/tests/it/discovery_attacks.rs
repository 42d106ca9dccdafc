//! Tests of attacks on discovery: forged messages of a participant, floods, limits, and invalid
//! octets.

use std::net::SocketAddr;

use takt_openflow::channel::Instant;
use takt_packet::{MacAddress, VlanTag};
use takt_sdn::PortRef;
use takt_sdn::discovery::{Config, Decision, Event, Forgery, Interceptor, Limit, Limits};
use takt_sdn::frame::{Frame, UdpFrame};
use takt_wire::builder::{DataEmit, DataFragEmit, MessageBuilder};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData, key_payload};
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::message::Header;
use takt_wire::qos::UserData;
use takt_wire::{
    EntityId, Guid, GuidPrefix, Locator, MessageView, Payload, ProtocolVersion, SequenceNumber, Submessage, VendorId,
};

const GROUP: &str = "239.255.0.1:7400";

/// A simulated participant on a host.
#[derive(Clone, Copy)]
struct Puppet {
    prefix: GuidPrefix,
    address: SocketAddr,
    port: PortRef,
}

fn puppet(number: u8) -> Puppet {
    let address = SocketAddr::from(([10, 0, 0, number], 7410));
    Puppet { prefix: GuidPrefix([number; 12]), address, port: PortRef::new(1, u32::from(number)) }
}

impl Puppet {
    fn guid(&self, key: u32) -> Guid {
        Guid::new(self.prefix, EntityId::user_writer(key, false))
    }

    fn reader(&self, key: u32) -> Guid {
        Guid::new(self.prefix, EntityId::user_reader(key, false))
    }

    fn message(&self, write: impl FnOnce(&mut MessageBuilder<'_>)) -> Vec<u8> {
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::CYCLONE, prefix: self.prefix };
        let mut buffer = vec![0; 65_000];
        let mut builder = MessageBuilder::new(&mut buffer, &header).expect("the buffer has space");
        write(&mut builder);
        let len = builder.len();
        buffer.truncate(len);
        buffer
    }

    fn frame(&self, to: SocketAddr, tags: &[VlanTag], payload: &[u8]) -> Vec<u8> {
        let frame = UdpFrame {
            destination_mac: MacAddress([2, 0, 0, 0, 0, 9]),
            source_mac: MacAddress([2, 0, 0, 0, 1, 1]),
            tags,
            source: self.address,
            destination: to,
            hop_limit: 64,
            traffic_class: 0,
            payload,
        };
        frame.build().expect("the frame is valid")
    }

    fn announcement(&self) -> Vec<u8> {
        let own = vec![Locator::from(self.address)];
        let data = ParticipantData {
            guid: Guid::new(self.prefix, EntityId::PARTICIPANT),
            vendor_id: VendorId::CYCLONE,
            domain_id: Some(0),
            metatraffic_unicast: own.clone(),
            default_unicast: own,
            ..ParticipantData::default()
        };
        self.spdp(&data)
    }

    fn spdp(&self, data: &ParticipantData) -> Vec<u8> {
        let payload = data.to_bytes();
        self.message(|builder| data_of(builder, EntityId::SPDP_WRITER, 1, Payload::Data(&payload)))
    }

    fn join(&self, interceptor: &mut Interceptor) {
        let frame = self.frame(group(), &[], &self.announcement());
        assert_eq!(interceptor.handle(Instant(0), self.port, &frame), Decision::Pass);
    }

    fn publication(&self, key: u32, topic: &str, number: i64) -> Vec<u8> {
        let mut data = PublicationData { guid: self.guid(key), ..PublicationData::default() };
        data.topic_name = topic.into();
        data.type_name = "Test".into();
        data.qos.user_data = UserData(b"rt.minsep=5ms;rt.maxsize=100".to_vec());
        let payload = data.to_bytes();
        self.message(|builder| data_of(builder, EntityId::SEDP_PUB_WRITER, number, Payload::Data(&payload)))
    }

    fn subscription(&self, key: u32, topic: &str, number: i64) -> Vec<u8> {
        let mut data = SubscriptionData { guid: self.reader(key), ..SubscriptionData::default() };
        data.topic_name = topic.into();
        data.type_name = "Test".into();
        data.qos.user_data = UserData(b"rt.e2e=1ms".to_vec());
        let payload = data.to_bytes();
        self.message(|builder| data_of(builder, EntityId::SEDP_SUB_WRITER, number, Payload::Data(&payload)))
    }

    fn send(&self, interceptor: &mut Interceptor, to: &Puppet, message: &[u8]) -> Decision {
        let frame = self.frame(to.address, &[], message);
        interceptor.handle(Instant(1), self.port, &frame)
    }
}

fn data_of(builder: &mut MessageBuilder<'_>, writer: EntityId, number: i64, payload: Payload<'_>) {
    let mut inline = InlineQosBuilder::<32>::new();
    inline.status_info(3).expect("the buffer has space");
    let status = inline.finish().expect("the buffer has space").to_vec();
    let inline_qos = matches!(payload, Payload::Key(_)).then_some(&status[..]);
    let emit = DataEmit { reader: EntityId::UNKNOWN, writer, sn: SequenceNumber(number), inline_qos, payload };
    builder.data(&emit).expect("the buffer has space");
}

fn group() -> SocketAddr {
    GROUP.parse().expect("a valid address")
}

fn joined(config: Config) -> (Interceptor, Puppet, Puppet) {
    let mut interceptor = Interceptor::new(config);
    let (one, other) = (puppet(1), puppet(2));
    one.join(&mut interceptor);
    other.join(&mut interceptor);
    events(&mut interceptor);
    (interceptor, one, other)
}

fn events(interceptor: &mut Interceptor) -> Vec<Event> {
    std::iter::from_fn(|| interceptor.poll_event()).collect()
}

/// Decision to forward nothing.
fn dropped() -> Decision {
    Decision::Replace(Vec::new())
}

/// Returns the sequence numbers in a decision's frames: DATA as (number, 0), GAP as (start, base).
fn delivered(decision: &Decision) -> Vec<(i64, i64)> {
    let Decision::Replace(frames) = decision else { panic!("the frame was not replaced") };
    let mut all = Vec::new();
    for bytes in frames {
        let frame = Frame::parse(bytes).expect("a frame");
        let (_, datagram) = frame.udp().expect("a datagram");
        for submessage in MessageView::parse(datagram.payload()).expect("a message").submessages() {
            match submessage.expect("well formed") {
                Submessage::Data(data) => all.push((data.sn.0, 0)),
                Submessage::Gap(gap) => all.push((gap.gap_start.0, gap.gap_list.base().0)),
                _ => {}
            }
        }
    }
    all
}

#[test]
fn announcements_from_another_port_or_address_are_dropped_and_reported() {
    let (mut interceptor, one, other) = joined(Config::default());
    let publication = one.publication(1, "Topic", 1);
    let elsewhere = Puppet { port: other.port, ..one };
    let stolen = Puppet { address: other.address, port: other.port, ..one };
    for forger in [elsewhere, stolen] {
        for message in [&publication, &one.announcement()] {
            assert_eq!(forger.send(&mut interceptor, &other, message), dropped());
            let expected = Event::Forged {
                participant: one.prefix,
                port: forger.port,
                source: forger.address,
                what: Forgery::ForeignSource,
            };
            assert_eq!(events(&mut interceptor), [expected]);
        }
    }
    assert_eq!(interceptor.counters().forged, 4);
    assert_eq!(one.send(&mut interceptor, &other, &publication), Decision::Pass);
}

#[test]
fn spoofed_disposals_of_participants_and_endpoints_change_nothing() {
    let (mut interceptor, one, other) = joined(Config::default());
    one.send(&mut interceptor, &other, &one.publication(1, "Topic", 1));
    assert_eq!(delivered_or_passed(&other.send(&mut interceptor, &one, &other.subscription(1, "Topic", 1))), []);
    let pairs: Vec<_> = interceptor.pairs().collect();
    assert_eq!(pairs.len(), 1);
    let participant_disposal = key_payload(Guid::new(one.prefix, EntityId::PARTICIPANT));
    let disposal = key_payload(one.guid(1));
    let forger = Puppet { address: other.address, port: other.port, ..one };
    for (writer, key) in [(EntityId::SPDP_WRITER, &participant_disposal), (EntityId::SEDP_PUB_WRITER, &disposal)] {
        let message = one.message(|builder| data_of(builder, writer, 2, Payload::Key(key)));
        assert_eq!(forger.send(&mut interceptor, &other, &message), dropped());
        // The same key is legal in a message of the other participant.
        let message = other.message(|builder| data_of(builder, writer, 2, Payload::Key(key)));
        assert_ne!(other.send(&mut interceptor, &one, &message), Decision::Pass);
    }
    assert_eq!(interceptor.pairs().collect::<Vec<_>>(), pairs);
    let true_one =
        one.message(|builder| data_of(builder, EntityId::SPDP_WRITER, 2, Payload::Key(&participant_disposal)));
    assert_eq!(one.send(&mut interceptor, &other, &true_one), Decision::Pass);
    assert_eq!((interceptor.pairs().count(), interceptor.participants().count()), (0, 1));
}

fn delivered_or_passed(decision: &Decision) -> Vec<(i64, i64)> {
    if *decision == Decision::Pass { Vec::new() } else { delivered(decision) }
}

#[test]
fn endpoint_of_another_participant_is_withheld() {
    let (mut interceptor, one, other) = joined(Config::default());
    let payload = PublicationData {
        guid: one.guid(1),
        topic_name: "Topic".into(),
        type_name: "Test".into(),
        ..PublicationData::default()
    }
    .to_bytes();
    let message = other.message(|builder| data_of(builder, EntityId::SEDP_PUB_WRITER, 5, Payload::Data(&payload)));
    assert_eq!(delivered(&other.send(&mut interceptor, &one, &message)), [(5, 6)]);
    let found = events(&mut interceptor);
    assert!(matches!(found[..], [Event::Forged { what: Forgery::ForeignEndpoint, .. }]), "{found:?}");
}

#[test]
fn participant_without_a_locator_of_its_own_is_refused() {
    let mut interceptor = Interceptor::new(Config::default());
    let (one, victim) = (puppet(1), puppet(2));
    let data = ParticipantData {
        guid: Guid::new(one.prefix, EntityId::PARTICIPANT),
        metatraffic_unicast: vec![Locator::from(victim.address)],
        ..ParticipantData::default()
    };
    assert_eq!(one.send(&mut interceptor, &victim, &one.spdp(&data)), dropped());
    assert!(matches!(events(&mut interceptor)[..], [Event::Forged { what: Forgery::ForeignLocators, .. }]));
    assert_eq!(interceptor.participants().count(), 0);
}

#[test]
fn endpoints_of_unknown_participants_are_dropped() {
    let mut interceptor = Interceptor::new(Config::default());
    let (one, other) = (puppet(1), puppet(2));
    other.join(&mut interceptor);
    assert_eq!(one.send(&mut interceptor, &other, &one.publication(1, "Topic", 1)), dropped());
    assert_eq!(interceptor.counters().unknown_participants, 1);
}

#[test]
fn flood_of_participants_from_one_address_is_limited() {
    let mut interceptor = Interceptor::new(Config::default());
    let per_address = Limits::default().participants_per_address;
    for number in 0..5_000_u32 {
        let mut one = puppet(1);
        one.prefix.0[8..].copy_from_slice(&number.to_be_bytes());
        let frame = one.frame(group(), &[], &one.announcement());
        interceptor.handle(Instant(0), one.port, &frame);
    }
    assert_eq!(interceptor.participants().count(), per_address);
    assert_eq!(interceptor.counters().limited, 5_000 - per_address as u64);
    let other = puppet(2);
    other.join(&mut interceptor);
    assert!(interceptor.participants().any(|data| data.guid.prefix == other.prefix));
}

#[test]
fn frames_of_a_flooding_host_are_dropped_and_others_pass() {
    let limits = Limits { frames_burst: 50, frames_per_second: 10, ..Limits::default() };
    let (mut interceptor, one, other) = joined(Config { limits, ..Config::default() });
    let message = one.publication(1, "Topic", 1);
    for _ in 0..1_000 {
        one.send(&mut interceptor, &other, &message);
    }
    assert_eq!(interceptor.counters().floods, 950);
    assert_eq!(other.send(&mut interceptor, &one, &other.publication(1, "Topic", 1)), Decision::Pass);
    let frame = one.frame(other.address, &[], &message);
    assert_eq!(interceptor.handle(Instant(200_000_000), one.port, &frame), Decision::Pass, "tokens come back");
}

#[test]
fn endpoints_beyond_the_limits_are_withheld() {
    let limits = Limits { endpoints_per_participant: 3, endpoints_per_topic: 4, ..Limits::default() };
    let (mut interceptor, one, other) = joined(Config { limits, ..Config::default() });
    for key in 1..=3 {
        assert_eq!(one.send(&mut interceptor, &other, &one.publication(key, "Topic", i64::from(key))), Decision::Pass);
    }
    let refused = one.send(&mut interceptor, &other, &one.publication(4, "Topic", 4));
    assert_eq!(delivered(&refused), [(4, 5)]);
    let expected = Event::LimitReached { participant: one.prefix, limit: Limit::EndpointsPerParticipant };
    assert_eq!(events(&mut interceptor), [expected]);
    // A disposed endpoint no longer counts.
    let key = key_payload(one.guid(2));
    let disposal = one.message(|builder| data_of(builder, EntityId::SEDP_PUB_WRITER, 5, Payload::Key(&key)));
    assert_eq!(one.send(&mut interceptor, &other, &disposal), Decision::Pass);
    assert_eq!(one.send(&mut interceptor, &other, &one.publication(6, "Topic", 6)), Decision::Pass);
}

#[test]
fn older_announcement_does_not_restore_a_disposed_endpoint() {
    let (mut interceptor, one, other) = joined(Config::default());
    let announcement = one.publication(1, "Topic", 1);
    one.send(&mut interceptor, &other, &announcement);
    let key = key_payload(one.guid(1));
    let disposal = one.message(|builder| data_of(builder, EntityId::SEDP_PUB_WRITER, 2, Payload::Key(&key)));
    one.send(&mut interceptor, &other, &disposal);
    assert_eq!(one.send(&mut interceptor, &other, &announcement), Decision::Pass);
    other.send(&mut interceptor, &one, &other.subscription(1, "Topic", 1));
    assert_eq!(interceptor.pairs().count(), 0);
}

#[test]
fn incomplete_fragments_are_discarded_and_never_pass() {
    let limits = Limits { reassemblies: 8, ..Limits::default() };
    let (mut interceptor, one, other) = joined(Config { limits, ..Config::default() });
    for number in 1..100 {
        let message = one.message(|builder| {
            let emit = DataFragEmit {
                reader: EntityId::UNKNOWN,
                writer: EntityId::SEDP_PUB_WRITER,
                sn: SequenceNumber(number),
                fragment_starting_num: 1,
                fragment_size: 1000,
                sample_size: 60_000,
                inline_qos: None,
                key: false,
                payload: &[0; 1000],
                fragments_in_submessage: 1,
            };
            builder.data_frag(&emit).expect("the buffer has space");
        });
        assert_eq!(one.send(&mut interceptor, &other, &message), dropped());
    }
    assert_eq!(interceptor.counters().unfinished, 91);
    interceptor.handle_timeout(Instant(11_000_000_000));
    assert_eq!(interceptor.counters().unfinished, 99);
}

#[test]
fn unreadable_announcement_is_withheld() {
    let (mut interceptor, one, other) = joined(Config::default());
    let message =
        one.message(|builder| data_of(builder, EntityId::SEDP_SUB_WRITER, 3, Payload::Data(&[0, 3, 0, 0, 1, 2, 3, 4])));
    assert_eq!(delivered(&one.send(&mut interceptor, &other, &message)), [(3, 4)]);
    assert_eq!(interceptor.counters().malformed, 1);
}

#[test]
fn secured_discovery_passes_and_is_reported_once() {
    let (mut interceptor, one, other) = joined(Config::default());
    let secured = EntityId([0xff, 0, 3, 0xc2]);
    let message = one.message(|builder| data_of(builder, secured, 1, Payload::Data(&[0; 16])));
    let mut protected = one.message(|_| {});
    protected.extend([0x31, 1, 4, 0, 9, 9, 9, 9]);
    for message in [&message, &message, &protected] {
        assert_eq!(one.send(&mut interceptor, &other, message), Decision::Pass);
    }
    assert_eq!(events(&mut interceptor), [Event::Opaque { participant: one.prefix }]);
    assert_eq!(interceptor.counters().opaque, 3);
}

#[test]
fn tagged_frames_and_ipv6_are_treated_like_untagged_ipv4() {
    let mut interceptor = Interceptor::new(Config::default());
    let tags = [VlanTag { pcp: 5, dei: false, vid: 7 }];
    let on_ipv6 = |number: u8| {
        let address = format!("[fd00::{number}]:7410").parse().expect("a valid address");
        Puppet { address, ..puppet(number) }
    };
    let (one, other) = (on_ipv6(1), on_ipv6(2));
    for puppet in [one, other] {
        let frame =
            puppet.frame("[ff02::ffff:239.255.0.1]:7400".parse().expect("valid"), &tags, &puppet.announcement());
        assert_eq!(interceptor.handle(Instant(0), puppet.port, &frame), Decision::Pass);
    }
    let frame = one.frame(other.address, &tags, &one.publication(1, "Topic", 1));
    assert_eq!(interceptor.handle(Instant(0), one.port, &frame), Decision::Pass);
    let frame = other.frame(one.address, &tags, &other.subscription(1, "Topic", 1));
    assert_eq!(interceptor.handle(Instant(0), other.port, &frame), dropped(), "held");
    let pair = interceptor.pairs().next().expect("the pair matches");
    interceptor.release(Instant(0), pair).expect("the pair is known");
    let emission = interceptor.poll_frame().expect("the announcement");
    let frame = Frame::parse(&emission.frame).expect("a frame");
    let (packet, datagram) = frame.udp().expect("a datagram");
    assert_eq!((frame.vlan(), packet.destination(), datagram.destination_port()), (7, one.address.ip(), 7410));
    assert_eq!(emission.from, other.port);
}

#[test]
fn announcements_in_one_datagram_are_decided_separately() {
    let (mut interceptor, one, other) = joined(Config::default());
    one.send(&mut interceptor, &other, &one.publication(1, "Held", 1));
    let both = other.message(|builder| {
        for (number, topic) in [(1, "Held"), (2, "Free")] {
            let mut data = SubscriptionData {
                guid: other.reader(number),
                topic_name: topic.into(),
                type_name: "Test".into(),
                ..SubscriptionData::default()
            };
            data.qos.user_data = UserData(b"rt.e2e=1ms".to_vec());
            let payload = data.to_bytes();
            data_of(builder, EntityId::SEDP_SUB_WRITER, i64::from(number), Payload::Data(&payload));
        }
    });
    assert_eq!(delivered(&other.send(&mut interceptor, &one, &both)), [(2, 0)]);
    // On repetition, the passed announcement passes again, and the held one stays held.
    assert_eq!(delivered(&other.send(&mut interceptor, &one, &both)), [(2, 0)]);
    assert_eq!(interceptor.counters().held, 1);
}

#[test]
fn multicast_announcement_is_rewritten_for_each_participant() {
    let (mut interceptor, one, other) = joined(Config::default());
    let third = puppet(3);
    third.join(&mut interceptor);
    one.send(&mut interceptor, &other, &one.publication(1, "Held", 1));
    let frame = other.frame(group(), &[], &other.subscription(1, "Held", 1));
    let decision = interceptor.handle(Instant(1), other.port, &frame);
    let Decision::Replace(frames) = decision else { panic!("the frame was not replaced") };
    let destinations: Vec<GuidPrefix> = frames
        .iter()
        .flat_map(|bytes| {
            let frame = Frame::parse(bytes).expect("a frame");
            let (_, datagram) = frame.udp().expect("a datagram");
            let view = MessageView::parse(datagram.payload()).expect("a message");
            let all: Vec<_> = view.submessages().filter_map(Result::ok).collect();
            all.iter()
                .filter_map(|submessage| match submessage {
                    Submessage::InfoDestination(prefix) => Some(*prefix),
                    _ => None,
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(destinations, [third.prefix], "the participant that would match waits");
}

#[test]
fn ip_fragments_of_udp_are_dropped_and_other_frames_pass() {
    let (mut interceptor, one, other) = joined(Config::default());
    let mut frame = one.frame(other.address, &[], &one.publication(1, "Topic", 1));
    // "More fragments" instead of "don't fragment": the header checksum changes by the difference.
    frame[20] = 0x20;
    let checksum = u32::from(u16::from_be_bytes([frame[24], frame[25]])) + 0x2000;
    let folded = (checksum & 0xffff) as u16 + (checksum >> 16) as u16;
    frame[24..26].copy_from_slice(&folded.to_be_bytes());
    assert_eq!(interceptor.handle(Instant(1), one.port, &frame), dropped());
    assert_eq!(interceptor.counters().ip_fragments, 1);
    let frame = one.frame(other.address, &[], b"no RTPS at all");
    assert_eq!(interceptor.handle(Instant(1), one.port, &frame), Decision::Pass);
    for len in 0..frame.len() {
        interceptor.handle(Instant(1), one.port, &frame[..len]);
    }
}

#[test]
fn damaged_frames_of_discovery_never_panic() {
    let mut random = takt_testkit::Random(1);
    let mut roll = move |sides: usize| random.below(sides);
    let one = puppet(1);
    let messages = [
        one.announcement(),
        one.publication(1, "Topic", 1),
        one.subscription(2, "Topic", 1),
        one.message(|builder| data_of(builder, EntityId::SEDP_PUB_WRITER, 2, Payload::Key(&key_payload(one.guid(1))))),
    ];
    for _ in 0..200 {
        let (mut interceptor, one, other) = joined(Config::default());
        other.send(&mut interceptor, &one, &other.publication(1, "Topic", 1));
        for step in 0..60 {
            let mut message = messages[roll(messages.len())].clone();
            for _ in 0..roll(4) {
                let at = 20 + roll(message.len() - 20);
                message[at] = roll(256) as u8;
            }
            message.truncate(20 + roll(message.len() - 19));
            one.send(&mut interceptor, &other, &message);
            let pair = interceptor.pairs().next();
            if let Some(pair) = pair {
                let _ = interceptor.refuse(Instant(step), pair, "no room");
                let _ = interceptor.release(Instant(step), pair);
            }
            interceptor.handle_timeout(Instant(step * 100_000_000));
            while interceptor.poll_frame().is_some() {}
        }
    }
}
