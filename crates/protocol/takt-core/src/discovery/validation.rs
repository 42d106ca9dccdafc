//! Address validation: proof that a participant receives at the address it announces, and limits
//! until then.
//!
//! An announcement is a datagram that can be forged, with any source and any locators. A new
//! participant is therefore on probation: it is sent this participant's announcement and a
//! challenge, in total at most [`AMPLIFICATION_MAX`] octets for each octet that was received from
//! its address or announced it. None of its endpoints is matched.
//!
//! The challenge is a heartbeat (RTPS 2.5 §8.3.8.6) of each of the two SEDP writers, sent to this
//! participant alone. It offers no samples, and its first sequence number can be known only to its
//! addressee. A reliable reader of any vendor acknowledges up to that number (RTPS 2.5 §8.4.12.2).
//! Both answers together are the proof, 30 bits of it, and discovery continues as specified. A
//! participant that answers wrongly [`WRONG_ANSWERS_MAX`] times is no longer accepted. Samples of
//! the SEDP writers have higher numbers than any challenge.
//!
//! # Limits
//! - An attacker that can read the traffic to an address can validate it. Only DDS Security
//!   prevents that.
//! - A participant that was lost without a farewell is accepted at its previously validated
//!   address, because its readers answer no further challenge. [`KNOWN_MAX`] of them are
//!   stored. For the same reason a participant that moves to another address is accepted there
//!   only if it is of this vendor, or once it has removed this participant.
//! - An attacker that forges messages of a validated participant can request repairs, which are
//!   sent to that participant.

use super::reachability::Host;
use super::{Remote, SEDP_PUBLICATIONS, SEDP_SUBSCRIPTIONS};
use crate::context::{Context, Job};
use crate::discovery::{Call, Discovery};
use crate::event::Event;
use crate::participant::Received;
use crate::path::Path;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use takt_schedule::Priority;
use takt_wire::builder::MessageBuilder;
use takt_wire::message::{AckNack, Heartbeat};
use takt_wire::{EntityId, Full, Guid, GuidPrefix, Locator, SequenceNumber, SequenceNumberSet, VendorId};

/// Maximum number of octets that are sent for each octet received from a participant with an
/// unvalidated address. Both count RTPS messages; sent octets include the headers of UDP and IPv4.
pub const AMPLIFICATION_MAX: usize = 3;

/// Length of the RTPS header, `INFO_DST` and two `HEARTBEAT`s.
const CHALLENGE_LEN: usize = 20 + 16 + 2 * 32;
/// Length of the UDP and IPv4 headers.
const HEADERS_LEN: usize = 28;

/// Lowest challenge number; challenges are below twice this number.
/// INTEROP(Fast DDS 2.9.1): hangs for minutes if a heartbeat skips 2^30 numbers, so they cannot be
/// large.
const FIRST_CHALLENGE: i64 = 1 << 15;

/// Number below those of the samples of SEDP writers.
pub(crate) const BEFORE_FIRST_ENDPOINT: SequenceNumber = SequenceNumber(2 * FIRST_CHALLENGE);

/// Time between the first challenges; doubles. A participant that has just received the
/// announcement needs a moment before it can answer.
const CHALLENGE_PERIOD: Duration = Duration::from_millis(20);
/// Silence after the first challenge from which a participant may have missed the announcement.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_millis(50);
/// Challenges that are sent unsolicited; further ones follow its messages.
const UNSOLICITED_CHALLENGES: u32 = 4;
/// Silence after the first challenge from which a participant counts as not answering.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum time between challenges that a participant causes by its messages. It doubles with each,
/// up to [`CHALLENGE_DOUBLINGS`] times, because its messages may be forged. That is 320 ms, so a
/// participant whose answers were lost for long is validated soon after it is heard again.
/// [`AMPLIFICATION_MAX`] bounds the octets regardless of the period.
const CHALLENGE_PERIOD_MIN: Duration = Duration::from_millis(5);
const CHALLENGE_DOUBLINGS: u32 = 6;
/// Wrong answers after which a participant is no longer accepted, so that guessing is useless.
const WRONG_ANSWERS_MAX: u32 = 3;

/// Maximum number of former addresses of a participant on probation whose answers may still be in
/// transit; the oldest is replaced.
const FORMER_MAX: usize = 4;

/// Maximum number of lost participants that are stored with their address; the oldest is replaced.
const KNOWN_MAX: usize = 256;

/// SEDP writers, and the readers that answer them.
const CHALLENGERS: [(u32, EntityId, EntityId); 2] = [
    (SEDP_PUBLICATIONS, EntityId::SEDP_PUB_WRITER, EntityId::SEDP_PUB_READER),
    (SEDP_SUBSCRIPTIONS, EntityId::SEDP_SUB_WRITER, EntityId::SEDP_SUB_READER),
];

/// Reports whether a sequence number may be a challenge.
fn is_challenge(number: SequenceNumber) -> bool {
    (FIRST_CHALLENGE..2 * FIRST_CHALLENGE).contains(&number.0)
}

/// Pending messages to a participant outside the protocol of its endpoints.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PendingMessages {
    queued: bool,
    /// Send a farewell.
    farewell: bool,
    /// Numbers of the participant's own challenges to be answered.
    answers: [Option<SequenceNumber>; 2],
}

/// State of a participant with an unvalidated address.
#[derive(Debug)]
pub(crate) struct Probation {
    /// Octets that may still be sent to the participant.
    credit: usize,
    timer: TimerId,
    challenges: u32,
    first_challenge: Option<Instant>,
    last_challenge: Option<Instant>,
    announcement_due: bool,
    challenge_due: bool,
    /// Which of the two challenges the participant has answered.
    answered: [bool; 2],
    wrong_answers: u32,
    /// Addresses of earlier challenges: answers from there are late, not wrong.
    former: Vec<Locator>,
    /// The missing answer was reported, or is not to be, because the participant has validated
    /// another address.
    is_reported: bool,
}

/// Participant that announces itself and does not answer at the announced address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentParticipant {
    /// GUID of the participant.
    pub guid: Guid,
    /// Name, host and process as far as announced.
    pub label: String,
    /// Address of the challenges.
    pub locator: Locator,
    /// Number of challenges sent.
    pub challenges: u32,
}

impl fmt::Display for SilentParticipant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, locator, challenges, .. } = self;
        write!(f, "{label} did not answer {challenges} challenges at {locator}: check firewalls and routes")
    }
}

impl Probation {
    pub(super) fn new(ctx: &mut Context) -> Self {
        Self {
            credit: 0,
            timer: ctx.timers.register(TimerKind::Challenge { participant: u32::MAX }),
            challenges: 0,
            first_challenge: None,
            last_challenge: None,
            announcement_due: true,
            challenge_due: true,
            answered: [false; 2],
            wrong_answers: 0,
            former: Vec::new(),
            is_reported: false,
        }
    }

    /// Returns the state for a participant that knows this one and needs no announcement.
    pub(super) fn of_known(ctx: &mut Context) -> Self {
        Self { announcement_due: false, is_reported: true, ..Self::new(ctx) }
    }

    /// Waits for a handshake, which proves the address instead.
    pub(crate) fn await_handshake(&mut self) {
        self.challenge_due = false;
        self.is_reported = true;
    }

    /// Restarts the challenges.
    pub(crate) fn await_answers(&mut self) {
        self.answered = [false; 2];
    }

    /// Restarts the validation after a change of address. Earlier answers do not count.
    pub(super) fn restart(&mut self, former: Vec<Locator>) {
        self.answered = [false; 2];
        self.challenge_due = true;
        self.former = former;
    }

    /// Continues an earlier probation at another address. `credit` is the number of octets that may
    /// be sent there.
    pub(super) fn continue_at(&mut self, former: Vec<Locator>, credit: usize) {
        self.former = former;
        self.credit = credit;
    }

    pub(super) fn credit(&self) -> usize {
        self.credit
    }

    pub(super) fn close(self, ctx: &mut Context) {
        ctx.timers.release(self.timer);
    }

    pub(super) fn set_index(&self, participant: u32, ctx: &mut Context) {
        ctx.timers.set_kind(self.timer, TimerKind::Challenge { participant });
    }

    /// Credits octets received from the participant.
    fn receive(&mut self, octets: usize) {
        self.credit = self.credit.saturating_add(octets.saturating_mul(AMPLIFICATION_MAX));
    }

    /// Repeats the announcement to a participant that still announces itself, but has not answered:
    /// the first one may be lost.
    pub(super) fn announce_again(&mut self, now: Instant) {
        let is_overdue = self.first_challenge.is_some_and(|first| now.since(first) >= ANNOUNCEMENT_TIMEOUT);
        self.announcement_due |= is_overdue && self.answered == [false; 2];
    }

    /// Reports whether an announcement of this length may be sent, and charges it. A challenge must
    /// still fit afterwards.
    pub(super) fn spend_on_announcement(&mut self, octets: usize, ctx: &mut Context) -> bool {
        if self.credit < octets + CHALLENGE_LEN + 2 * HEADERS_LEN {
            ctx.counters.withheld_datagrams += 1;
            return false;
        }
        self.spend(octets, ctx)
    }

    /// Reports whether a message of this length may be sent, and charges it.
    pub(crate) fn spend(&mut self, octets: usize, ctx: &mut Context) -> bool {
        let remaining = self.credit.checked_sub(octets + HEADERS_LEN);
        self.credit = remaining.unwrap_or(self.credit);
        ctx.counters.withheld_datagrams += u64::from(remaining.is_none());
        remaining.is_some()
    }

    /// Records a challenge, and schedules the next unsolicited one.
    fn challenged(&mut self, now: Instant, ctx: &mut Context) {
        self.last_challenge = Some(now);
        let first = *self.first_challenge.get_or_insert(now);
        self.challenges = self.challenges.saturating_add(1);
        let delay = CHALLENGE_PERIOD * 2_u32.pow(self.challenges.min(UNSOLICITED_CHALLENGES) - 1);
        if self.challenges < UNSOLICITED_CHALLENGES {
            ctx.timers.arm(self.timer, now.after(delay));
        } else if !self.is_reported {
            // A late challenge is also given time for its answer.
            ctx.timers.arm_by(self.timer, first.after(ANSWER_TIMEOUT).max(now.after(delay)));
        }
    }
}

/// Key of the challenges, and the participants validated before.
#[derive(Debug)]
pub(crate) struct Validation {
    secret: [u64; 2],
    known: VecDeque<(GuidPrefix, Host)>,
}

impl Validation {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { secret, known: VecDeque::new() }
    }

    /// Returns the numbers that a participant at an address has to acknowledge to the two SEDP
    /// writers.
    fn challenge(&self, prefix: GuidPrefix, at: &Locator) -> [SequenceNumber; 2] {
        let mut words = [0; 5];
        let bytes = prefix.0.iter().chain(&at.address);
        let bytes = bytes.chain(&[0; 4]).copied().chain(at.kind.to_le_bytes()).chain(at.port.to_le_bytes());
        for (position, byte) in bytes.enumerate() {
            words[position / 8] |= u64::from(byte) << (8 * (position % 8));
        }
        let hash = sip_hash(self.secret, &words);
        [hash, hash >> 32].map(|half| SequenceNumber(FIRST_CHALLENGE + (half % FIRST_CHALLENGE as u64) as i64))
    }

    /// Stores a lost participant with a validated address.
    pub(super) fn add_known(&mut self, prefix: GuidPrefix, at: &Locator) {
        let Some(host) = Host::of(at) else { return };
        self.known.retain(|(known, _)| *known != prefix);
        if self.known.len() == KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back((prefix, host));
    }

    /// Reports whether a participant has validated this address before.
    pub(super) fn is_known(&self, prefix: GuidPrefix, at: &Locator) -> bool {
        Host::of(at).is_some_and(|host| self.known.contains(&(prefix, host)))
    }
}

impl Remote {
    /// Returns the addresses of challenges so far, the latest first.
    pub(super) fn challenged_at(&self) -> Vec<Locator> {
        let moving = self.moving.as_deref();
        let of_move = moving.map(|moving| moving.path.locator);
        let probations = moving.map(|moving| &moving.probation).into_iter().chain(&self.probation);
        let former = probations.flat_map(|probation| &probation.former).copied();
        of_move.into_iter().chain([self.metatraffic.locator]).chain(former).take(FORMER_MAX).collect()
    }

    /// Reports whether the participant can answer a challenge.
    ///
    /// INTEROP(CycloneDDS 0.10, Fast DDS 2.9): answer none before they are authenticated.
    pub(crate) fn answers_challenges(&self) -> bool {
        !self.security.has_to_authenticate() || self.data.vendor_id == VendorId::TAKT
    }

    /// Reports whether a message came from the host of the participant's address, as far as its
    /// source tells.
    pub(super) fn is_at(&self, source: &Locator) -> bool {
        Host::of(source).is_none_or(|host| Host::of(&self.metatraffic.locator) == Some(host))
    }

    /// Credits octets received from the participant's address. Returns whether they were charged to
    /// its account. Octets from another address do not count, because an announcement may be forged
    /// that directs the participant's traffic elsewhere.
    pub(super) fn receive_octets(&mut self, source: &Locator, octets: usize) -> bool {
        if self.probation.is_none() || !self.is_at(source) {
            return false;
        }
        self.probation.as_mut().map(|probation| probation.receive(octets)).is_some()
    }
}

impl Discovery {
    /// Credits the octets of a participant's announcement. Returns whether they were charged to its
    /// account.
    pub(super) fn receive_announcement(&mut self, index: u32, octets: usize) -> bool {
        let trial = self.remotes.get_mut(index).and_then(Remote::trial);
        trial.map(|(probation, _)| probation.receive(octets)).is_some()
    }

    /// Sends a farewell to a participant, so that it rediscovers this one.
    pub(super) fn queue_farewell(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        if let Some(remote) = self.remotes.get_mut(index) {
            remote.pending_messages.farewell = true;
            self.queue_validation(ctx, index);
            self.announcer.restart(now, ctx);
        }
    }

    /// Schedules another challenge of a participant on probation after one of its messages, because
    /// it may know this participant by now. A participant that has answered already waits for its
    /// handshake.
    pub(crate) fn challenge_again(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        if !remote.answers_challenges() {
            return;
        }
        let Some((probation, _)) = remote.trial() else { return };
        if probation.answered == [true; 2] {
            return;
        }
        let period = CHALLENGE_PERIOD_MIN * 2_u32.pow(probation.challenges.min(CHALLENGE_DOUBLINGS));
        let earliest = probation.last_challenge.map_or(now, |last| last.after(period));
        if earliest > now {
            return ctx.timers.arm_by(probation.timer, earliest);
        }
        probation.challenge_due = true;
        self.queue_validation(ctx, index);
    }

    /// Handles a message that names this participant: the sender knows it.
    pub(crate) fn handle_addressed_message(&mut self, now: Instant, ctx: &mut Context, prefix: GuidPrefix) {
        if let Some(&index) = self.remote_by_prefix.get(&prefix) {
            self.challenge_again(now, ctx, index);
        }
    }

    /// Handles the challenge timer.
    pub(crate) fn handle_challenge_timeout(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let guid = remote.data.guid;
        if let Some((probation, _)) = remote.trial() {
            probation.challenge_due = true;
            let is_late = probation.first_challenge.is_some_and(|first| now.since(first) >= ANSWER_TIMEOUT);
            let is_silent = is_late && probation.challenges >= UNSOLICITED_CHALLENGES;
            if is_silent && !core::mem::replace(&mut probation.is_reported, true) {
                ctx.notify(Event::ParticipantSilent(guid));
            }
            self.queue_validation(ctx, index);
        }
    }

    /// Reports whether a participant with a validated address is at the host of `locator`.
    #[must_use]
    pub(crate) fn knows_participant_at(&self, locator: &Locator) -> bool {
        let host = Host::of(locator);
        let here = self.reachability.is_on_this_host(locator);
        self.remotes.iter().any(|(_, remote)| {
            let at = &remote.metatraffic.locator;
            remote.probation.is_none() && (Host::of(at) == host || (here && self.reachability.is_on_this_host(at)))
        })
    }

    /// Returns the participants that announce themselves and have not answered for [two
    /// seconds](ANSWER_TIMEOUT), so that none of their endpoints is known.
    pub(crate) fn silent_participants(&self) -> impl Iterator<Item = SilentParticipant> {
        self.remotes.iter().filter_map(|(_, remote)| {
            let probation = remote.probation.as_ref().filter(|probation| probation.is_reported)?;
            let (guid, label, challenges) = (remote.data.guid, remote.data.label(), probation.challenges);
            Some(SilentParticipant { guid, label, locator: remote.metatraffic.locator, challenges })
        })
    }

    pub(super) fn queue_validation(&mut self, ctx: &mut Context, index: u32) {
        if let Some(remote) = self.remotes.get_mut(index)
            && !core::mem::replace(&mut remote.pending_messages.queued, true)
        {
            ctx.jobs.push(Priority::NORMAL, Job::DirectedAnnouncement { participant: index });
        }
    }

    /// Handles a heartbeat that addresses this participant alone and offers no samples. It may be a
    /// challenge, which is answered even if its writer is unknown.
    pub(crate) fn handle_challenge(&mut self, ctx: &mut Context, prefix: GuidPrefix, heartbeat: &Heartbeat) {
        let Some(position) = CHALLENGERS.iter().position(|(_, writer, _)| heartbeat.writer == *writer) else { return };
        let may_be = heartbeat.last_sn < heartbeat.first_sn && is_challenge(heartbeat.first_sn);
        let Some(&index) = self.remote_by_prefix.get(&prefix).filter(|_| may_be) else { return };
        if let Some(remote) = self.remotes.get_mut(index) {
            remote.pending_messages.answers[position] = Some(heartbeat.first_sn);
            self.queue_validation(ctx, index);
        }
    }

    /// Handles an acknowledgment that may answer a challenge. A participant that has answered both
    /// is validated.
    pub(crate) fn handle_challenge_answer(
        &mut self,
        call: &mut Call<'_>,
        from: &Received,
        prefix: GuidPrefix,
        acknack: &AckNack,
    ) {
        let named = (acknack.writer, acknack.reader);
        let Some(position) = CHALLENGERS.iter().position(|(_, writer, reader)| (*writer, *reader) == named) else {
            return;
        };
        let number = acknack.reader_sn_state.base();
        let Some(&index) = self.remote_by_prefix.get(&prefix).filter(|_| is_challenge(number)) else { return };
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let Some((probation, Path { locator: at, .. })) = remote.trial() else { return };
        let is_answer_from = |at: &Locator| number == self.validation.challenge(prefix, at)[position];
        if !is_answer_from(&at) {
            if probation.former.iter().any(is_answer_from) {
                return;
            }
            probation.wrong_answers = probation.wrong_answers.saturating_add(1);
            call.ctx.counters.wrong_answers += 1;
            return;
        }
        probation.answered[position] = true;
        if probation.answered != [true; 2] || probation.wrong_answers >= WRONG_ANSWERS_MAX {
            return;
        }
        remote.source_addresses.add_validated(&from.source);
        let is_new = remote.probation.is_some();
        if is_new && remote.security.has_to_authenticate() {
            // The address is valid, so handshakes need not wait for further octets from the
            // participant.
            if let Some(probation) = &mut remote.probation {
                probation.credit = usize::MAX;
            }
            return self.send_delayed_messages(call, index);
        }
        match self.has_room_at(call.ctx, &at) {
            true if is_new => self.end_probation(call, index),
            true => self.end_move(call, index),
            false => {
                call.ctx.counters.refused_remote_entities += 1;
                // Other participants may leave the address: it is challenged again then.
                if let Some((probation, _)) = self.remotes.get_mut(index).and_then(Remote::trial) {
                    probation.await_answers();
                }
            }
        }
    }

    /// Reports whether one more participant at an address may be validated, so that one host cannot
    /// take all slots.
    fn has_room_at(&self, ctx: &Context, at: &Locator) -> bool {
        let there = self
            .remotes
            .iter()
            .filter(|(_, remote)| remote.probation.is_none() && Host::of(&remote.metatraffic.locator) == Host::of(at));
        self.reachability.is_on_this_host(at) || there.count() < ctx.limits.max_participants_per_address
    }

    /// Ends the probation: discovery continues.
    pub(crate) fn end_probation(&mut self, call: &mut Call<'_>, index: u32) {
        if let Some(probation) = self.remotes.get_mut(index).and_then(|remote| remote.probation.take()) {
            probation.close(call.ctx);
            call.ctx.counters.participants_validated += 1;
        }
        self.update_shared_memory_path(call.ctx, index);
        self.update_multicast_groups(call.ctx, call.endpoints, index);
        self.match_builtin_endpoints(call, index);
        self.present_static_endpoints(call, index);
        if let Some(prefix) = self.remotes.get(index).map(|remote| remote.prefix) {
            self.send_type_requests_to(call, prefix);
            self.schedule_introduction(call.now, call.ctx, prefix);
        }
    }

    /// Builds the next datagram to a participant outside its endpoints' protocol: the announcement,
    /// or a challenge and the answers to its own. Queues itself again if there is more.
    pub(crate) fn transmit_validation(&mut self, call: &mut Call<'_>, index: u32, frame: &mut [u8]) -> Option<usize> {
        let remote = self.remotes.get_mut(index)?;
        if !core::mem::take(&mut remote.pending_messages.queued) {
            return None;
        }
        if core::mem::take(&mut remote.pending_messages.farewell) {
            let len = self.announcer.build_farewell(&call.ctx.header, remote.prefix, frame).ok()?;
            let may_send = remote.trial().is_none_or(|(probation, _)| probation.spend(len, call.ctx));
            call.ctx.destinations.extend(may_send.then_some(remote.metatraffic.locator));
            self.queue_validation(call.ctx, index);
            return Some(len);
        }
        if let Some(probation) = &mut remote.probation
            && core::mem::take(&mut probation.announcement_due)
        {
            let len = self.announcer.build(&call.ctx.header, frame).ok()?;
            let may_send = probation.spend_on_announcement(len, call.ctx);
            call.ctx.destinations.extend(may_send.then_some(remote.metatraffic.locator));
            if !may_send {
                self.announcer.announce_soon(call.now, call.ctx);
            }
            self.queue_validation(call.ctx, index);
            return Some(len);
        }
        self.transmit_challenge(call, index, frame)
    }

    fn transmit_challenge(&mut self, call: &mut Call<'_>, index: u32, frame: &mut [u8]) -> Option<usize> {
        let remote = self.remotes.get_mut(index)?;
        let (prefix, here) = (remote.prefix, remote.metatraffic);
        let answers = core::mem::take(&mut remote.pending_messages.answers);
        let there = remote.moving.as_ref().map(|moving| moving.path);
        // The challenge must reach only the new address, but the answers have to reach the old one
        // too.
        let only_answers = there.is_some() && answers.iter().any(Option::is_some);
        let path = there.unwrap_or(here);
        let len = frame.len().min(path.max_message).min(here.max_message);
        let mut builder = MessageBuilder::new(&mut frame[..len], &call.ctx.header).ok()?;
        builder.info_destination(prefix).ok()?;
        let empty = builder.len();
        for ((_, writer, reader), number) in CHALLENGERS.into_iter().zip(answers) {
            acknowledge(&mut builder, writer, reader, number).ok()?;
        }
        let may_be_due = |probation: &mut Probation| !only_answers && core::mem::take(&mut probation.challenge_due);
        let due = remote.trial().is_some_and(|(probation, _)| may_be_due(probation));
        if due {
            let numbers = self.validation.challenge(prefix, &path.locator);
            for ((writer, _, reader), number) in CHALLENGERS.into_iter().zip(numbers) {
                let heartbeat = call.endpoints.writers.get_mut(writer)?.challenge(reader, number);
                builder.heartbeat(&heartbeat).ok()?;
            }
        }
        let len = builder.len();
        if len == empty {
            return None;
        }
        let may_send = remote.trial().is_none_or(|(probation, _)| probation.spend(len, call.ctx));
        if due
            && may_send
            && let Some((probation, _)) = remote.trial()
        {
            probation.challenged(call.now, call.ctx);
        }
        call.ctx.destinations.extend(may_send.then_some(path.locator));
        if only_answers {
            call.ctx.destinations.push(here.locator);
            self.queue_validation(call.ctx, index);
        }
        Some(len)
    }
}

/// Builds the answer to a challenge: no sample below its number is missing.
fn acknowledge(
    builder: &mut MessageBuilder<'_>,
    writer: EntityId,
    reader: EntityId,
    number: Option<SequenceNumber>,
) -> Result<(), Full> {
    // The reader itself counts from 1.
    let (count, is_final) = (0, true);
    number.map_or(Ok(()), |number| {
        let reader_sn_state = SequenceNumberSet::new(number);
        builder.acknack(&AckNack { reader, writer, reader_sn_state, count, is_final })
    })
}

/// Computes SipHash-2-4 (Aumasson and Bernstein, 2012) of a message of whole words.
fn sip_hash(key: [u64; 2], words: &[u64]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[1]);
        v[0] = v[0].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].rotate_left(32);
    };
    let len = (words.len() as u64 * 8) << 56;
    for word in words.iter().chain(&[len]) {
        v[3] ^= word;
        (0..2).for_each(|_| round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn sip_hash_matches_the_reference_vector() {
        // Vector of the reference implementation for the octets 0 to 7 under the key of the octets
        // 0 to 15.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(sip_hash(key, &[0x0706_0504_0302_0100]), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn challenge_differs_between_participants_and_addresses() {
        let locator = |host: u8, port| Locator::udp_v4(Ipv4Addr::new(10, 0, 0, host), port);
        let of = |secret, prefix: u8, at| Validation::new([secret, 0]).challenge(GuidPrefix([prefix; 12]), &at);
        let challenge = of(1, 1, locator(1, 7410));
        assert_eq!(challenge, of(1, 1, locator(1, 7410)));
        for other in [of(2, 1, locator(1, 7410)), of(1, 2, locator(1, 7410)), of(1, 1, locator(2, 7410))] {
            assert_ne!(other, challenge);
        }
        assert_ne!(of(1, 1, locator(1, 7411)), challenge);
        assert!(challenge.iter().all(|number| is_challenge(*number) && *number < BEFORE_FIRST_ENDPOINT));
        assert_ne!(challenge[0], challenge[1]);
    }

    #[test]
    fn lost_participants_are_stored_until_newer_ones_replace_them() {
        let mut validation = Validation::new([0; 2]);
        let prefix = |n: usize| GuidPrefix([n as u8, (n >> 8) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let at = |host| Locator::udp_v4(Ipv4Addr::new(10, 0, 0, host), 7410);
        (0..=KNOWN_MAX).for_each(|n| validation.add_known(prefix(n), &at(1)));
        assert_eq!(validation.known.len(), KNOWN_MAX);
        assert!(!validation.is_known(prefix(0), &at(1)) && validation.is_known(prefix(1), &at(1)));
        assert!(!validation.is_known(prefix(1), &at(2)));
        validation.add_known(prefix(1), &at(2));
        assert!(validation.is_known(prefix(1), &at(2)) && !validation.is_known(prefix(1), &at(1)));
    }
}
