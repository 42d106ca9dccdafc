//! Rewriting of messages for each receiver: announcements pass, are held, or become incompatible or
//! a GAP, with the sequence numbers of the receiver's stream.

use std::net::SocketAddr;

use takt_openflow::channel::Instant;
use takt_wire::{AckNack, Gap, Guid, GuidPrefix, Heartbeat, Submessage, VendorId};

use super::announcement;
use super::directory::stream_index;
use super::interceptor::{Interceptor, PairDecision, Replacement, StreamKey, SubmessageAction, writer_of};
use super::message::{Action, Body, Message, Packer, Part, Patch, at, number_of};
use super::stream::Stream;
use super::{Decision, RefusalForm};
use crate::frame::{Frame, replace_udp_payload};

/// Form in which a receiver is to see an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    True,
    Held,
    Refused(String),
}

impl Interceptor {
    /// Assembles the messages that are forwarded instead of a message.
    pub(super) fn rewrite(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        message: &Message<'_>,
        fates: &[SubmessageAction],
        to: SocketAddr,
    ) -> Decision {
        let receivers = self.receivers_of(message, to);
        let mut actions: Vec<(Option<GuidPrefix>, Vec<Action>)> = Vec::new();
        for receiver in &receivers {
            let parts = message.parts.iter().zip(fates);
            let of = parts
                .map(|(part, submessage_action)| self.action(now, message, part, *submessage_action, *receiver))
                .collect();
            actions.push((Some(*receiver), of));
        }
        if actions.is_empty() {
            let of = fates.iter().map(|submessage_action| {
                if *submessage_action == SubmessageAction::Keep {
                    Action::Keep
                } else {
                    unknown_receiver(*submessage_action)
                }
            });
            actions.push((None, of.collect()));
        }
        let is_same = actions.iter().all(|(_, of)| *of == actions[0].1);
        if is_same && actions[0].1.iter().all(|action| *action == Action::Keep) {
            self.counters.passed += 1;
            return Decision::Pass;
        }
        let len_max = message.bytes.len().max(self.limits.message_bytes);
        let messages: Vec<Vec<u8>> = if is_same {
            pack(message, &actions[0].1, None, len_max)
        } else {
            actions.iter().flat_map(|(receiver, of)| pack(message, of, *receiver, len_max)).collect()
        };
        let frames = messages.iter().map(|message| replace_udp_payload(frame, message));
        Decision::Replace(frames.filter_map(Result::ok).collect())
    }

    /// Returns the participants that a message reaches.
    fn receivers_of(&self, message: &Message<'_>, to: SocketAddr) -> Vec<GuidPrefix> {
        let mut all = Vec::new();
        for part in &message.parts {
            let Body::Plain(submessage) = &part.body else { continue };
            if writer_of(submessage).and_then(stream_index).is_none() {
                continue;
            }
            if part.destination == GuidPrefix::UNKNOWN {
                all.extend(self.directory.receivers(part.source, to));
            } else if self.directory.participants.contains_key(&part.destination) {
                all.push(part.destination);
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn action(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        part: &Part<'_>,
        submessage_action: SubmessageAction,
        to: GuidPrefix,
    ) -> Action {
        let Body::Plain(submessage) = &part.body else {
            return if submessage_action == SubmessageAction::Drop { Action::Drop } else { Action::Keep };
        };
        let Some(writer) = writer_of(submessage).filter(|writer| stream_index(*writer).is_some()) else {
            return if submessage_action == SubmessageAction::Drop { Action::Drop } else { Action::Keep };
        };
        if submessage_action == SubmessageAction::Drop {
            return Action::Drop;
        }
        if part.destination != GuidPrefix::UNKNOWN && part.destination != to {
            // The submessage has another receiver.
            return Action::Keep;
        }
        if let Submessage::AckNack(_) | Submessage::NackFrag(_) = submessage {
            return self.answer(now, message, part, (Guid::new(to, writer), part.source));
        }
        let key = (Guid::new(part.source, writer), to);
        if !self.has_stream(key) {
            let number = number_of(submessage).map(|number| number.0);
            return number.map_or(Action::Keep, |number| Action::Replace(announcement::gap(writer, number)));
        }
        match submessage_action {
            SubmessageAction::Withhold(number) => self.withhold(key, number),
            SubmessageAction::Announcement(guid, number)
            | SubmessageAction::Fragment(guid, number)
            | SubmessageAction::Completed(guid, number) => {
                self.announcement(now, message, part, (submessage_action, guid, number), key)
            }
            SubmessageAction::Keep | SubmessageAction::Drop => self.renumber(message, part, submessage, key),
        }
    }

    /// Ensures that the stream exists. Returns false at the limit.
    fn has_stream(&mut self, key: StreamKey) -> bool {
        if !self.streams.contains_key(&key) {
            if self.streams.len() >= self.limits.streams {
                self.counters.limited += 1;
                return false;
            }
            self.streams.insert(key, Stream::default());
        }
        true
    }

    /// Replaces a change by a GAP.
    pub(super) fn withhold(&mut self, key: StreamKey, number: i64) -> Action {
        let stream = self.streams.entry(key).or_default();
        stream.sent.add(number, number);
        Action::Replace(announcement::gap(key.0.entity_id, stream.shown(number)))
    }

    /// Returns the form in which the receiver is to see an endpoint: the true announcement if any
    /// pair with it is free or released.
    pub(super) fn wanted(&self, guid: Guid, to: GuidPrefix) -> Wanted {
        let Some(endpoint) = self.directory.endpoints.get(&guid) else { return Wanted::True };
        let of = Guid::from_bytes(bounds(to, 0))..=Guid::from_bytes(bounds(to, 0xff));
        let (mut is_pending, mut refusal) = (false, None);
        for peer in endpoint.peers.range(of) {
            match self.pairs.get(&endpoint.pair(*peer)).map(|state| &state.decision) {
                Some(PairDecision::Free | PairDecision::Released) => return Wanted::True,
                Some(PairDecision::Pending(_)) => is_pending = true,
                Some(PairDecision::Refused(reason)) => refusal = Some(reason),
                // A denial takes precedence over other pairs of the two participants.
                Some(PairDecision::Denied(reason)) => return Wanted::Refused(reason.clone()),
                None => {}
            }
        }
        match (is_pending, refusal) {
            (true, _) => Wanted::Held,
            (false, Some(reason)) => Wanted::Refused(reason.clone()),
            (false, None) => Wanted::True,
        }
    }

    fn announcement(
        &mut self,
        now: Instant,
        message: &Message<'_>,
        part: &Part<'_>,
        (submessage_action, guid, number): (SubmessageAction, Guid, i64),
        key: StreamKey,
    ) -> Action {
        let (wanted, view) = (self.wanted(guid, key.1), (guid, key.1));
        let stream = self.streams.entry(key).or_default();
        let (was_sent, shown) = (stream.sent.contains(number), stream.shown(number));
        let Some(endpoint) = self.directory.endpoints.get(&guid) else {
            return renumbered(message, part, number, shown);
        };
        let is_known = stream.sent.contains(endpoint.first);
        let is_current = number == endpoint.number;
        let replacement = self.replacements.get(&view).copied();
        match wanted {
            Wanted::Held if !was_sent => {
                if self.held.insert(view) {
                    self.counters.held += 1;
                }
                Action::Drop
            }
            // An older change; a later one already shows the endpoint in another form.
            Wanted::Refused(_) if !is_current => self.withhold(key, number),
            Wanted::True | Wanted::Held if replacement.is_some() && !was_sent => {
                let gap = self.withhold(key, number);
                self.held.remove(&view);
                self.reannounce(now, guid, key.1, None);
                gap
            }
            Wanted::True | Wanted::Held => {
                stream.sent.add(number, number);
                self.held.remove(&view);
                if let SubmessageAction::Completed(..) = submessage_action {
                    let data = announcement::data(key.0.entity_id, shown, &endpoint.payload, endpoint.fragment_len);
                    self.emit(key, &data);
                    return Action::Drop;
                }
                renumbered(message, part, number, shown)
            }
            Wanted::Refused(reason) if replacement.is_none() && is_known && !was_sent => {
                let gap = self.withhold(key, number);
                self.reannounce(now, guid, key.1, Some(&reason));
                gap
            }
            Wanted::Refused(reason) => {
                self.held.remove(&view);
                self.counters.refused += 1;
                match self.incompatible(guid, key.1, &reason) {
                    Some(payload) if matches!(submessage_action, SubmessageAction::Announcement(..)) => {
                        let stream = self.streams.entry(key).or_default();
                        stream.sent.add(number, number);
                        self.replacements.insert(view, Replacement::Incompatible);
                        let data = announcement::data(key.0.entity_id, shown, &payload, None);
                        Action::Replace(data.concat())
                    }
                    _ => {
                        self.replacements.insert(view, Replacement::Withheld);
                        self.withhold(key, number)
                    }
                }
            }
        }
    }

    /// Returns the incompatible announcement of an endpoint for a receiver; `None` if refused
    /// endpoints are withheld.
    pub(super) fn incompatible(&self, guid: Guid, to: GuidPrefix, reason: &str) -> Option<Vec<u8>> {
        let endpoint = self.directory.endpoints.get(&guid)?;
        if self.refusal == RefusalForm::Withheld || endpoint.fragment_len.is_some() {
            return None;
        }
        let is_takt = self.directory.participants.get(&to)?.data.vendor_id == VendorId::TAKT;
        let is_writer = guid.entity_id.is_writer();
        let ownership = endpoint.data.ownership();
        announcement::incompatible(&endpoint.payload, ownership, is_writer, is_takt.then_some(reason))
            .filter(|payload| payload.len() <= self.limits.message_bytes)
    }

    /// Increases the sequence numbers in a writer's submessage to the shown ones.
    fn renumber(
        &mut self,
        message: &Message<'_>,
        part: &Part<'_>,
        submessage: &Submessage<'_>,
        key: StreamKey,
    ) -> Action {
        let last = self.last_of(key.0);
        let stream = self.streams.entry(key).or_default();
        match submessage {
            Submessage::Data(_) | Submessage::DataFrag(_) => {
                let number = number_of(submessage).map_or(0, |number| number.0);
                stream.sent.add(number, number);
                let shown = stream.shown(number);
                renumbered(message, part, number, shown)
            }
            Submessage::Heartbeat(heartbeat) => shown_heartbeat(stream, message, part, heartbeat, last),
            Submessage::HeartbeatFrag(heartbeat) if !stream.is_identity() => {
                let shown = stream.shown(heartbeat.sn.0);
                Patch::new(message.bytes, part).number(at::FRAGMENTS_NUMBER, shown).finish()
            }
            Submessage::Gap(gap) => {
                stream.sent.add(gap.gap_start.0, gap.gap_list.base().0 - 1);
                gap.gap_list.iter().for_each(|number| stream.sent.add(number.0, number.0));
                shown_gap(stream, message, part, gap)
            }
            _ => Action::Keep,
        }
    }

    /// Returns the last own number of an SEDP writer.
    pub(super) fn last_of(&self, writer: Guid) -> i64 {
        let index = stream_index(writer.entity_id).unwrap_or(0);
        self.directory.participants.get(&writer.prefix).map_or(0, |participant| participant.last[index])
    }

    /// Decreases the sequence numbers in a reader's submessage to the own ones, and sends the
    /// inserted changes that it requests.
    fn answer(&mut self, now: Instant, message: &Message<'_>, part: &Part<'_>, key: StreamKey) -> Action {
        let Some(stream) = self.streams.get_mut(&key).filter(|stream| !stream.is_identity()) else {
            return Action::Keep;
        };
        match &part.body {
            Body::Plain(Submessage::AckNack(acknack)) => {
                stream.acknowledge(acknack.reader_sn_state.base().0);
                let (action, requested) = own_acknack(stream, message, part, acknack);
                self.acknowledged(now, key);
                self.send_insertions(key, &requested);
                action
            }
            Body::Plain(Submessage::NackFrag(nack)) => match stream.own(nack.sn.0) {
                Ok(own) => Patch::new(message.bytes, part).number(at::FRAGMENTS_NUMBER, own).finish(),
                Err(index) => {
                    self.send_insertions(key, &[index]);
                    Action::Drop
                }
            },
            _ => Action::Keep,
        }
    }
}

/// Returns the first or last GUID of a participant.
fn bounds(prefix: GuidPrefix, entity: u8) -> [u8; 16] {
    let mut bytes = [entity; 16];
    bytes[..12].copy_from_slice(&prefix.0);
    bytes
}

/// Returns the treatment of a submessage with unknown receivers: an announcement has no pair there.
fn unknown_receiver(submessage_action: SubmessageAction) -> Action {
    match submessage_action {
        SubmessageAction::Keep | SubmessageAction::Announcement(..) | SubmessageAction::Fragment(..) => Action::Keep,
        SubmessageAction::Drop | SubmessageAction::Withhold(_) | SubmessageAction::Completed(..) => Action::Drop,
    }
}

fn renumbered(message: &Message<'_>, part: &Part<'_>, number: i64, shown: i64) -> Action {
    if shown == number {
        return Action::Keep;
    }
    Patch::new(message.bytes, part).number(at::DATA_NUMBER, shown).finish()
}

fn shown_heartbeat(stream: &mut Stream, message: &Message<'_>, part: &Part<'_>, it: &Heartbeat, last: i64) -> Action {
    stream.first = it.first_sn.0;
    let count = stream.shown_count(it.count);
    if stream.is_identity() {
        return Action::Keep;
    }
    // An older HEARTBEAT, or an empty history, ends before the insertions after later numbers.
    let shown_last = stream.shown_last(it.last_sn.0.min(last)).max(it.first_sn.0 - 1);
    Patch::new(message.bytes, part)
        .number(at::HEARTBEAT_FIRST, stream.shown(it.first_sn.0).min(shown_last.saturating_add(1)))
        .number(at::HEARTBEAT_LAST, shown_last)
        .u32(at::HEARTBEAT_COUNT, count.cast_unsigned())
        .finish()
}

fn shown_gap(stream: &Stream, message: &Message<'_>, part: &Part<'_>, gap: &Gap) -> Action {
    let (start, base) = (gap.gap_start.0, gap.gap_list.base().0);
    let end = base.saturating_add(i64::from(gap.gap_list.num_bits()));
    if stream.is_identity() || (!stream.parts(start, end) && stream.shown(start) == start) {
        return Action::Keep;
    }
    if stream.parts(start, end) {
        return Action::Replace(announcement::gaps(gap.writer, &stream.shown_gaps(start, &gap.gap_list)));
    }
    Patch::new(message.bytes, part)
        .number(at::GAP_START, stream.shown(start))
        .number(at::GAP_BASE, stream.shown(base))
        .finish()
}

/// Translates an acknowledgment to own numbers. Also returns the insertions that it requests.
fn own_acknack(stream: &Stream, message: &Message<'_>, part: &Part<'_>, it: &AckNack) -> (Action, Vec<usize>) {
    let (base, words, insertions) = stream.own_set(&it.reader_sn_state);
    let mut patch = Patch::new(message.bytes, part).number(at::ACKNACK_BASE, base);
    for (index, word) in words.iter().enumerate().take(it.reader_sn_state.num_bits().div_ceil(32) as usize) {
        patch = patch.u32(at::ACKNACK_WORDS + 4 * index, *word);
    }
    (patch.finish(), insertions)
}

/// Assembles the messages for one receiver, or for all if all get the same.
fn pack(message: &Message<'_>, actions: &[Action], receiver: Option<GuidPrefix>, len_max: usize) -> Vec<Vec<u8>> {
    let mut packer = Packer::new(message.bytes, len_max);
    if let Some(receiver) = receiver {
        packer.destination(receiver);
    }
    for (part, action) in message.parts.iter().zip(actions) {
        let octets = &message.bytes[part.range.clone()];
        let is_for_other = receiver.is_some_and(|to| ![GuidPrefix::UNKNOWN, to].contains(&part.destination));
        match (&part.body, action) {
            (Body::Destination, _) if receiver.is_none() => packer.destination(part.destination),
            (Body::Destination | Body::Extension, _) => {}
            (Body::Context(id), _) => packer.context(*id, octets),
            _ if is_for_other => {}
            (_, Action::Keep) => packer.content(octets),
            (_, Action::Replace(octets)) => packer.content(octets),
            (_, Action::Drop) => {}
        }
    }
    packer.finish()
}
