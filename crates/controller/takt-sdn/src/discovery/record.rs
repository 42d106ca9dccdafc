//! Persistent records of the interceptor: participants, endpoints, verdicts, and the shifted
//! sequence numbers of streams.
//!
//! Endpoints that have discovered each other are not announced again, and a receiver of an inserted
//! change counts on from it. A restarted controller therefore restores this state from its store.
//! Each record is independent, so that a change writes few of them. Not stored: pairs that wait for
//! a verdict (they wait again), reassemblies, and the times when inserted changes were last sent.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use serde_json::from_slice;
use takt_openflow::channel::Instant;
use takt_packet::{MacAddress, VlanTag};
use takt_wire::discovery::ParticipantData;
use takt_wire::message::Header;
use takt_wire::{EntityId, Guid, GuidPrefix, ProtocolVersion, VendorId};

use super::Pair;
use super::directory::{Data, Endpoint, Origin, Participant};
use super::interceptor::{Interceptor, PairDecision, PairState, Replacement};
use super::stream::Stream;
use crate::PortRef;
use crate::contract::resolve;
use crate::store::{Records, of_kind, record};

#[derive(Serialize, Deserialize)]
struct ParticipantRecord {
    announcement: Vec<u8>,
    domain: u32,
    version: (u8, u8),
    vendor: [u8; 2],
    at: (u64, u32),
    mac: [u8; 6],
    tags: Vec<(u8, bool, u16)>,
    source: SocketAddr,
    home: IpAddr,
    addresses: BTreeSet<IpAddr>,
    last: [i64; 2],
    is_opaque: bool,
    retired: Vec<([u8; 16], i64)>,
}

#[derive(Serialize, Deserialize)]
struct EndpointRecord {
    is_writer: bool,
    announcement: Vec<u8>,
    number: i64,
    first: i64,
    fragment_len: Option<u16>,
    /// Receivers of a replacement, and whether that was an incompatible announcement.
    altered: Vec<([u8; 12], bool)>,
    held: Vec<[u8; 12]>,
}

#[derive(Serialize, Deserialize)]
enum DecisionRecord {
    Free,
    Released,
    Refused(String),
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut octets = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (n, octet) in octets.iter_mut().enumerate() {
        *octet = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?; // tidy-allow(dropped-cause): the caller skips the record.
    }
    Some(octets)
}

impl ParticipantRecord {
    fn of(participant: &Participant) -> Self {
        let Participant { data, domain, header, origin, last, is_opaque, .. } = participant;
        Self {
            announcement: data.to_bytes(),
            domain: *domain,
            version: (header.version.major, header.version.minor),
            vendor: header.vendor.0,
            at: (origin.port.dpid, origin.port.port),
            mac: origin.mac.0,
            tags: origin.tags.iter().map(|tag| (tag.pcp, tag.dei, tag.vid)).collect(),
            source: origin.source,
            home: participant.home,
            addresses: participant.addresses.clone(),
            last: *last,
            is_opaque: *is_opaque,
            retired: participant.retired.iter().map(|(guid, number)| (guid.to_bytes(), *number)).collect(),
        }
    }

    fn origin(&self) -> Origin {
        let tags = self.tags.iter().map(|(pcp, dei, vid)| VlanTag { pcp: *pcp, dei: *dei, vid: *vid });
        let (dpid, port) = self.at;
        Origin { port: PortRef::new(dpid, port), mac: MacAddress(self.mac), tags: tags.collect(), source: self.source }
    }
}

impl Interceptor {
    /// Adds all state that is to be kept to `into`, by key. The cost is that of copying it.
    pub fn records(&self, into: &mut Records) {
        for (prefix, participant) in &self.directory.participants {
            record(into, format!("participant/{}", hexadecimal(&prefix.0)), &ParticipantRecord::of(participant));
        }
        for (guid, endpoint) in &self.directory.endpoints {
            let of = (*guid, GuidPrefix([0; 12]))..=(*guid, GuidPrefix([0xff; 12]));
            let replaced = self.replacements.range(of.clone());
            let value = EndpointRecord {
                is_writer: matches!(endpoint.data, Data::Writer(_)),
                announcement: endpoint.payload.clone(),
                number: endpoint.number,
                first: endpoint.first,
                fragment_len: endpoint.fragment_len,
                altered: replaced.map(|((_, to), how)| (to.0, *how == Replacement::Incompatible)).collect(),
                held: self.held.range(of).map(|(_, to)| to.0).collect(),
            };
            record(into, format!("endpoint/{}", hexadecimal(&guid.to_bytes())), &value);
        }
        for (pair, state) in &self.pairs {
            let decision = match &state.decision {
                // The next run applies its own isolation policy.
                PairDecision::Pending(_) | PairDecision::Denied(_) => continue,
                PairDecision::Free => DecisionRecord::Free,
                PairDecision::Released => DecisionRecord::Released,
                PairDecision::Refused(reason) => DecisionRecord::Refused(reason.clone()),
            };
            record(into, pair_key("pair", *pair), &decision);
        }
        for ((writer, to), stream) in &self.streams {
            let key = format!("stream/{}/{}", hexadecimal(&writer.to_bytes()), hexadecimal(&to.0));
            record(into, key, stream);
        }
    }

    /// Restores the state of an earlier run. Leases start again. Returns the number of records that
    /// are unreadable or exceed a limit.
    pub fn restore(&mut self, now: Instant, records: &Records) -> usize {
        let mut refused = 0;
        for (key, value) in of_kind(records, "participant") {
            refused += usize::from(self.restore_participant(now, key, value).is_none());
        }
        for (key, value) in of_kind(records, "endpoint") {
            refused += usize::from(self.restore_endpoint(key, value).is_none());
        }
        for (key, value) in of_kind(records, "stream") {
            refused += usize::from(self.restore_stream(now, key, value).is_none());
        }
        self.restore_pairs(now, records);
        refused
    }

    fn restore_participant(&mut self, now: Instant, key: &str, value: &[u8]) -> Option<()> {
        let prefix = GuidPrefix(octets(key)?);
        let own: ParticipantRecord = from_slice(value).ok()?; // tidy-allow(dropped-cause): unreadable records are counted.
        let data = ParticipantData::parse(&own.announcement).ok().filter(|data| data.guid.prefix == prefix)?; // tidy-allow(dropped-cause): unreadable records are counted.
        let (major, minor) = own.version;
        let header = Header { version: ProtocolVersion { major, minor }, vendor: VendorId(own.vendor), prefix };
        let origin = own.origin();
        self.directory.announce(now, header, data, own.domain, &origin, &self.limits).ok()?; // tidy-allow(dropped-cause): unreadable records are counted.
        let participant = self.directory.participants.get_mut(&prefix)?;
        (participant.home, participant.addresses, participant.last) = (own.home, own.addresses, own.last);
        participant.is_opaque = own.is_opaque;
        participant.retired = own.retired.into_iter().map(|(guid, number)| (Guid::from_bytes(guid), number)).collect();
        self.leases.extend(participant.lease_end().map(|end| (end, prefix)));
        Some(())
    }

    fn restore_endpoint(&mut self, key: &str, value: &[u8]) -> Option<()> {
        let guid = Guid::from_bytes(octets(key)?);
        let own: EndpointRecord = from_slice(value).ok()?; // tidy-allow(dropped-cause): unreadable records are counted.
        let announcer = if own.is_writer { EntityId::SEDP_PUB_WRITER } else { EntityId::SEDP_SUB_WRITER };
        let data = Data::parse(announcer, &own.announcement).ok().filter(|data| data.guid() == guid)?; // tidy-allow(dropped-cause): unreadable records are counted.
        self.directory.participants.get(&guid.prefix)?;
        self.directory.check_limits(&data, own.announcement.len(), &self.limits).ok()?; // tidy-allow(dropped-cause): unreadable records are counted.
        let EndpointRecord { number, first, fragment_len, announcement: payload, .. } = own;
        self.directory.store_endpoint(Endpoint { data, number, first, payload, fragment_len, peers: BTreeSet::new() });
        let how = |is_incompatible| if is_incompatible { Replacement::Incompatible } else { Replacement::Withheld };
        self.replacements.extend(own.altered.into_iter().map(|(to, is)| ((guid, GuidPrefix(to)), how(is))));
        self.held.extend(own.held.into_iter().map(|to| (guid, GuidPrefix(to))));
        Some(())
    }

    fn restore_stream(&mut self, now: Instant, key: &str, value: &[u8]) -> Option<()> {
        let (writer, to) = key.split_once('/')?;
        let key = (Guid::from_bytes(octets(writer)?), GuidPrefix(octets(to)?));
        let stream: Stream = from_slice(value).ok()?; // tidy-allow(dropped-cause): unreadable records are counted.
        let has_both = [key.0.prefix, key.1].iter().all(|prefix| self.directory.participants.contains_key(prefix));
        if has_both {
            if !stream.open().is_empty() {
                self.resends.insert((now, key));
                self.attempts.insert(key, (now, 0));
            }
            self.streams.insert(key, stream);
        }
        Some(())
    }

    /// Derives the pairs from the endpoints; pairs without a record wait for a verdict.
    fn restore_pairs(&mut self, now: Instant, records: &Records) {
        let endpoints = &self.directory.endpoints;
        let mut found = Vec::new();
        for (guid, endpoint) in endpoints.iter().filter(|(_, endpoint)| matches!(endpoint.data, Data::Writer(_))) {
            let readers = self.directory.matches(&endpoint.data, &self.limits).unwrap_or_default();
            found.extend(readers.into_iter().map(|reader| Pair { writer: *guid, reader }));
        }
        for pair in found.into_iter().take(self.limits.pairs) {
            for (own, peer) in [(pair.writer, pair.reader), (pair.reader, pair.writer)] {
                if let Some(endpoint) = self.directory.endpoints.get_mut(&own) {
                    endpoint.peers.insert(peer);
                }
            }
            let stored = records.get(&pair_key("pair", pair)).and_then(|value| from_slice(value).ok()); // tidy-allow(dropped-cause): then the pair is decided again.
            let decision = match stored.filter(|_| self.denial(pair).is_none()) {
                Some(DecisionRecord::Free) => PairDecision::Free,
                Some(DecisionRecord::Released) => PairDecision::Released,
                Some(DecisionRecord::Refused(reason)) => PairDecision::Refused(reason),
                None => {
                    self.found(now, pair);
                    continue;
                }
            };
            let of = |guid| self.directory.endpoints.get(guid).map(|endpoint| &endpoint.data);
            let (Some(Data::Writer(writer)), Some(Data::Reader(reader))) = (of(&pair.writer), of(&pair.reader)) else {
                continue;
            };
            let contract = resolve(writer, reader, &self.contracts);
            self.pairs.insert(pair, PairState { contract, decision });
        }
    }

    /// Returns pairs with contracts and a known verdict: true if released, false if refused.
    pub fn decided(&self) -> impl Iterator<Item = (Pair, bool)> {
        let with_contract = self.pairs.iter().filter(|(_, state)| state.contract.is_ok());
        with_contract.filter_map(|(pair, state)| match state.decision {
            PairDecision::Released => Some((*pair, true)),
            PairDecision::Refused(_) => Some((*pair, false)),
            PairDecision::Free | PairDecision::Pending(_) | PairDecision::Denied(_) => None,
        })
    }
}

/// Returns the key of a record of a pair.
pub(crate) fn pair_key(kind: &str, pair: Pair) -> String {
    format!("{kind}/{}/{}", hexadecimal(&pair.writer.to_bytes()), hexadecimal(&pair.reader.to_bytes()))
}

/// Returns the pair of a key without its kind.
pub(crate) fn pair_of_key(key: &str) -> Option<Pair> {
    let (writer, reader) = key.split_once('/')?;
    Some(Pair { writer: Guid::from_bytes(octets(writer)?), reader: Guid::from_bytes(octets(reader)?) })
}
