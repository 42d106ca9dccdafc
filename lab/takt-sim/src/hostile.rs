//! Hostile host: it receives what any host receives, and sends arbitrary datagrams from arbitrary
//! addresses.
//!
//! The host forges announcements that name a victim, floods, validates its own address and then
//! abuses discovery. It also replays, truncates, mixes and damages received datagrams. Without the
//! flag `impostor` it uses only its own GUID prefixes; all rules then hold for all other
//! participants. With the flag it also uses the prefixes of others. Without DDS Security this
//! cannot be detected, so that only the safety rules are checked
//! ([`crate::check::Rule::is_safety`]).
//!
//! In a domain under DDS Security it overhears all datagrams. It repeats handshakes and protected
//! messages, with and without changed bits, in the names of their senders and in its own. It
//! repeats messages that are protected as a whole to their receivers: these may have removed the
//! key, and received it again. It sends handshake messages with other sequence numbers, and floods
//! participants with the identity tokens of others. All rules then hold if the domain signs its
//! messages.
//!
//! The host does not match endpoints of the applications. A reliable reader that never acknowledges
//! may block its writer, and the samples of a matched writer are valid data.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::rc::Rc;

use takt_wire::builder::{DataEmit, DataFragEmit, MessageBuilder};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::{AckNack, Gap, Header, Heartbeat, MessageView, NackFrag, Payload, Submessage};
use takt_wire::qos::{History, Partition, Reliability, ReliabilityKind, UserData};
use takt_wire::{
    Duration, EntityId, FragmentNumberSet, Full, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, VendorId,
};

use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::network::Frame;
use crate::process::{GROUP, address, is_protected};
use crate::rng::Rng;

/// Maximum number of remembered datagrams.
const RECENT_MAX: usize = 64;
/// Maximum number of overheard datagrams. Later ones replace random ones, so that old ones remain.
const OVERHEARD_MAX: usize = 256;
/// Maximum number of overheard messages that are protected as a whole, for each sender and
/// destination: the first ones, so that their keys may have been removed meanwhile.
const PROTECTED_MAX: usize = 16;
/// Maximum number of overheard handshake messages, or fragments of them.
const HANDSHAKES_MAX: usize = 64;
/// Number of GUID prefixes that the host reuses. The first one, the hoarder, announces many
/// endpoints and conforms to the protocol otherwise.
const NAMES: usize = 6;
/// Number of endpoints that the hoarder announces at once.
const ENDPOINTS_PER_BURST: i64 = 100;
/// First octets of the host's own GUID prefixes, which no other participant has.
const OWN: [u8; 4] = [9, 9, 0xba, 0xd0];
/// Extreme values for requests and offers.
const ABSURD: [i64; 8] = [1, 2, 255, 32_768, 65_536, 65_537, 1 << 40, i64::MAX - 1];

/// Plan of the hostile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostilePlan {
    /// Index of the host.
    pub host: usize,
    /// Start time.
    pub start: Nanos,
    /// Time between two bursts.
    pub period: Nanos,
    /// Number of datagrams per burst.
    pub burst: u64,
    /// Whether the host uses GUID prefixes of others.
    pub impostor: bool,
    /// Whether the host overhears all datagrams, and attacks handshakes and protected messages.
    pub attacks_domain: bool,
}

impl HostilePlan {
    /// Creates the plan that a seed determines.
    #[must_use]
    pub fn of_seed(seed: u64, hosts: usize, active: Nanos) -> Self {
        let mut rng = Rng::new(seed ^ 0x6861_726d);
        Self {
            host: rng.below(hosts as u64) as usize,
            start: rng.below(active / 2),
            period: rng.between(1, 40) * MILLISECOND,
            burst: rng.between(1, 20),
            impostor: rng.chance(400_000),
            attacks_domain: false,
        }
    }

    /// Creates a plan for a domain under DDS Security. The bursts are few, since their datagrams
    /// cost signatures.
    #[must_use]
    pub fn of_domain(rng: &mut Rng, hosts: usize, active: Nanos) -> Self {
        Self {
            host: rng.below(hosts as u64) as usize,
            start: if rng.chance(500_000) { 0 } else { rng.below(active / 2) },
            period: rng.between(5, 40) * MILLISECOND,
            burst: rng.between(1, 6),
            impostor: true,
            attacks_domain: true,
        }
    }
}

/// Duration of the bursts. It exceeds that of all worlds except those of several hours, in which
/// the host would send 100 million datagrams.
pub const BURSTS_FOR: Nanos = 60 * SECOND;

/// Returns the address that forged announcements name. No host has this address.
#[must_use]
pub fn victim() -> Locator {
    Locator::udp_v4(Ipv4Addr::new(10, 0, 255, 9), 60_001)
}

/// Reports whether a datagram contains the address of the victim.
#[must_use]
pub fn names_victim(datagram: &[u8]) -> bool {
    let address = victim().address;
    datagram.windows(4).any(|octets| octets == &address[12..])
}

/// Reports whether a GUID prefix belongs to the hostile host.
#[must_use]
pub fn is_own(prefix: GuidPrefix) -> bool {
    prefix.0.starts_with(&OWN)
}

/// A datagram to send: source address, destination address, payload.
pub type OutgoingDatagram = (Locator, Locator, Rc<[u8]>);

/// Running hostile host.
pub struct Hostile {
    /// Plan of the host.
    pub plan: HostilePlan,
    own_address: Locator,
    rng: Rng,
    recent: VecDeque<Rc<[u8]>>,
    /// Overheard datagrams, those of the stateless endpoints apart.
    overheard: Vec<Rc<[u8]>>,
    handshakes: VecDeque<Rc<[u8]>>,
    /// Overheard messages that are protected as a whole, with their senders and destinations.
    protected: Vec<(GuidPrefix, Locator, Rc<[u8]>)>,
    /// Participants from which the host has received, with their addresses.
    participants: Vec<(GuidPrefix, Locator)>,
    names: Vec<GuidPrefix>,
    count: i32,
    fresh: u32,
    /// Number of endpoints that the hoarder has announced.
    announced_endpoints: i64,
    outgoing: Vec<OutgoingDatagram>,
}

impl Hostile {
    /// Creates the host. `index` follows those of all processes and determines its address.
    #[must_use]
    pub fn new(plan: HostilePlan, index: usize, seed: u64) -> Self {
        let name = |number| own_name(0, number as u32);
        Self {
            plan,
            own_address: address(plan.host, index),
            rng: Rng::new(seed ^ 0x6576_696c),
            recent: VecDeque::new(),
            overheard: Vec::new(),
            handshakes: VecDeque::new(),
            protected: Vec::new(),
            participants: Vec::new(),
            names: (0..NAMES).map(name).collect(),
            count: 0,
            fresh: 0,
            announced_endpoints: 0,
            outgoing: Vec::new(),
        }
    }

    /// Handles a datagram. Immediate answers are in [`Self::take_datagrams`].
    pub fn receive(&mut self, frame: &Frame) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(Rc::clone(&frame.bytes));
        let Ok(message) = MessageView::parse(&frame.bytes) else { return };
        let from = message.header().prefix;
        if !is_own(from) && !self.participants.iter().any(|(known, _)| *known == from) {
            self.participants.push((from, frame.source));
        }
        let mut to = GuidPrefix::default();
        for submessage in message.submessages() {
            match submessage {
                Ok(Submessage::InfoDestination(prefix)) => to = prefix,
                Ok(Submessage::Heartbeat(heartbeat)) if heartbeat.last_sn < heartbeat.first_sn => {
                    self.answer(to, from, frame.source, &heartbeat);
                }
                _ => {}
            }
        }
    }

    /// Stores a datagram that is sent to somebody else.
    pub fn overhear(&mut self, to: Locator, datagram: &Rc<[u8]>) {
        if is_protected(datagram) {
            let sender = sender_of(datagram);
            let known = self.protected.iter().filter(|(from, at, _)| (*from, *at) == (sender, to));
            if known.count() < PROTECTED_MAX {
                self.protected.push((sender, to, Rc::clone(datagram)));
            }
        }
        if writer_sn_offset(datagram, EntityId::STATELESS_MESSAGE_WRITER).is_some() {
            if self.handshakes.len() == HANDSHAKES_MAX {
                self.handshakes.pop_front();
            }
            self.handshakes.push_back(Rc::clone(datagram));
        } else if self.overheard.len() < OVERHEARD_MAX {
            self.overheard.push(Rc::clone(datagram));
        } else if self.rng.chance(50_000) {
            let at = self.rng.below(OVERHEARD_MAX as u64) as usize;
            self.overheard[at] = Rc::clone(datagram);
        }
    }

    /// Answers a challenge. Most of the prefixes validate the real address of the host.
    fn answer(&mut self, name: GuidPrefix, from: GuidPrefix, at: Locator, challenge: &Heartbeat) {
        if !self.names.contains(&name) || self.rng.chance(200_000) {
            return;
        }
        let answer = AckNack {
            reader: challenge.reader,
            writer: challenge.writer,
            reader_sn_state: SequenceNumberSet::new(challenge.first_sn),
            count: 0,
            is_final: true,
        };
        let bytes = build(name, |message| {
            message.info_destination(from)?;
            message.acknack(&answer)
        });
        self.outgoing.push((self.own_address, at, bytes));
    }

    /// Returns the datagrams to send now.
    pub fn take_datagrams(&mut self) -> Vec<OutgoingDatagram> {
        std::mem::take(&mut self.outgoing)
    }

    /// Creates one burst.
    pub fn send_burst(&mut self) {
        for _ in 0..self.plan.burst {
            let name = self.name();
            let is_on_domain = self.plan.attacks_domain && self.rng.chance(600_000);
            if is_on_domain && self.rng.chance(400_000) {
                self.repeat_protected_message();
                continue;
            }
            let bytes = match self.rng.below(11) {
                _ if is_on_domain => self.attack_domain(name),
                0 => self.flood(),
                10 => self.announce_many_endpoints(),
                1 | 2 => self.announce(name),
                3 => self.endpoint(name),
                4 => self.heartbeats(name),
                5 => self.acknowledgments(name),
                6 => self.fragments(name),
                7 => self.announce_end(name),
                8 => self.replay(name),
                _ => self.damaged(name),
            };
            let others = self.participants.len() as u64;
            let to = match self.rng.below(3) {
                0 => Locator::udp_v4(GROUP, 7400),
                _ if others > 0 => self.participants[self.rng.below(others) as usize].1,
                _ => Locator::udp_v4(GROUP, 7400),
            };
            let source = self.random_address();
            self.outgoing.push((source, to, bytes));
        }
    }

    /// Returns the GUID prefix of the next datagram.
    fn name(&mut self) -> GuidPrefix {
        let others = self.participants.len() as u64;
        if self.plan.impostor && others > 0 && self.rng.chance(300_000) {
            return self.participants[self.rng.below(others) as usize].0;
        }
        self.names[self.rng.between(1, NAMES as u64 - 1) as usize]
    }

    /// Returns an address that a datagram may claim.
    fn random_address(&mut self) -> Locator {
        let others = self.participants.len() as u64;
        match self.rng.below(4) {
            0 => victim(),
            1 if others > 0 => self.participants[self.rng.below(others) as usize].1,
            _ => self.own_address,
        }
    }

    fn number(&mut self) -> SequenceNumber {
        SequenceNumber(*self.rng.pick(&ABSURD))
    }

    fn count(&mut self) -> i32 {
        self.count += 1;
        self.count
    }

    /// Announces a participant under a new prefix, with an infinite lease.
    fn flood(&mut self) -> Rc<[u8]> {
        self.fresh += 1;
        let name = own_name(1, self.fresh);
        let at = self.random_address();
        let data = ParticipantData {
            lease_duration: if self.rng.chance(500_000) { Duration::INFINITE } else { seconds(1) },
            user_data: UserData(vec![7; self.rng.below(800) as usize]),
            ..announcement(name, at, self.random_address())
        };
        spdp(name, 1, &data)
    }

    /// Announces one of the reused prefixes, mostly with the real address and a short lease.
    fn announce(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let sn = self.count();
        let (at, default) = if self.rng.chance(800_000) {
            (self.own_address, victim())
        } else {
            (self.random_address(), self.random_address())
        };
        let data = ParticipantData {
            lease_duration: seconds(2),
            user_data: UserData(vec![8; self.rng.below(3) as usize * 300]),
            ..announcement(name, at, default)
        };
        spdp(name, sn, &data)
    }

    /// Announces as many endpoints as possible, on separate topics, and occasionally their
    /// participant.
    fn announce_many_endpoints(&mut self) -> Rc<[u8]> {
        let name = self.names[0];
        if self.rng.chance(200_000) {
            let sn = self.count();
            let announcement = announcement(name, self.own_address, self.own_address);
            return spdp(name, sn, &ParticipantData { lease_duration: seconds(2), ..announcement });
        }
        let writer = EntityId::SEDP_PUB_WRITER;
        let first = self.announced_endpoints + 1;
        self.announced_endpoints += ENDPOINTS_PER_BURST;
        let heartbeat = self.heartbeat(writer, SequenceNumber(first), SequenceNumber(self.announced_endpoints));
        build(name, |message| {
            message.heartbeat(&heartbeat)?;
            for number in first..first + ENDPOINTS_PER_BURST {
                let entity_id = EntityId::user_writer(number as u32 & 0xff_ffff, false);
                let mut hoarded = PublicationData { guid: Guid { prefix: name, entity_id }, ..Default::default() };
                (hoarded.topic_name, hoarded.type_name) = (format!("hoarded{number}"), "Sample".into());
                message.data(&data(writer, SequenceNumber(number), Payload::Data(&hoarded.to_bytes())))?;
            }
            Ok(())
        })
    }

    /// Announces an endpoint on a topic of the applications that is incompatible with theirs, has
    /// data that are too long, or is at the victim's address.
    fn endpoint(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let to = self.addressee();
        let key = 1 + self.rng.below(2_000) as u32;
        let topic_name = format!("topic{}", self.rng.below(4));
        let names = vec![format!("nobody's {}", "x".repeat(self.rng.below(200) as usize))];
        let (reliability, unicast) = (reliable(), vec![self.random_address()]);
        let sn = SequenceNumber(1 + self.rng.below(40) as i64);
        let is_writer = self.rng.chance(500_000);
        let guid = |entity_id| Guid { prefix: name, entity_id };
        let (writer, payload) = if is_writer {
            let mut data = PublicationData { guid: guid(EntityId::user_writer(key, false)), ..Default::default() };
            (data.topic_name, data.type_name) = (topic_name, "Sample".into());
            (data.unicast, data.partition) = (unicast, Partition { names });
            (data.qos.reliability, data.qos.history) = (reliability, History::KeepLast(u32::MAX));
            (EntityId::SEDP_PUB_WRITER, data.to_bytes())
        } else {
            let mut data = SubscriptionData { guid: guid(EntityId::user_reader(key, false)), ..Default::default() };
            (data.topic_name, data.type_name) = (topic_name, "Sample".into());
            (data.unicast, data.partition) = (unicast, Partition { names });
            data.qos.reliability = reliability;
            (EntityId::SEDP_SUB_WRITER, data.to_bytes())
        };
        let heartbeat = self.heartbeat(writer, SequenceNumber(1), sn);
        build(name, |message| {
            message.info_destination(to)?;
            message.heartbeat(&heartbeat)?;
            message.data(&data(writer, sn, Payload::Data(&payload)))
        })
    }

    fn heartbeat(&mut self, writer: EntityId, first_sn: SequenceNumber, last_sn: SequenceNumber) -> Heartbeat {
        let (count, is_final) = (self.count(), self.rng.chance(500_000));
        Heartbeat {
            reader: EntityId::UNKNOWN,
            writer,
            first_sn,
            last_sn,
            count,
            is_final,
            liveliness: false,
            group: None,
        }
    }

    /// Sends heartbeats that announce all sequence numbers or none, and gaps over the rest.
    fn heartbeats(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let to = self.addressee();
        let (a, b) = (self.number(), self.number());
        let writer = self.builtin_writer();
        let heartbeats: Vec<_> = (0..self.rng.between(1, 20))
            .map(|_| self.heartbeat(writer, a.min(b), if a == b { a.prev() } else { a.max(b) }))
            .collect();
        let gap = Gap { reader: EntityId::UNKNOWN, writer, gap_start: a, gap_list: SequenceNumberSet::new(b) };
        build(name, |message| {
            message.info_destination(to)?;
            heartbeats.iter().try_for_each(|heartbeat| message.heartbeat(heartbeat))?;
            message.gap(&gap)
        })
    }

    /// Requests all samples, including unwritten ones, from every possible writer.
    fn acknowledgments(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let to = self.addressee();
        let mut reader_sn_state = SequenceNumberSet::new(self.number());
        (0..256).for_each(|ahead| {
            reader_sn_state.insert(SequenceNumber(reader_sn_state.base().0.saturating_add(ahead)));
        });
        let mut fragments = FragmentNumberSet::new(1);
        (1..=256).for_each(|number| {
            fragments.insert(number);
        });
        let (count, sn) = (self.count(), self.number());
        let user = 1 + self.rng.below(8) as u32;
        let pairs = [
            (EntityId::SEDP_PUB_READER, EntityId::SEDP_PUB_WRITER),
            (EntityId::SEDP_SUB_READER, EntityId::SEDP_SUB_WRITER),
            (EntityId::user_reader(user, false), EntityId::user_writer(user, false)),
            (EntityId::user_reader(user, true), EntityId::user_writer(user, true)),
        ];
        build(name, |message| {
            message.info_destination(to)?;
            for (reader, writer) in pairs {
                message.acknack(&AckNack { reader, writer, reader_sn_state, count, is_final: false })?;
                message.nack_frag(&NackFrag { reader, writer, sn, fragments, count })?;
            }
            Ok(())
        })
    }

    /// Sends fragments of samples of the maximum size, which are never completed.
    fn fragments(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let to = self.addressee();
        let writer = self.builtin_writer();
        let sn = SequenceNumber(1 + self.rng.below(600) as i64);
        let fragment_starting_num = 1 + self.rng.below(3) as u32;
        let sample_size = *self.rng.pick(&[2_000, 200_000, 20_000_000, u32::MAX]);
        let payload = vec![5; 500];
        build(name, |message| {
            message.info_destination(to)?;
            message.data_frag(&DataFragEmit {
                reader: EntityId::UNKNOWN,
                writer,
                sn,
                fragment_starting_num,
                fragments_in_submessage: 1,
                fragment_size: payload.len() as u16,
                sample_size,
                inline_qos: None,
                key: false,
                payload: &payload,
            })
        })
    }

    fn announce_end(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let key = ParticipantData::key_payload(Guid { prefix: name, entity_id: EntityId::PARTICIPANT });
        let sn = SequenceNumber(i64::from(self.count()));
        let mut inline = takt_wire::inline_qos::InlineQosBuilder::<32>::new();
        // A dispose and an unregister, or an invalid status.
        let status = *self.rng.pick(&[1, 2, 3, 0xffff_fff0]);
        let inline_qos = inline.status_info(status).and_then(|()| inline.finish()).map(<[u8]>::to_vec);
        build(name, |message| {
            let data = data(EntityId::SPDP_WRITER, sn, Payload::Key(&key));
            message.data(&DataEmit { inline_qos: inline_qos.as_deref().ok(), ..data })
        })
    }

    /// Replays a received datagram. Without the flag `impostor`, it replaces the prefixes of others
    /// by its own.
    fn replay(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let Some(bytes) = self.remembered_datagram() else { return self.announce(name) };
        if self.plan.impostor && self.rng.chance(500_000) {
            return bytes;
        }
        self.impersonate(name, bytes.to_vec())
    }

    /// Replays a received datagram that is truncated, mixed with another one, extended, or changed
    /// in some octets.
    fn damaged(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        let (Some(bytes), Some(other)) = (self.remembered_datagram(), self.remembered_datagram()) else {
            return self.announce(name);
        };
        let mut bytes = bytes.to_vec();
        let offset = |rng: &mut Rng, len: usize| rng.below(len.max(1) as u64) as usize;
        match self.rng.below(4) {
            0 => bytes.truncate(offset(&mut self.rng, bytes.len())),
            1 => bytes.extend_from_slice(other.get(20..).unwrap_or_default()),
            2 => {
                let at = offset(&mut self.rng, bytes.len());
                bytes.splice(at..at, other.iter().copied().take(40));
            }
            _ => {
                for _ in 0..self.rng.between(1, 6) {
                    let at = offset(&mut self.rng, bytes.len());
                    let value = *self.rng.pick(&[0, 1, 0x7f, 0x80, 0xff, 4, 28]);
                    if let Some(octet) = bytes.get_mut(at) {
                        *octet = value;
                    }
                }
            }
        }
        bytes.truncate(60_000);
        self.impersonate(name, bytes)
    }

    fn remembered_datagram(&mut self) -> Option<Rc<[u8]>> {
        let at = self.rng.below((self.recent.len() as u64).max(1)) as usize;
        self.recent.get(at).cloned()
    }

    /// Replaces the prefix in the header and each prefix of another participant by `name`, and the
    /// topics by others. Otherwise the endpoints of applications would match the replayed ones.
    fn impersonate(&mut self, name: GuidPrefix, mut bytes: Vec<u8>) -> Rc<[u8]> {
        if bytes.len() >= 20 {
            let from = GuidPrefix(bytes[8..20].try_into().unwrap_or_default());
            bytes[8..20].copy_from_slice(&name.0);
            for at in 20..bytes.len().saturating_sub(11) {
                if bytes[at..at + 12] == from.0 {
                    bytes[at..at + 12].copy_from_slice(&name.0);
                }
                if bytes[at..at + 5] == *b"topic" {
                    bytes[at] = b'T';
                }
            }
        }
        bytes.into()
    }

    /// Repeats an overheard datagram: unchanged, or with changed bits, another sequence number or
    /// another sender.
    fn attack_domain(&mut self, name: GuidPrefix) -> Rc<[u8]> {
        match self.rng.below(7) {
            0 | 1 => self.overheard_datagram().unwrap_or_else(|| self.flood()),
            2 => {
                let Some(bytes) = self.overheard_datagram() else { return self.flood() };
                self.flip_bits(bytes.to_vec())
            }
            3 => self.handshake_message().unwrap_or_else(|| self.flood()),
            4 => {
                let Some(bytes) = self.handshake_message() else { return self.flood() };
                let bytes = self.with_other_number(&bytes);
                if self.rng.chance(500_000) { self.flip_bits(bytes) } else { bytes.into() }
            }
            5 => {
                let Some(bytes) = self.handshake_message() else { return self.flood() };
                let bytes = self.with_other_number(&bytes);
                self.impersonate(name, bytes)
            }
            _ => {
                // A participant with an identity token, so that a handshake with it begins.
                self.fresh += 1;
                let (fresh, spdp) = (own_name(1, self.fresh), EntityId::SPDP_WRITER);
                let announcements = self.recent.iter().filter(|bytes| writer_sn_offset(bytes, spdp).is_some());
                let all: Vec<_> = announcements.cloned().collect();
                if all.is_empty() {
                    return self.flood();
                }
                let bytes = self.rng.pick(&all).to_vec();
                self.impersonate(fresh, bytes)
            }
        }
    }

    /// Repeats a message that is protected as a whole to its receivers, mostly from the address of
    /// its sender.
    fn repeat_protected_message(&mut self) {
        let at = self.rng.below((self.protected.len() as u64).max(1)) as usize;
        if let Some((sender, to, bytes)) = self.protected.get(at).cloned() {
            let known = self.participants.iter().find(|(prefix, _)| *prefix == sender).map(|(_, at)| *at);
            let source = known.filter(|_| self.rng.chance(700_000)).unwrap_or_else(|| self.random_address());
            self.outgoing.push((source, to, bytes));
        }
    }

    fn overheard_datagram(&mut self) -> Option<Rc<[u8]>> {
        let at = self.rng.below((self.overheard.len() as u64).max(1)) as usize;
        self.overheard.get(at).cloned()
    }

    fn handshake_message(&mut self) -> Option<Rc<[u8]>> {
        let at = self.rng.below((self.handshakes.len() as u64).max(1)) as usize;
        self.handshakes.get(at).cloned()
    }

    /// Replaces the sequence number of a handshake message by one that was not received before.
    fn with_other_number(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut bytes = datagram.to_vec();
        if let Some(at) = writer_sn_offset(datagram, EntityId::STATELESS_MESSAGE_WRITER) {
            let bits = self.rng.between(3, 31);
            let low = self.rng.below(1 << bits) as u32;
            bytes[at + 4..at + 8].copy_from_slice(&low.to_le_bytes());
        }
        bytes
    }

    fn flip_bits(&mut self, mut bytes: Vec<u8>) -> Rc<[u8]> {
        for _ in 0..self.rng.between(1, 3) {
            let at = self.rng.below(bytes.len().max(1) as u64) as usize;
            if let Some(octet) = bytes.get_mut(at) {
                *octet ^= 1 << self.rng.below(8);
            }
        }
        bytes.into()
    }

    fn addressee(&mut self) -> GuidPrefix {
        let others = self.participants.len() as u64;
        if others == 0 { GuidPrefix::default() } else { self.participants[self.rng.below(others) as usize].0 }
    }

    fn builtin_writer(&mut self) -> EntityId {
        *self.rng.pick(&[
            EntityId::SEDP_PUB_WRITER,
            EntityId::SEDP_SUB_WRITER,
            EntityId::P2P_MESSAGE_WRITER,
            EntityId::TYPE_LOOKUP_REQUEST_WRITER,
            EntityId::TYPE_LOOKUP_REPLY_WRITER,
        ])
    }
}

/// Returns the GUID prefix of a message's header.
fn sender_of(datagram: &[u8]) -> GuidPrefix {
    datagram.get(8..20).and_then(|octets| octets.try_into().ok()).map(GuidPrefix).unwrap_or_default()
}

/// Returns the offset of the sequence number of the first DATA or DATA_FRAG of a writer.
fn writer_sn_offset(datagram: &[u8], writer: EntityId) -> Option<usize> {
    let found = datagram.get(20..)?.windows(4).position(|octets| *octets == writer.0)?;
    (found + 20 + 12 <= datagram.len()).then_some(found + 20 + 4)
}

fn own_name(kind: u8, number: u32) -> GuidPrefix {
    let mut prefix = [0; 12];
    prefix[..4].copy_from_slice(&OWN);
    prefix[4] = kind;
    prefix[8..].copy_from_slice(&number.to_be_bytes());
    GuidPrefix(prefix)
}

fn seconds(seconds: u64) -> Duration {
    std::time::Duration::from_secs(seconds).into()
}

fn reliable() -> Reliability {
    Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: Duration::ZERO }
}

fn announcement(name: GuidPrefix, at: Locator, default: Locator) -> ParticipantData {
    ParticipantData {
        guid: Guid { prefix: name, entity_id: EntityId::PARTICIPANT },
        metatraffic_unicast: vec![at],
        default_unicast: vec![default],
        available_builtin_endpoints: 0xfc3f,
        ..ParticipantData::default()
    }
}

fn spdp(name: GuidPrefix, sn: i32, announcement: &ParticipantData) -> Rc<[u8]> {
    let (payload, sn) = (announcement.to_bytes(), SequenceNumber(i64::from(sn)));
    build(name, |message| message.data(&data(EntityId::SPDP_WRITER, sn, Payload::Data(&payload))))
}

fn data(writer: EntityId, sn: SequenceNumber, payload: Payload<'_>) -> DataEmit<'_> {
    DataEmit { reader: EntityId::UNKNOWN, writer, sn, inline_qos: None, payload }
}

/// Builds a message with a GUID prefix, truncated to the frame.
fn build(name: GuidPrefix, fill: impl FnOnce(&mut MessageBuilder<'_>) -> Result<(), Full>) -> Rc<[u8]> {
    let mut frame = [0; 8_192];
    let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: name };
    let Ok(mut message) = MessageBuilder::new(&mut frame, &header) else { return Rc::default() };
    // Submessages that exceed the frame are omitted.
    let _complete = fill(&mut message);
    message.bytes().into()
}
