//! Verdicts of the controller and their effects: release of held announcements, and changes
//! inserted into streams.

use std::fmt;

use takt_openflow::channel::Instant;
use takt_wire::{EntityId, Guid, GuidPrefix};

use super::announcement;
use super::interceptor::{Interceptor, PairDecision, Replacement, StreamKey};
use super::message::{Action, Packer};
use super::rewriting::Wanted;
use super::stream::Change;
use super::{Emission, Event, Pair};
use crate::frame::UdpFrame;

/// Maximum number of inserted changes that are sent again at once.
const RESENT_AT_ONCE: usize = 32;
/// Maximum number of doublings of the interval after which inserted changes are sent again.
const DOUBLINGS_MAX: u32 = 5;
/// Maximum length in octets of the unacknowledged inserted changes of one stream.
const OPEN_BYTES_MAX: usize = 4 << 20;
/// Hop limit of the frames that the interceptor creates, which is usual for frames within a
/// network.
const HOP_LIMIT: u8 = 64;

/// The pair does not match, or no longer matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownPair(pub Pair);

impl fmt::Display for UnknownPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a matched pair", self.0)
    }
}

impl std::error::Error for UnknownPair {}

/// Announcements that a refusal changes. Announcements are sent to participants: while an endpoint
/// has another pair with the same participant that is free, released or pending, its true
/// announcement stays. If neither is changed, the pair matches although it is refused, and its
/// samples are sent in the lowest class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enforcement {
    /// Whether the writer is hidden from the reader's participant.
    pub known_to_reader: bool,
    /// Whether the reader is hidden from the writer's participant, so that the writer sends
    /// nothing.
    pub known_to_writer: bool,
}

impl Interceptor {
    /// Lets a pair match: held announcements are sent, and refused ones are announced again. Must
    /// be called when the rules of the pair are in force.
    pub fn release(&mut self, now: Instant, pair: Pair) -> Result<(), UnknownPair> {
        self.apply_verdict(now, pair, PairDecision::Released)
    }

    /// Prevents a pair from matching. The reason is sent to participants of Takt.
    pub fn refuse(&mut self, now: Instant, pair: Pair, reason: &str) -> Result<Enforcement, UnknownPair> {
        self.apply_verdict(now, pair, PairDecision::Refused(reason.to_owned()))?;
        let is_refused = |guid, to| matches!(self.wanted(guid, to), Wanted::Refused(_));
        Ok(Enforcement {
            known_to_reader: is_refused(pair.writer, pair.reader.prefix),
            known_to_writer: is_refused(pair.reader, pair.writer.prefix),
        })
    }

    fn apply_verdict(&mut self, now: Instant, pair: Pair, decision: PairDecision) -> Result<(), UnknownPair> {
        let state = self.pairs.get_mut(&pair).ok_or(UnknownPair(pair))?;
        if matches!(state.decision, PairDecision::Denied(_)) {
            return Ok(());
        }
        if let PairDecision::Pending(until) = std::mem::replace(&mut state.decision, decision) {
            self.pending.remove(&(until, pair));
        }
        self.show_pair(now, pair);
        Ok(())
    }

    /// Refuses pairs without a timely verdict.
    pub(super) fn end_waits(&mut self, now: Instant) {
        while let Some((_, pair)) = self.pending.first().copied().filter(|(until, _)| *until <= now) {
            let reason = format!("the controller gave no verdict within {:?}", self.limits.verdict_timeout);
            self.pending.pop_first();
            if self.apply_verdict(now, pair, PairDecision::Refused(reason)).is_ok() {
                self.report(Event::VerdictMissed { pair });
            }
        }
    }

    /// Brings the announcements to both participants of a pair in line with the wanted ones.
    pub(super) fn show_pair(&mut self, now: Instant, pair: Pair) {
        self.show(now, pair.writer, pair.reader.prefix);
        self.show(now, pair.reader, pair.writer.prefix);
    }

    fn show(&mut self, now: Instant, guid: Guid, to: GuidPrefix) {
        let view = (guid, to);
        let Some(endpoint) = self.directory.endpoints.get(&guid) else { return };
        let (number, first) = (endpoint.number, endpoint.first);
        let key = (Guid::new(guid.prefix, endpoint.announcer()), to);
        let is_known = self.streams.get(&key).is_some_and(|stream| stream.sent.contains(first));
        let replacement = self.replacements.get(&view).copied();
        let is_held = self.held.contains(&view);
        match self.wanted(guid, to) {
            Wanted::Held => {}
            Wanted::True if replacement.is_some() => {
                self.skip_held(key, view, number);
                self.reannounce(now, guid, to, None);
            }
            Wanted::True if is_held => {
                self.held.remove(&view);
                self.send_announcement(key, guid, number);
            }
            Wanted::Refused(reason) if replacement.is_none() && is_known => {
                self.skip_held(key, view, number);
                self.reannounce(now, guid, to, Some(&reason));
            }
            Wanted::Refused(reason) if is_held => {
                self.held.remove(&view);
                self.counters.refused += 1;
                self.send_refused(key, guid, number, &reason);
            }
            Wanted::True | Wanted::Refused(_) => {}
        }
    }

    /// Discards a held change, since another change replaces it.
    fn skip_held(&mut self, key: StreamKey, view: (Guid, GuidPrefix), number: i64) {
        if self.held.remove(&view)
            && let Action::Replace(gap) = self.withhold(key, number)
        {
            self.emit(key, &[gap]);
        }
    }

    fn send_announcement(&mut self, key: StreamKey, guid: Guid, number: i64) {
        let Some(endpoint) = self.directory.endpoints.get(&guid) else { return };
        let stream = self.streams.entry(key).or_default();
        stream.sent.add(number, number);
        let shown = stream.shown(number);
        let data = announcement::data(key.0.entity_id, shown, &endpoint.payload, endpoint.fragment_len);
        self.emit(key, &data);
    }

    fn send_refused(&mut self, key: StreamKey, guid: Guid, number: i64, reason: &str) {
        let stream = self.streams.entry(key).or_default();
        stream.sent.add(number, number);
        let shown = stream.shown(number);
        let payload = self.incompatible(guid, key.1, reason);
        let (replacement, submessages) = match payload {
            Some(payload) => (Replacement::Incompatible, announcement::data(key.0.entity_id, shown, &payload, None)),
            None => (Replacement::Withheld, vec![announcement::gap(key.0.entity_id, shown)]),
        };
        self.replacements.insert((guid, key.1), replacement);
        self.emit(key, &submessages);
    }

    /// Inserts changes that replace a receiver's knowledge of an endpoint: by the true
    /// announcement, or with a reason by a refusal. The endpoint is disposed of first, since the
    /// policies that are compared for a match are immutable (DDS 1.4 §2.2.3).
    pub(super) fn reannounce(&mut self, now: Instant, guid: Guid, to: GuidPrefix, reason: Option<&str>) {
        let Some(endpoint) = self.directory.endpoints.get(&guid) else { return };
        let key = (Guid::new(guid.prefix, endpoint.announcer()), to);
        let last = self.last_of(key.0);
        let announced = match reason {
            None => Some(endpoint.payload.clone()),
            Some(reason) => self.incompatible(guid, to, reason),
        };
        let was = self.replacements.get(&(guid, to)).copied();
        let stream = self.streams.entry(key).or_default();
        if stream.len() + 2 > self.limits.insertions_per_stream || stream.open_len() > OPEN_BYTES_MAX {
            self.counters.limited += 1;
            return;
        }
        let before = stream.len();
        if was != Some(Replacement::Withheld) {
            stream.insert(last, Change::Disposal(guid));
        }
        let is_announced = announced.is_some();
        if let Some(payload) = announced {
            stream.insert(last, Change::Announcement(payload));
        }
        let inserted: Vec<usize> = (before..stream.len()).collect();
        self.counters.inserted += inserted.len() as u64;
        if reason.is_some() {
            self.counters.refused += 1;
            let replacement = if is_announced { Replacement::Incompatible } else { Replacement::Withheld };
            self.replacements.insert((guid, to), replacement);
        } else {
            self.replacements.remove(&(guid, to));
        }
        self.send_insertions(key, &inserted);
        self.schedule(now, key, 0);
    }

    /// Sends inserted changes and a HEARTBEAT.
    pub(super) fn send_insertions(&mut self, key: StreamKey, insertions: &[usize]) {
        if insertions.is_empty() {
            return;
        }
        let last = self.last_of(key.0);
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let writer: EntityId = key.0.entity_id;
        let mut messages = Vec::new();
        for index in insertions.iter().take(RESENT_AT_ONCE) {
            match stream.insertion(*index) {
                (number, Some(Change::Disposal(guid))) => messages.push(announcement::disposal(writer, number, *guid)),
                (number, Some(Change::Announcement(payload))) => {
                    messages.extend(announcement::data(writer, number, payload, None));
                }
                (number, None) => messages.push(announcement::gap(writer, number)),
            }
        }
        let first = stream.shown(stream.first.max(1)).min(stream.insertion(0).0);
        let (shown_last, count) = (stream.shown_last(last), stream.next_count());
        messages.push(announcement::heartbeat(writer, first, shown_last, count));
        self.emit(key, &messages);
    }

    fn schedule(&mut self, now: Instant, key: StreamKey, attempts: u32) {
        if let Some((at, _)) = self.attempts.remove(&key) {
            self.resends.remove(&(at, key));
        }
        let interval = self.limits.resend_interval * 2_u32.pow(attempts.min(DOUBLINGS_MAX));
        let at = now.after(interval);
        self.attempts.insert(key, (at, attempts));
        self.resends.insert((at, key));
    }

    /// Stops the repetition of insertions if all are acknowledged.
    pub(super) fn acknowledged(&mut self, _now: Instant, key: StreamKey) {
        if self.streams.get(&key).is_none_or(|stream| stream.open().is_empty())
            && let Some((at, _)) = self.attempts.remove(&key)
        {
            self.resends.remove(&(at, key));
        }
    }

    /// Sends unacknowledged insertions again.
    pub(super) fn resend(&mut self, now: Instant) {
        while let Some((at, key)) = self.resends.first().copied().filter(|(at, _)| *at <= now) {
            self.resends.remove(&(at, key));
            let attempts = self.attempts.remove(&key).map_or(0, |(_, attempts)| attempts);
            let open = self.streams.get(&key).map(|stream| stream.open()).unwrap_or_default();
            if open.is_empty() {
                continue;
            }
            self.send_insertions(key, &open);
            self.schedule(now, key, attempts.saturating_add(1));
        }
    }

    /// Sends submessages of an SEDP writer to a participant, in messages that fit.
    pub(super) fn emit(&mut self, (writer, to): StreamKey, submessages: &[Vec<u8>]) {
        let participants = &self.directory.participants;
        let (Some(from), Some(to_participant)) = (participants.get(&writer.prefix), participants.get(&to)) else {
            return;
        };
        let Some(destination) = to_participant.metatraffic(from.origin.source) else {
            self.counters.frames_lost += 1;
            return;
        };
        let header = header_octets(from);
        let mut packer = Packer::new(&header, self.limits.message_bytes);
        packer.destination(to);
        for octets in submessages {
            packer.content(octets);
        }
        for message in packer.finish() {
            let frame = UdpFrame {
                destination_mac: to_participant.origin.mac,
                source_mac: from.origin.mac,
                tags: &from.origin.tags,
                source: from.origin.source,
                destination,
                hop_limit: HOP_LIMIT,
                traffic_class: 0,
                payload: &message,
            };
            match frame.build() {
                Ok(frame) if self.frames.len() < self.limits.frames => {
                    self.frames.push_back(Emission { from: from.origin.port, frame });
                }
                _ => self.counters.frames_lost += 1,
            }
        }
    }
}

/// Returns the encoded message header of a participant.
fn header_octets(participant: &super::directory::Participant) -> Vec<u8> {
    let header = participant.header;
    let mut octets = b"RTPS".to_vec();
    octets.extend_from_slice(&[header.version.major, header.version.minor]);
    octets.extend_from_slice(&header.vendor.0);
    octets.extend_from_slice(&header.prefix.0);
    octets
}
