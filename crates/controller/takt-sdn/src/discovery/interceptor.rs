//! State and interface of the discovery interceptor.

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

/// First octet of the entity keys of secured SEDP writers, as DDS Security assigns them.
const SECURED_KEY: u8 = 0xff;

/// Form of the announcement of a refused endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RefusalForm {
    /// Announcement with policies that no endpoint is compatible with, so that the application gets
    /// INCOMPATIBLE_QOS. An announcement that arrives in fragments is withheld.
    #[default]
    Incompatible,
    /// No announcement: a GAP instead.
    Withheld,
}

/// Configuration of an interceptor.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Limits.
    pub limits: Limits,
    /// Form of the announcement of a refused endpoint.
    pub refusal: RefusalForm,
    /// The operator's contracts.
    pub contracts: ContractFile,
    /// The operator's isolation policy.
    pub isolation: Isolation,
}

/// Decision on a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PairDecision {
    /// The pair has no contract, or both ends are on one host.
    Free,
    /// The pair waits for a verdict, at most until this time.
    Pending(Instant),
    Released,
    Refused(String),
    /// The isolation policy denies the pair, independent of a verdict.
    Denied(String),
}

/// A pair with its contract and decision.
#[derive(Debug)]
pub(super) struct PairState {
    pub(super) contract: Result<Contract, NoContract>,
    pub(super) decision: PairDecision,
}

/// State of a pair for the controller.
#[derive(Clone, Debug)]
pub struct PairView<'a> {
    /// Announcement of the writer.
    pub writer: &'a PublicationData,
    /// Announcement of the reader.
    pub reader: &'a SubscriptionData,
    /// The declared contract, or the missing values.
    pub contract: &'a Result<Contract, NoContract>,
    /// Port of the writer's host, and the source address of its discovery.
    pub writer_host: (PortRef, SocketAddr),
    /// Port of the reader's host, and the source address of its discovery.
    pub reader_host: (PortRef, SocketAddr),
    /// Unicast locators of the reader: its own, or else those of its participant.
    pub destinations: Vec<Locator>,
    /// Groups by which the reader receives samples: its own, or else those of its participant.
    pub groups: Vec<Locator>,
    /// VLAN tags of the discovery of the writer's participant, the outer one first.
    pub writer_tags: &'a [VlanTag],
    /// VLAN tags of the discovery of the reader's participant, the outer one first.
    pub reader_tags: &'a [VlanTag],
    /// Vendor of the writer.
    pub writer_vendor: VendorId,
    /// Vendor of the reader.
    pub reader_vendor: VendorId,
    /// Reason of a refusal.
    pub refused: Option<&'a str>,
    /// Whether the pair waits for a verdict.
    pub is_pending: bool,
    /// Whether the isolation policy denies the pair.
    pub is_denied: bool,
}

/// Replacement of an announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Replacement {
    Incompatible,
    Withheld,
}

/// Key of a stream: SEDP writer and receiving participant.
pub(super) type StreamKey = (Guid, GuidPrefix);

/// Treatment of a submessage, before its receivers are considered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubmessageAction {
    /// The submessage is kept.
    Keep,
    /// The submessage is dropped for all receivers.
    Drop,
    /// The submessage is replaced by a GAP.
    Withhold(i64),
    /// The submessage announces an endpoint.
    Announcement(Guid, i64),
    /// The submessage is a fragment of an announcement that is completely known.
    Fragment(Guid, i64),
    /// The submessage was the last fragment: the announcement is sent from the directory.
    Completed(Guid, i64),
}

/// Interceptor of DDS discovery. See the [module](super).
#[derive(Debug)]
pub struct Interceptor {
    pub(super) limits: Limits,
    pub(super) refusal: RefusalForm,
    pub(super) contracts: ContractFile,
    pub(super) isolation: Isolation,
    pub(super) directory: Directory,
    pub(super) pairs: BTreeMap<Pair, PairState>,
    /// Pairs that wait for a verdict, by the end of their wait.
    pub(super) pending: BTreeSet<(Instant, Pair)>,
    pub(super) streams: BTreeMap<StreamKey, Stream>,
    /// Replacements of true announcements that receivers have got.
    pub(super) replacements: BTreeMap<(Guid, GuidPrefix), Replacement>,
    /// Announcements that are held from a receiver.
    pub(super) held: BTreeSet<(Guid, GuidPrefix)>,
    /// Times when inserted changes are sent again.
    pub(super) resends: BTreeSet<(Instant, StreamKey)>,
    pub(super) attempts: BTreeMap<StreamKey, (Instant, u32)>,
    pub(super) leases: BTreeSet<(Instant, GuidPrefix)>,
    pub(super) reassemblies: Reassemblies,
    events: VecDeque<Event>,
    pub(super) frames: VecDeque<Emission>,
    pub(super) counters: Counters,
}

impl Interceptor {
    /// Creates an interceptor without participants.
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
            replacements: BTreeMap::new(),
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

    /// Decides on a frame that arrived at a port of a host. Frames without RTPS pass. The work is
    /// bounded by the length of the frame and the limits.
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
        if !self.directory.allow_frame(now, origin.source.ip(), &self.limits) {
            self.counters.floods += 1;
            return Decision::Replace(Vec::new());
        }
        let fates: Vec<SubmessageAction> =
            message.parts.iter().map(|part| self.learn(now, &message.header, part, &origin, to)).collect();
        self.rewrite(now, &frame, &message, &fates, to)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the next frame that the interceptor sends.
    pub fn poll_frame(&mut self) -> Option<Emission> {
        self.frames.pop_front()
    }

    /// Returns the time when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let firsts = [
            self.pending.first().map(|(at, _)| *at),
            self.resends.first().map(|(at, _)| *at),
            self.leases.first().map(|(at, _)| *at),
            self.reassemblies.timeout(&self.limits),
        ];
        firsts.into_iter().flatten().min()
    }

    /// Ends expired leases, verdict timeouts and reassemblies, and sends again what was not
    /// acknowledged.
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

    /// Returns the counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Attaches an address to a port, for the first time or after a move. Without this call, an
    /// address belongs to the port where it first announced a participant.
    pub fn attach_host(&mut self, now: Instant, address: IpAddr, port: PortRef) {
        self.directory.attach_host(now, address, port, &self.limits);
    }

    /// Returns the port of the participants with an address; `None` if none has announced itself
    /// and no host has been attached.
    pub fn port_of(&self, address: IpAddr) -> Option<PortRef> {
        self.directory.port_of(address)
    }

    /// Iterates over the announced data of all participants.
    pub fn participants(&self) -> impl Iterator<Item = &ParticipantData> {
        self.directory.participants.values().map(|participant| &participant.data)
    }

    /// Returns the port, the source address and the domain of a participant.
    pub fn origin(&self, participant: GuidPrefix) -> Option<(PortRef, SocketAddr, u32)> {
        let participant = self.directory.participants.get(&participant)?;
        Some((participant.origin.port, participant.origin.source, participant.domain))
    }

    /// Returns the isolation policy.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Returns the labels of a participant by the isolation policy.
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

    /// Returns the labels of an endpoint: those of its participant, and its own.
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

    /// Returns the reason why the isolation policy denies a pair; `None` if it does not.
    pub(super) fn denial(&self, pair: Pair) -> Option<String> {
        self.isolation.denial(&self.labels_of(pair.writer)?, &self.labels_of(pair.reader)?)
    }

    /// Iterates over the announced data of all writers.
    pub fn writers(&self) -> impl Iterator<Item = &PublicationData> {
        self.directory.endpoints.values().filter_map(|endpoint| match &endpoint.data {
            Data::Writer(data) => Some(&**data),
            Data::Reader(_) => None,
        })
    }

    /// Iterates over the announced data of all readers.
    pub fn readers(&self) -> impl Iterator<Item = &SubscriptionData> {
        self.directory.endpoints.values().filter_map(|endpoint| match &endpoint.data {
            Data::Reader(data) => Some(&**data),
            Data::Writer(_) => None,
        })
    }

    /// Iterates over the matching pairs.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.pairs.keys().copied()
    }

    /// Returns the pairs of an endpoint.
    pub fn pairs_of(&self, endpoint: Guid) -> Vec<Pair> {
        let own = self.directory.endpoints.get(&endpoint);
        own.map_or(Vec::new(), |own| own.peers.iter().map(|peer| own.pair(*peer)).collect())
    }

    /// Returns the maximum latency of an endpoint in nanoseconds, if its participant reports it.
    pub fn observed_ns(&self, endpoint: Guid) -> Option<u64> {
        let participant = self.directory.participants.get(&endpoint.prefix)?;
        let mut reports = ObservedLatency::all_of(&participant.data.properties);
        reports.find(|report| report.entity == endpoint.entity_id).map(|report| report.worst_ns)
    }

    /// Returns the state of a matching pair.
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
        let refused = match &state.decision {
            PairDecision::Refused(reason) | PairDecision::Denied(reason) => Some(reason.as_str()),
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
            is_pending: matches!(state.decision, PairDecision::Pending(_)),
            is_denied: matches!(state.decision, PairDecision::Denied(_)),
        })
    }

    /// Queues an event that the controller must not miss.
    pub(super) fn report(&mut self, event: Event) {
        if self.events.len() < self.limits.events {
            self.events.push_back(event)
        } else {
            self.counters.events_lost += 1
        }
    }

    /// Queues an event that a flood can cause. Such events use at most half of the queue.
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

/// Returns the writer that a submessage names.
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
