//! Directory of participants, hosts and endpoints, from their announcements (RTPS 2.5 §8.5.3,
//! §8.5.4).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use takt_openflow::channel::Instant;
use takt_packet::{MacAddress, VlanTag};
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::Header;
use takt_wire::qos::Ownership;
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, compat};

use super::{Forgery, Limit, Limits, Pair};
use crate::PortRef;

/// Maximum number of addresses that the controller attaches.
const HOSTS_MAX: usize = 65_536;
/// Maximum number of disposed endpoints stored per participant, so that older announcements do
/// not restore them.
const RETIRED_MAX: usize = 64;

/// Origin of a datagram.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) port: PortRef,
    pub(super) mac: MacAddress,
    pub(super) tags: Vec<VlanTag>,
    pub(super) source: SocketAddr,
}

/// State of an IP address that participants send from.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) port: PortRef,
    participants: usize,
    tokens: u32,
    refilled: Instant,
}

/// A participant.
#[derive(Debug)]
pub(super) struct Participant {
    pub(super) data: ParticipantData,
    pub(super) domain: u32,
    pub(super) header: Header,
    pub(super) origin: Origin,
    pub(super) seen: Instant,
    /// Source address of its first announcement.
    pub(super) home: IpAddr,
    /// Addresses that the participant may send from.
    pub(super) addresses: BTreeSet<IpAddr>,
    /// Last own sequence numbers of its SEDP writers: of publications, and of subscriptions.
    pub(super) last: [i64; 2],
    pub(super) endpoints: BTreeSet<Guid>,
    pub(super) is_opaque: bool,
    pub(super) retired: VecDeque<(Guid, i64)>,
}

impl Participant {
    /// Returns the time when its lease expires without another announcement; `None` for an infinite
    /// lease.
    pub(super) fn lease_end(&self) -> Option<Instant> {
        self.data.lease_duration.as_nanos().map(|nanos| Instant(self.seen.0.saturating_add(nanos)))
    }

    /// Returns the address of its builtin endpoints that a host with the IP version of `peer` can
    /// reach.
    pub(super) fn metatraffic(&self, peer: SocketAddr) -> Option<SocketAddr> {
        let usable = |addr: &SocketAddr| addr.is_ipv4() == peer.is_ipv4();
        let own = self.origin.source.ip();
        let all: Vec<SocketAddr> =
            self.data.metatraffic_unicast.iter().filter_map(Locator::socket_addr).filter(usable).collect();
        all.iter().find(|addr| addr.ip() == own).or(all.first()).copied()
    }

    fn listens_at(&self, to: SocketAddr) -> bool {
        let lists = [&self.data.metatraffic_unicast, &self.data.default_unicast];
        lists.iter().any(|list| list.iter().any(|locator| locator.socket_addr() == Some(to)))
    }
}

/// Announced data of an endpoint.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Writer(Box<PublicationData>),
    Reader(Box<SubscriptionData>),
}

impl Data {
    pub(super) fn parse(writer: EntityId, payload: &[u8]) -> Result<Self, takt_wire::Malformed> {
        Ok(if writer == EntityId::SEDP_PUB_WRITER {
            Self::Writer(Box::new(PublicationData::parse(payload)?))
        } else {
            Self::Reader(Box::new(SubscriptionData::parse(payload)?))
        })
    }

    pub(super) fn guid(&self) -> Guid {
        match self {
            Self::Writer(data) => data.guid,
            Self::Reader(data) => data.guid,
        }
    }

    pub(super) fn ownership(&self) -> Ownership {
        match self {
            Self::Writer(data) => data.qos.ownership,
            Self::Reader(data) => data.qos.ownership,
        }
    }

    fn topic(&self) -> &str {
        match self {
            Self::Writer(data) => &data.topic_name,
            Self::Reader(data) => &data.topic_name,
        }
    }
}

/// An endpoint with its announcement.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) data: Data,
    /// Own sequence number of its announcement.
    pub(super) number: i64,
    /// Own sequence number of its first announcement.
    pub(super) first: i64,
    /// The announcement, with its encapsulation header.
    pub(super) payload: Vec<u8>,
    /// Fragment size, if the announcement arrived in fragments.
    pub(super) fragment_len: Option<u16>,
    /// Writers and readers that it matches.
    pub(super) peers: BTreeSet<Guid>,
}

impl Endpoint {
    /// Returns the entity id of the SEDP writer that announces it.
    pub(super) fn announcer(&self) -> EntityId {
        match self.data {
            Data::Writer(_) => EntityId::SEDP_PUB_WRITER,
            Data::Reader(_) => EntityId::SEDP_SUB_WRITER,
        }
    }

    /// Returns the pair of this endpoint and a peer.
    pub(super) fn pair(&self, peer: Guid) -> Pair {
        match self.data {
            Data::Writer(_) => Pair { writer: self.data.guid(), reader: peer },
            Data::Reader(_) => Pair { writer: peer, reader: self.data.guid() },
        }
    }
}

/// Domain, domain tag and topic.
type TopicKey = (u32, Option<String>, String);

/// Directory of participants, hosts and endpoints.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) participants: BTreeMap<GuidPrefix, Participant>,
    pub(super) endpoints: BTreeMap<Guid, Endpoint>,
    hosts: BTreeMap<IpAddr, Host>,
    topics: BTreeMap<TopicKey, BTreeSet<Guid>>,
    announcement_bytes: usize,
}

/// Returns the index of an SEDP writer: 0 for publications, 1 for subscriptions.
pub(super) fn stream_index(writer: EntityId) -> Option<usize> {
    match writer {
        EntityId::SEDP_PUB_WRITER => Some(0),
        EntityId::SEDP_SUB_WRITER => Some(1),
        _ => None,
    }
}

impl Directory {
    /// Reports whether an address may send a discovery frame now. Unknown addresses may.
    pub(super) fn allow_frame(&mut self, now: Instant, source: IpAddr, limits: &Limits) -> bool {
        let Some(host) = self.hosts.get_mut(&source) else { return true };
        let elapsed = u128::from(now.0.saturating_sub(host.refilled.0));
        let earned = elapsed * u128::from(limits.frames_per_second) / 1_000_000_000;
        if earned > 0 {
            host.tokens =
                u32::try_from(earned).unwrap_or(u32::MAX).saturating_add(host.tokens).min(limits.frames_burst);
            host.refilled = now;
        }
        let may = host.tokens > 0;
        host.tokens = host.tokens.saturating_sub(1);
        may
    }

    /// Reports whether the participant sends from this origin. `None` if the participant is
    /// unknown.
    pub(super) fn is_source_valid(&self, prefix: GuidPrefix, origin: &Origin) -> Option<bool> {
        let participant = self.participants.get(&prefix)?;
        let ip = origin.source.ip();
        let port = [ip, participant.home].iter().find_map(|ip| self.hosts.get(ip)).map(|host| host.port);
        Some(participant.addresses.contains(&ip) && port == Some(origin.port))
    }

    /// Returns the port of an address.
    pub(super) fn port_of(&self, address: IpAddr) -> Option<PortRef> {
        self.hosts.get(&address).map(|host| host.port)
    }

    /// Attaches an address to a port.
    pub(super) fn attach_host(&mut self, now: Instant, address: IpAddr, port: PortRef, limits: &Limits) {
        if self.hosts.len() < HOSTS_MAX || self.hosts.contains_key(&address) {
            let new = Host { port, participants: 0, tokens: limits.frames_burst, refilled: now };
            self.hosts.entry(address).or_insert(new).port = port;
        }
        for participant in self.participants.values_mut().filter(|it| it.origin.source.ip() == address) {
            participant.origin.port = port;
        }
    }

    /// Processes an announcement of a participant. Returns true if the participant is new.
    pub(super) fn announce(
        &mut self,
        now: Instant,
        header: Header,
        data: ParticipantData,
        domain: u32,
        origin: &Origin,
        limits: &Limits,
    ) -> Result<bool, Refusal> {
        let prefix = data.guid.prefix;
        match self.is_source_valid(prefix, origin) {
            Some(false) => return Err(Refusal::Forged(Forgery::ForeignSource)),
            Some(true) => {
                if let Some(participant) = self.participants.get_mut(&prefix) {
                    participant.seen = now;
                    participant.header = header;
                    participant.origin = origin.clone();
                    // Later announcements add no addresses.
                    participant.data = data;
                }
                return Ok(false);
            }
            None => {}
        }
        let ip = origin.source.ip();
        let lists = [&data.metatraffic_unicast, &data.default_unicast];
        let mut addresses: BTreeSet<IpAddr> =
            lists.iter().flat_map(|list| list.iter()).filter_map(Locator::socket_addr).map(|addr| addr.ip()).collect();
        if !addresses.is_empty() && !addresses.contains(&ip) {
            return Err(Refusal::Forged(Forgery::ForeignLocators));
        }
        if self.participants.len() >= limits.participants {
            return Err(Refusal::Limit(Limit::Participants));
        }
        let new = || Host { port: origin.port, participants: 0, tokens: limits.frames_burst, refilled: now };
        let host = self.hosts.entry(ip).or_insert_with(new);
        if host.port != origin.port {
            return Err(Refusal::Forged(Forgery::ForeignSource));
        }
        if host.participants >= limits.participants_per_address {
            return Err(Refusal::Limit(Limit::ParticipantsPerAddress));
        }
        host.participants += 1;
        addresses.insert(ip);
        let participant = Participant {
            data,
            domain,
            header,
            origin: origin.clone(),
            seen: now,
            home: ip,
            addresses,
            last: [0; 2],
            endpoints: BTreeSet::new(),
            is_opaque: false,
            retired: VecDeque::new(),
        };
        self.participants.insert(prefix, participant);
        Ok(true)
    }

    /// Removes a participant, which must have no endpoints.
    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        let Some(participant) = self.participants.remove(&prefix) else { return };
        let ip = participant.home;
        if let Some(host) = self.hosts.get_mut(&ip) {
            host.participants = host.participants.saturating_sub(1);
            if host.participants == 0 {
                self.hosts.remove(&ip);
            }
        }
    }

    /// Returns the participants that a datagram from `sender` may reach: by multicast all of the
    /// domain; by unicast those that announce the locator, or else all of the host, which may
    /// listen at locators that they do not announce.
    pub(super) fn receivers(&self, sender: GuidPrefix, to: SocketAddr) -> Vec<GuidPrefix> {
        let all = self.participants.iter().filter(|(prefix, _)| **prefix != sender);
        if !to.ip().is_multicast() {
            let of_host = all.filter(|(_, it)| it.addresses.contains(&to.ip()));
            let (listening, others): (Vec<_>, Vec<_>) = of_host.partition(|(_, it)| it.listens_at(to));
            let reached = if listening.is_empty() { others } else { listening };
            return reached.into_iter().map(|(prefix, _)| *prefix).collect();
        }
        let Some(own) = self.participants.get(&sender) else { return Vec::new() };
        let key = (own.domain, &own.data.domain_tag);
        all.filter(|(_, it)| (it.domain, &it.data.domain_tag) == key).map(|(prefix, _)| *prefix).collect()
    }

    fn topic_key(&self, data: &Data) -> Option<TopicKey> {
        let participant = self.participants.get(&data.guid().prefix)?;
        Some((participant.domain, participant.data.domain_tag.clone(), data.topic().to_owned()))
    }

    /// Returns the endpoints that match, or an error with the limit if there are too many to
    /// compare.
    pub(super) fn matches(&self, data: &Data, limits: &Limits) -> Result<BTreeSet<Guid>, Limit> {
        let Some(key) = self.topic_key(data) else { return Ok(BTreeSet::new()) };
        let Some(all) = self.topics.get(&key) else { return Ok(BTreeSet::new()) };
        if all.len() > limits.endpoints_per_topic {
            return Err(Limit::EndpointsPerTopic);
        }
        let own = data.guid();
        let others = all.iter().filter(|guid| guid.prefix != own.prefix);
        let pairs = others.filter_map(|guid| Some((guid, self.endpoints.get(guid)?)));
        Ok(pairs.filter(|(_, other)| matched(data, &other.data)).map(|(guid, _)| *guid).collect())
    }

    /// Checks the limits that an announcement would reach.
    pub(super) fn check_limits(&self, data: &Data, payload_len: usize, limits: &Limits) -> Result<(), Limit> {
        let guid = data.guid();
        let before = self.endpoints.get(&guid).map_or(0, |endpoint| endpoint.payload.len());
        if self.announcement_bytes - before + payload_len > limits.announcement_bytes {
            return Err(Limit::AnnouncementBytes);
        }
        if self.endpoints.contains_key(&guid) {
            return Ok(());
        }
        if self.endpoints.len() >= limits.endpoints {
            return Err(Limit::Endpoints);
        }
        let own = self.participants.get(&guid.prefix).map_or(0, |participant| participant.endpoints.len());
        if own >= limits.endpoints_per_participant { Err(Limit::EndpointsPerParticipant) } else { Ok(()) }
    }

    /// Stores an endpoint. The caller has checked the limits. The known peers are kept.
    pub(super) fn store_endpoint(&mut self, endpoint: Endpoint) {
        let guid = endpoint.data.guid();
        let peers = self.drop_endpoint(guid).map(|old| old.peers).unwrap_or_default();
        if let Some(key) = self.topic_key(&endpoint.data) {
            self.topics.entry(key).or_default().insert(guid);
        }
        self.announcement_bytes += endpoint.payload.len();
        if let Some(participant) = self.participants.get_mut(&guid.prefix) {
            participant.endpoints.insert(guid);
        }
        self.endpoints.insert(guid, Endpoint { peers, ..endpoint });
    }

    /// Removes an endpoint.
    pub(super) fn drop_endpoint(&mut self, guid: Guid) -> Option<Endpoint> {
        let endpoint = self.endpoints.remove(&guid)?;
        self.announcement_bytes -= endpoint.payload.len();
        if let Some(key) = self.topic_key(&endpoint.data)
            && let Some(all) = self.topics.get_mut(&key)
        {
            all.remove(&guid);
            if all.is_empty() {
                self.topics.remove(&key);
            }
        }
        if let Some(participant) = self.participants.get_mut(&guid.prefix) {
            participant.endpoints.remove(&guid);
        }
        Some(endpoint)
    }

    /// Records that the change `number` disposed of the endpoint: older announcements are ignored.
    pub(super) fn mark_disposed(&mut self, guid: Guid, number: i64) {
        let Some(participant) = self.participants.get_mut(&guid.prefix) else { return };
        participant.retired.push_back((guid, number));
        if participant.retired.len() > RETIRED_MAX {
            participant.retired.pop_front();
        }
    }

    /// Reports whether a later change disposed of the endpoint or announced it.
    pub(super) fn is_outdated(&self, guid: Guid, number: i64) -> bool {
        let of = self.participants.get(&guid.prefix);
        of.is_some_and(|it| it.retired.iter().any(|(other, at)| *other == guid && *at > number))
            || self.endpoints.get(&guid).is_some_and(|endpoint| endpoint.number > number)
    }
}

/// Reason why an announcement of a participant is not accepted.
#[derive(Debug)]
pub(super) enum Refusal {
    Forged(Forgery),
    Limit(Limit),
}

/// Reports whether a writer and a reader of one domain and topic match (DDS 1.4 §2.2.3, §2.2.3.13).
fn matched(one: &Data, other: &Data) -> bool {
    let (writer, reader) = match (one, other) {
        (Data::Writer(writer), Data::Reader(reader)) | (Data::Reader(reader), Data::Writer(writer)) => (writer, reader),
        _ => return false,
    };
    writer.type_name == reader.type_name
        && compat::keys_match(writer.guid, reader.guid)
        && compat::partitions_match(&writer.partition, &reader.partition)
        && compat::check(writer, reader).is_empty()
}
