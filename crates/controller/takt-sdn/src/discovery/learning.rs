//! Learning from discovery submessages: participants, endpoints and pairs.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use takt_openflow::channel::Instant;
use takt_wire::discovery::{LATENCY_PROPERTY, ParticipantData, parse_key};
use takt_wire::inline_qos::InlineQos;
use takt_wire::message::Header;
use takt_wire::{Data as DataSubmessage, DataFrag, EntityId, Guid, GuidPrefix, Payload, Submessage};

use super::directory::{Data, Endpoint, Origin, Refusal, stream_index};
use super::fragments::AddResult;
use super::interceptor::{Interceptor, PairDecision, PairState, StreamKey, SubmessageAction, is_secured, writer_of};
use super::message::{Body, Part};
use super::{Event, Forgery, Limit, Pair};
use crate::contract::resolve;
use crate::registration::is_reserved;

/// Lowest discovery port, and number of ports per domain (RTPS 2.5 §9.6.2.3).
const PORT_BASE: u16 = 7400;
const PORTS_PER_DOMAIN: u16 = 250;
/// Highest sequence number after which changes are inserted, far below the maximum.
const NUMBER_MAX: i64 = 1 << 62;

impl Interceptor {
    pub(super) fn learn(
        &mut self,
        now: Instant,
        header: &Header,
        part: &Part<'_>,
        origin: &Origin,
        to: SocketAddr,
    ) -> SubmessageAction {
        let submessage = match &part.body {
            Body::Plain(submessage) => submessage,
            Body::Malformed => {
                self.counters.malformed += 1;
                return SubmessageAction::Drop;
            }
            Body::Secured => {
                self.opaque(part.source);
                return SubmessageAction::Keep;
            }
            Body::Destination | Body::Context(_) | Body::Extension | Body::Other => return SubmessageAction::Keep,
        };
        let writer = writer_of(submessage);
        if writer.is_some_and(is_secured) {
            self.opaque(part.source);
            return SubmessageAction::Keep;
        }
        if writer == Some(EntityId::SPDP_WRITER) {
            return self.learn_participant(now, header, part.source, submessage, origin, to);
        }
        let Some(index) = writer.and_then(stream_index) else { return SubmessageAction::Keep };
        match self.directory.is_source_valid(part.source, origin) {
            Some(false) => {
                self.forged(part.source, origin, Forgery::ForeignSource);
                return SubmessageAction::Drop;
            }
            None => {
                self.counters.unknown_participants += 1;
                return SubmessageAction::Drop;
            }
            Some(true) => {}
        }
        self.learn_number(part.source, index, submessage);
        match submessage {
            Submessage::Data(data) => self.learn_data(now, part.source, data, origin),
            Submessage::DataFrag(data) => self.learn_fragment(now, part.source, data, origin),
            _ => SubmessageAction::Keep,
        }
    }

    fn learn_number(&mut self, source: GuidPrefix, index: usize, submessage: &Submessage<'_>) {
        let number = match submessage {
            Submessage::Data(data) => data.sn.0,
            Submessage::DataFrag(data) => data.sn.0,
            Submessage::Heartbeat(heartbeat) => heartbeat.last_sn.0,
            Submessage::Gap(gap) => gap.gap_list.base().0 - 1,
            _ => return,
        };
        if let Some(participant) = self.directory.participants.get_mut(&source) {
            participant.last[index] = participant.last[index].max(number.min(NUMBER_MAX));
        }
    }

    fn opaque(&mut self, participant: GuidPrefix) {
        self.counters.opaque += 1;
        if let Some(known) = self.directory.participants.get_mut(&participant)
            && !std::mem::replace(&mut known.is_opaque, true)
        {
            self.report_abuse(Event::Opaque { participant });
        }
    }

    fn learn_participant(
        &mut self,
        now: Instant,
        header: &Header,
        source: GuidPrefix,
        submessage: &Submessage<'_>,
        origin: &Origin,
        to: SocketAddr,
    ) -> SubmessageAction {
        let data = match submessage {
            Submessage::Data(data) => data,
            // An announcement of a participant fits into a datagram; a fragmented one cannot be
            // checked.
            Submessage::DataFrag(_) => {
                self.counters.malformed += 1;
                return SubmessageAction::Drop;
            }
            _ => return SubmessageAction::Keep,
        };
        if is_disposal(data) {
            return self.learn_disposal(source, data, origin);
        }
        let Some(announced) = self.parse_announcement(source, data, origin) else { return SubmessageAction::Drop };
        let by_port = to.port().saturating_sub(PORT_BASE) / PORTS_PER_DOMAIN;
        let domain = announced.domain_id.unwrap_or(u32::from(by_port));
        let label = announced.label();
        let reported = |data: &ParticipantData| data.properties.get(LATENCY_PROPERTY).map(str::to_owned);
        let (new, known) =
            (reported(&announced), self.directory.participants.get(&source).and_then(|it| reported(&it.data)));
        match self.directory.announce(
            now,
            Header { prefix: source, ..*header },
            announced,
            domain,
            origin,
            &self.limits,
        ) {
            Ok(false) => {
                if new != known {
                    self.report(Event::LatencyReported { participant: source });
                }
                SubmessageAction::Keep
            }
            Ok(true) => {
                let end = self.directory.participants.get(&source).and_then(|participant| participant.lease_end());
                end.map(|end| self.leases.insert((end, source)));
                let (port, source_address) = (origin.port, origin.source);
                self.report(Event::ParticipantFound { participant: source, label, port, source: source_address });
                SubmessageAction::Keep
            }
            Err(Refusal::Forged(what)) => {
                self.forged(source, origin, what);
                SubmessageAction::Drop
            }
            Err(Refusal::Limit(limit)) => {
                self.limited(source, limit);
                SubmessageAction::Drop
            }
        }
    }

    /// Parses the announcement of a participant. Counts a malformed one and reports a forged one,
    /// and returns `None` for both.
    fn parse_announcement(
        &mut self,
        source: GuidPrefix,
        data: &DataSubmessage<'_>,
        origin: &Origin,
    ) -> Option<ParticipantData> {
        let Some(Ok(announced)) = data.payload.bytes().map(ParticipantData::parse) else {
            self.counters.malformed += 1;
            return None;
        };
        if is_reserved(source) {
            self.forged(source, origin, Forgery::ReservedPrefix);
            return None;
        }
        if announced.guid.prefix != source {
            self.forged(source, origin, Forgery::ForeignEndpoint);
            return None;
        }
        Some(announced)
    }

    fn learn_disposal(&mut self, source: GuidPrefix, data: &DataSubmessage<'_>, origin: &Origin) -> SubmessageAction {
        match self.directory.is_source_valid(source, origin) {
            None => {
                self.counters.unknown_participants += 1;
                return SubmessageAction::Drop;
            }
            Some(false) => {
                self.forged(source, origin, Forgery::ForeignSource);
                return SubmessageAction::Drop;
            }
            Some(true) => {}
        }
        match key_of(data) {
            Some(guid) if guid.prefix == source => {
                self.remove_participant(source);
                SubmessageAction::Keep
            }
            Some(_) => {
                self.forged(source, origin, Forgery::ForeignEndpoint);
                SubmessageAction::Drop
            }
            None => {
                self.counters.malformed += 1;
                SubmessageAction::Drop
            }
        }
    }

    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        let endpoints = self.directory.participants.get(&prefix).map(|it| it.endpoints.clone()).unwrap_or_default();
        for guid in endpoints {
            self.remove_endpoint(guid);
        }
        self.directory.remove_participant(prefix);
        self.reassemblies.remove_participant(prefix);
        let concerns = |(writer, receiver): &StreamKey| writer.prefix == prefix || *receiver == prefix;
        self.streams.retain(|key, _| !concerns(key));
        self.resends.retain(|(_, key)| !concerns(key));
        self.attempts.retain(|key, _| !concerns(key));
        self.replacements.retain(|(_, receiver), _| *receiver != prefix);
        self.held.retain(|(_, receiver)| *receiver != prefix);
        self.report(Event::ParticipantGone { participant: prefix });
    }

    fn remove_endpoint(&mut self, guid: Guid) {
        let Some(endpoint) = self.directory.drop_endpoint(guid) else { return };
        for peer in &endpoint.peers {
            self.remove_pair(endpoint.pair(*peer), *peer, guid);
        }
        let of = (guid, GuidPrefix([0; 12]))..=(guid, GuidPrefix([0xff; 12]));
        let replaced: Vec<_> = self.replacements.range(of.clone()).map(|(key, _)| *key).collect();
        for key in replaced {
            self.replacements.remove(&key);
        }
        let held: Vec<_> = self.held.range(of).copied().collect();
        for key in held {
            self.held.remove(&key);
        }
    }

    fn remove_pair(&mut self, pair: Pair, peer: Guid, guid: Guid) {
        if let Some(endpoint) = self.directory.endpoints.get_mut(&peer) {
            endpoint.peers.remove(&guid);
        }
        if let Some(state) = self.pairs.remove(&pair) {
            if let PairDecision::Pending(until) = state.decision {
                self.pending.remove(&(until, pair));
            }
            self.report(Event::PairGone { pair });
        }
    }

    fn learn_data(
        &mut self,
        now: Instant,
        source: GuidPrefix,
        data: &DataSubmessage<'_>,
        origin: &Origin,
    ) -> SubmessageAction {
        if !is_disposal(data) {
            let payload = data.payload.bytes().unwrap_or_default();
            return match self.learn_endpoint(now, source, data.writer, data.sn.0, payload, None, origin) {
                Some(guid) => SubmessageAction::Announcement(guid, data.sn.0),
                None => SubmessageAction::Withhold(data.sn.0),
            };
        }
        match key_of(data) {
            Some(guid) if guid.prefix == source => {
                self.directory.mark_disposed(guid, data.sn.0);
                if self.directory.endpoints.get(&guid).is_some_and(|endpoint| endpoint.number < data.sn.0) {
                    self.remove_endpoint(guid);
                }
                SubmessageAction::Keep
            }
            Some(_) => {
                self.forged(source, origin, Forgery::ForeignEndpoint);
                SubmessageAction::Withhold(data.sn.0)
            }
            None => {
                self.counters.malformed += 1;
                SubmessageAction::Withhold(data.sn.0)
            }
        }
    }

    fn learn_fragment(
        &mut self,
        now: Instant,
        source: GuidPrefix,
        data: &DataFrag<'_>,
        origin: &Origin,
    ) -> SubmessageAction {
        let writer = Guid::new(source, data.writer);
        let number = data.sn.0;
        let known = self.directory.participants.get(&source).and_then(|participant| {
            participant.endpoints.iter().copied().find(|guid| {
                let endpoint = self.directory.endpoints.get(guid);
                endpoint.is_some_and(|it| it.number == number && it.announcer() == data.writer)
            })
        });
        if let Some(guid) = known {
            return SubmessageAction::Fragment(guid, number);
        }
        match self.reassemblies.add(now, writer, data, &self.limits, &mut self.counters.unfinished) {
            AddResult::Incomplete => SubmessageAction::Drop,
            AddResult::Refused => {
                self.counters.malformed += 1;
                SubmessageAction::Withhold(number)
            }
            AddResult::Complete(payload) => {
                let fragment_len = Some(data.fragment_size);
                match self.learn_endpoint(now, source, data.writer, number, &payload, fragment_len, origin) {
                    Some(guid) => SubmessageAction::Completed(guid, number),
                    None => SubmessageAction::Withhold(number),
                }
            }
        }
    }

    /// Processes an announcement of an endpoint; returns `None` if it is to be withheld.
    #[allow(clippy::too_many_arguments, reason = "they are the fields of one submessage and its frame")]
    fn learn_endpoint(
        &mut self,
        now: Instant,
        source: GuidPrefix,
        writer: EntityId,
        number: i64,
        payload: &[u8],
        fragment_len: Option<u16>,
        origin: &Origin,
    ) -> Option<Guid> {
        let Ok(data) = Data::parse(writer, payload) else {
            self.counters.malformed += 1;
            return None;
        };
        let guid = data.guid();
        if guid.prefix != source {
            self.forged(source, origin, Forgery::ForeignEndpoint);
            return None;
        }
        let known = self.directory.endpoints.get(&guid);
        if known.is_some_and(|endpoint| endpoint.announcer() != writer) {
            self.counters.malformed += 1;
            return None;
        }
        if known.is_some_and(|endpoint| endpoint.number == number) || self.directory.is_outdated(guid, number) {
            return Some(guid);
        }
        let checked = self.directory.check_limits(&data, payload.len(), &self.limits);
        let peers = match checked.and_then(|()| self.directory.matches(&data, &self.limits)) {
            Ok(peers) if self.pairs.len() + peers.len() <= self.limits.pairs => peers,
            Ok(_) => {
                self.limited(source, Limit::Pairs);
                return None;
            }
            Err(limit) => {
                self.limited(source, limit);
                return None;
            }
        };
        let first = known.map_or(number, |endpoint| endpoint.first);
        let payload = payload.to_vec();
        self.directory.store_endpoint(Endpoint { data, number, first, payload, fragment_len, peers: BTreeSet::new() });
        self.pair_with(now, guid, &peers);
        Some(guid)
    }

    /// Compares the peers of an endpoint with its present ones.
    fn pair_with(&mut self, now: Instant, guid: Guid, peers: &BTreeSet<Guid>) {
        let Some(endpoint) = self.directory.endpoints.get_mut(&guid) else { return };
        let before = std::mem::replace(&mut endpoint.peers, peers.clone());
        let pairs: Vec<(Pair, Guid)> = before.union(peers).map(|peer| (endpoint.pair(*peer), *peer)).collect();
        for (pair, peer) in pairs {
            if !peers.contains(&peer) {
                self.remove_pair(pair, peer, guid);
                continue;
            }
            if let Some(other) = self.directory.endpoints.get_mut(&peer) {
                other.peers.insert(guid);
            }
            self.found(now, pair);
        }
    }

    /// Handles a match of a pair, which may have matched before.
    pub(super) fn found(&mut self, now: Instant, pair: Pair) {
        let (Some(writer), Some(reader)) =
            (self.directory.endpoints.get(&pair.writer), self.directory.endpoints.get(&pair.reader))
        else {
            return;
        };
        let (Data::Writer(writer), Data::Reader(reader)) = (&writer.data, &reader.data) else { return };
        let contract = resolve(writer, reader, &self.contracts);
        let address = |prefix| self.directory.participants.get(&prefix).map(|it| it.origin.source.ip());
        let is_local = address(pair.writer.prefix) == address(pair.reader.prefix);
        // Traffic within one host passes no switch.
        let denial = if is_local { None } else { self.denial(pair) };
        let is_as_before = |state: &PairState| {
            let denied = if let PairDecision::Denied(reason) = &state.decision { Some(reason) } else { None };
            state.contract == contract && denied == denial.as_ref()
        };
        if self.pairs.get(&pair).is_some_and(is_as_before) {
            return;
        }
        let is_companion = (contract.is_err() || is_local) && self.is_companion(pair);
        let decision = match denial {
            Some(reason) => PairDecision::Denied(reason),
            None if is_companion || contract.is_ok() && !is_local => {
                PairDecision::Pending(now.after(self.limits.verdict_timeout))
            }
            None => PairDecision::Free,
        };
        if let PairDecision::Pending(until) = decision {
            self.pending.insert((until, pair));
        }
        let denial = if let PairDecision::Denied(reason) = &decision { Some(reason.clone()) } else { None };
        let state = PairState { contract: contract.clone(), decision };
        if let Some(PairState { decision: PairDecision::Pending(until), .. }) = self.pairs.insert(pair, state) {
            // The verdict timeout starts again, unless it is the same time.
            if until != now.after(self.limits.verdict_timeout) {
                self.pending.remove(&(until, pair));
            }
        }
        match denial {
            Some(reason) => self.report(Event::PairDenied { pair, reason }),
            None if !is_local => self.report(Event::PairFound { pair, contract }),
            None => {}
        }
        if is_companion && matches!(self.pairs.get(&pair), Some(PairState { decision: PairDecision::Pending(_), .. })) {
            self.report(Event::CompanionFound { pair });
        }
        self.show_pair(now, pair);
    }
}

/// Reports whether the change disposes of its instance or unregisters it.
fn is_disposal(data: &DataSubmessage<'_>) -> bool {
    let status = data.inline_qos.and_then(|list| InlineQos::parse(list).ok()).and_then(|qos| qos.status_info);
    status.unwrap_or(0) & 3 != 0 || matches!(data.payload, Payload::Key(_))
}

/// Returns the entity of a change, by its key or its key hash, which equals the key.
fn key_of(data: &DataSubmessage<'_>) -> Option<Guid> {
    let of_payload = data.payload.bytes().and_then(|payload| parse_key(payload).ok());
    let hash = || data.inline_qos.and_then(|list| InlineQos::parse(list).ok()).and_then(|qos| qos.key_hash);
    of_payload.or_else(|| hash().map(Guid::from_bytes))
}
