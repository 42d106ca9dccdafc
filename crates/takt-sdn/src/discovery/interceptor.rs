//! The interceptor: its state, and what goes in and out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use takt_openflow::channel::Instant;
use takt_wire::discovery::{ObservedLatency, ParticipantData, PublicationData, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, Submessage, VendorId};

use super::directory::{Data, Directory, Origin, stream_index};
use super::fragments::Reassemblies;
use super::message::{Body, Message, Part};
use super::stream::Stream;
use super::{Counters, Decision, Emission, Event, Forgery, Limit, Limits, Pair};
use crate::PortRef;
use crate::contract::{Contract, ContractFile, NoContract};
use crate::frame::{Frame, Network, VlanTag};
use crate::isolation::{Isolation, Labels, Subject};

/// Secured SEDP writers have entity keys that begin so, as DDS Security assigns them.
const SECURED_KEY: u8 = 0xff;

/// How a refused endpoint is announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RefusalForm {
    /// With policies that nothing is compatible with, so that the application gets INCOMPATIBLE_QOS. An announcement that comes in
    /// fragments is withheld.
    #[default]
    Incompatible,
    /// Not at all: GAP in its place.
    Withheld,
}

/// Configuration of an interceptor.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What it holds at most.
    pub limits: Limits,
    /// How a refused endpoint is announced.
    pub refusal: RefusalForm,
    /// The operator's contracts.
    pub contracts: ContractFile,
    /// The operator's policy of isolation.
    pub isolation: Isolation,
}

/// Standing of a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It has no contract, or both ends are on one host.
    Free,
    /// It waits for a verdict until then.
    Pending(Instant),
    Released,
    Refused(String),
    /// The policy of isolation denies it, whatever the controller says.
    Denied(String),
}

/// A pair with what is known of it.
#[derive(Debug)]
pub(super) struct PairState {
    pub(super) contract: Result<Contract, NoContract>,
    pub(super) standing: Standing,
}

/// What the controller needs to know of a pair.
#[derive(Clone, Debug)]
pub struct PairView<'a> {
    /// The writer's announcement.
    pub writer: &'a PublicationData,
    /// The reader's announcement.
    pub reader: &'a SubscriptionData,
    /// What was declared, or what is missing.
    pub contract: &'a Result<Contract, NoContract>,
    /// The port of the writer's host, and the address that it sends discovery from.
    pub writer_host: (PortRef, SocketAddr),
    /// The same of the reader's.
    pub reader_host: (PortRef, SocketAddr),
    /// Where the reader listens by unicast: its own locators, or those of its participant.
    pub destinations: Vec<Locator>,
    /// Groups by which the reader receives samples: its own, or those of its participant.
    pub groups: Vec<Locator>,
    /// The VLAN tags of the discovery of the writer's participant, the outer one first.
    pub writer_tags: &'a [VlanTag],
    /// The same of the reader's participant.
    pub reader_tags: &'a [VlanTag],
    /// Who made the writer.
    pub writer_vendor: VendorId,
    /// Who made the reader.
    pub reader_vendor: VendorId,
    /// The reason of a refusal.
    pub refused: Option<&'a str>,
    /// Whether it waits for a verdict.
    pub is_pending: bool,
    /// Whether the policy of isolation refuses it.
    pub is_denied: bool,
}

/// What an announcement was altered to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Altered {
    Incompatible,
    Withheld,
}

/// The SEDP writer and the receiving participant.
pub(super) type StreamKey = (Guid, GuidPrefix);

/// What becomes of a submessage, before the receiver is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Nothing is to be said about it.
    Keep,
    /// It goes to no receiver.
    Drop,
    /// GAP goes in its place.
    Withhold(i64),
    /// It announces an endpoint.
    Announcement(Guid, i64),
    /// It is a fragment of an announcement that is known whole.
    Fragment(Guid, i64),
    /// It was the last fragment: the announcement goes from the directory.
    Completed(Guid, i64),
}

/// The interceptor of discovery. See the [module](super).
#[derive(Debug)]
pub struct Interceptor {
    pub(super) limits: Limits,
    pub(super) refusal: RefusalForm,
    pub(super) contracts: ContractFile,
    pub(super) isolation: Isolation,
    pub(super) directory: Directory,
    pub(super) pairs: BTreeMap<Pair, PairState>,
    /// Pairs that wait for a verdict, by the end of their time.
    pub(super) pending: BTreeSet<(Instant, Pair)>,
    pub(super) streams: BTreeMap<StreamKey, Stream>,
    /// What receivers have been shown instead of the true announcement.
    pub(super) altered: BTreeMap<(Guid, GuidPrefix), Altered>,
    /// Announcements that were kept back from a receiver.
    pub(super) held: BTreeSet<(Guid, GuidPrefix)>,
    /// When inserted changes are sent again, and how often they were.
    pub(super) resends: BTreeSet<(Instant, StreamKey)>,
    pub(super) attempts: BTreeMap<StreamKey, (Instant, u32)>,
    pub(super) leases: BTreeSet<(Instant, GuidPrefix)>,
    pub(super) reassemblies: Reassemblies,
    events: VecDeque<Event>,
    pub(super) frames: VecDeque<Emission>,
    pub(super) counters: Counters,
}

impl Interceptor {
    /// An interceptor without participants.
    pub fn new(config: Config) -> Self {
        Self {
            limits: config.limits,
            refusal: config.refusal,
            contracts: config.contracts,
            isolation: config.isolation,
            directory: Directory::default(),
            pairs: BTreeMap::new(),
            pending: BTreeSet::new(),
            streams: BTreeMap::new(),
            altered: BTreeMap::new(),
            held: BTreeSet::new(),
            resends: BTreeSet::new(),
            attempts: BTreeMap::new(),
            leases: BTreeSet::new(),
            reassemblies: Reassemblies::default(),
            events: VecDeque::new(),
            frames: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Judges a frame that came in at a port of a host. Frames without RTPS pass. Work is bounded by the frame's length and the
    /// limits.
    pub fn handle(&mut self, now: Instant, from: PortRef, bytes: &[u8]) -> Decision {
        let Ok(frame) = Frame::parse(bytes) else { return Decision::Pass };
        let Ok(Network::Ip(packet)) = frame.network() else { return Decision::Pass };
        if packet.is_udp_fragment() {
            self.counters.ip_fragments += 1;
            return Decision::Replace(Vec::new());
        }
        let Some(datagram) = packet.udp() else { return Decision::Pass };
        let Some(message) = Message::parse(datagram.payload()) else { return Decision::Pass };
        self.counters.messages += 1;
        self.counters.malformed += u64::from(message.is_cut_off);
        let origin = Origin {
            port: from,
            mac: frame.source(),
            tags: frame.tags().to_vec(),
            source: SocketAddr::new(packet.source(), datagram.source_port()),
        };
        let to = SocketAddr::new(packet.destination(), datagram.destination_port());
        if !message.parts.iter().any(is_discovery) {
            self.counters.passed += 1;
            return Decision::Pass;
        }
        if !self.directory.admit_frame(now, origin.source.ip(), &self.limits) {
            self.counters.floods += 1;
            return Decision::Replace(Vec::new());
        }
        let fates: Vec<Fate> =
            message.parts.iter().map(|part| self.learn(now, &message.header, part, &origin, to)).collect();
        self.treat(now, &frame, &message, &fates, to)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next frame that the interceptor sends.
    pub fn poll_frame(&mut self) -> Option<Emission> {
        self.frames.pop_front()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let firsts = [
            self.pending.first().map(|(at, _)| *at),
            self.resends.first().map(|(at, _)| *at),
            self.leases.first().map(|(at, _)| *at),
            self.reassemblies.timeout(&self.limits),
        ];
        firsts.into_iter().flatten().min()
    }

    /// Ends leases, waits for verdicts and reassemblies that are over, and sends again what was not acknowledged.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, prefix)) = self.leases.first().copied().filter(|(at, _)| *at <= now) {
            self.leases.remove(&(at, prefix));
            match self.directory.participants.get(&prefix).and_then(|participant| participant.lease_end()) {
                Some(end) if end > now => _ = self.leases.insert((end, prefix)),
                Some(_) => self.remove_participant(prefix),
                None => {}
            }
        }
        self.counters.unfinished += self.reassemblies.expire(now, &self.limits);
        self.end_waits(now);
        self.resend(now);
    }

    /// Counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// An address is attached to a port, for the first time or after a move. Without this, an address belongs to the port
    /// that it first announced a participant from.
    pub fn attach_host(&mut self, now: Instant, address: IpAddr, port: PortRef) {
        self.directory.attach_host(now, address, port, &self.limits);
    }

    /// Where the participants with an address are; `None` if none has announced itself, and no host has been attached.
    pub fn port_of(&self, address: IpAddr) -> Option<PortRef> {
        self.directory.port_of(address)
    }

    /// The participants, with the data that they announced.
    pub fn participants(&self) -> impl Iterator<Item = &ParticipantData> {
        self.directory.participants.values().map(|participant| &participant.data)
    }

    /// Where a participant is attached, what it sends from, and its domain.
    pub fn origin(&self, participant: GuidPrefix) -> Option<(PortRef, SocketAddr, u32)> {
        let participant = self.directory.participants.get(&participant)?;
        Some((participant.origin.port, participant.origin.source, participant.domain))
    }

    /// The policy of isolation.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// The labels of a participant by the policy of isolation.
    pub fn labels_of_participant(&self, prefix: GuidPrefix) -> Option<Labels> {
        let participant = self.directory.participants.get(&prefix)?;
        let ParticipantData { user_data, properties, .. } = &participant.data;
        Some(self.isolation.labels_of(&Subject {
            address: participant.origin.source.ip(),
            domain: participant.domain,
            partition: None,
            declared: &[(user_data, properties)],
        }))
    }

    /// The labels of an endpoint: those of its participant, and its own.
    fn labels_of(&self, guid: Guid) -> Option<Labels> {
        let participant = self.directory.participants.get(&guid.prefix)?;
        let ParticipantData { user_data, properties, .. } = &participant.data;
        let (partition, own) = match &self.directory.endpoints.get(&guid)?.data {
            Data::Writer(data) => (&data.partition, (&data.qos.user_data, &data.qos.property)),
            Data::Reader(data) => (&data.partition, (&data.qos.user_data, &data.qos.property)),
        };
        Some(self.isolation.labels_of(&Subject {
            address: participant.origin.source.ip(),
            domain: participant.domain,
            partition: Some(partition),
            declared: &[own, (user_data, properties)],
        }))
    }

    /// Why the policy of isolation denies a pair; `None` if it does not.
    pub(super) fn denial(&self, pair: Pair) -> Option<String> {
        self.isolation.denial(&self.labels_of(pair.writer)?, &self.labels_of(pair.reader)?)
    }

    /// The writers, with the data that they announced.
    pub fn writers(&self) -> impl Iterator<Item = &PublicationData> {
        self.directory.endpoints.values().filter_map(|endpoint| match &endpoint.data {
            Data::Writer(data) => Some(&**data),
            Data::Reader(_) => None,
        })
    }

    /// The readers, with the data that they announced.
    pub fn readers(&self) -> impl Iterator<Item = &SubscriptionData> {
        self.directory.endpoints.values().filter_map(|endpoint| match &endpoint.data {
            Data::Reader(data) => Some(&**data),
            Data::Writer(_) => None,
        })
    }

    /// The pairs that match.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.pairs.keys().copied()
    }

    /// The pairs of an endpoint.
    pub fn pairs_of(&self, endpoint: Guid) -> Vec<Pair> {
        let own = self.directory.endpoints.get(&endpoint);
        own.map_or(Vec::new(), |own| own.peers.iter().map(|peer| own.pair(*peer)).collect())
    }

    /// The longest time that was seen of an endpoint, in nanoseconds, if its participant reports it.
    pub fn observed_ns(&self, endpoint: Guid) -> Option<u64> {
        let participant = self.directory.participants.get(&endpoint.prefix)?;
        let mut reports = ObservedLatency::all_of(&participant.data.properties);
        reports.find(|report| report.entity == endpoint.entity_id).map(|report| report.worst_ns)
    }

    /// A pair that matches.
    pub fn pair(&self, pair: Pair) -> Option<PairView<'_>> {
        let state = self.pairs.get(&pair)?;
        let Data::Writer(writer) = &self.directory.endpoints.get(&pair.writer)?.data else { return None };
        let Data::Reader(reader) = &self.directory.endpoints.get(&pair.reader)?.data else { return None };
        let host = |prefix| {
            let participant = self.directory.participants.get(&prefix)?;
            Some((participant.origin.port, participant.origin.source))
        };
        let participant = self.directory.participants.get(&pair.reader.prefix)?;
        let or = |own: &[Locator], default: &[Locator]| if own.is_empty() { default.to_vec() } else { own.to_vec() };
        let destinations = or(&reader.unicast, &participant.data.default_unicast);
        let of_writer = self.directory.participants.get(&pair.writer.prefix)?;
        let (writer_vendor, reader_vendor) = (of_writer.header.vendor, participant.header.vendor);
        let refused = match &state.standing {
            Standing::Refused(reason) | Standing::Denied(reason) => Some(reason.as_str()),
            _ => None,
        };
        Some(PairView {
            writer,
            reader,
            contract: &state.contract,
            writer_host: host(pair.writer.prefix)?,
            reader_host: host(pair.reader.prefix)?,
            destinations,
            groups: self.groups_of(pair.reader).to_vec(),
            writer_tags: &of_writer.origin.tags,
            reader_tags: &participant.origin.tags,
            writer_vendor,
            reader_vendor,
            refused,
            is_pending: matches!(state.standing, Standing::Pending(_)),
            is_denied: matches!(state.standing, Standing::Denied(_)),
        })
    }

    /// Reports an event that the controller must not miss.
    pub(super) fn report(&mut self, event: Event) {
        if self.events.len() < self.limits.events {
            self.events.push_back(event)
        } else {
            self.counters.events_lost += 1
        }
    }

    /// Reports an event that a flood can cause: it leaves half of the room to the others.
    pub(super) fn report_abuse(&mut self, event: Event) {
        if self.events.len() < self.limits.events / 2 {
            self.events.push_back(event)
        } else {
            self.counters.events_lost += 1
        }
    }

    pub(super) fn forged(&mut self, participant: GuidPrefix, origin: &Origin, what: Forgery) {
        self.counters.forged += 1;
        self.report_abuse(Event::Forged { participant, port: origin.port, source: origin.source, what });
    }

    pub(super) fn limited(&mut self, participant: GuidPrefix, limit: Limit) {
        self.counters.limited += 1;
        self.report_abuse(Event::LimitReached { participant, limit });
    }
}

/// The writer that a submessage names.
pub(super) fn writer_of(submessage: &Submessage<'_>) -> Option<EntityId> {
    Some(match submessage {
        Submessage::Data(it) => it.writer,
        Submessage::DataFrag(it) => it.writer,
        Submessage::Heartbeat(it) => it.writer,
        Submessage::HeartbeatFrag(it) => it.writer,
        Submessage::AckNack(it) => it.writer,
        Submessage::NackFrag(it) => it.writer,
        Submessage::Gap(it) => it.writer,
        _ => return None,
    })
}

pub(super) fn is_secured(writer: EntityId) -> bool {
    writer.is_builtin() && writer.0[0] == SECURED_KEY
}

fn is_discovery(part: &Part<'_>) -> bool {
    match &part.body {
        Body::Plain(submessage) => writer_of(submessage).is_some_and(|writer| {
            writer == EntityId::SPDP_WRITER || stream_index(writer).is_some() || is_secured(writer)
        }),
        Body::Secured | Body::Malformed => true,
        Body::Destination | Body::Context(_) | Body::Extension | Body::Other => false,
    }
}
