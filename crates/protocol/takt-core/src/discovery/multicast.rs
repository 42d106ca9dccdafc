//! Probing of multicast groups: which participants receive user data sent to a group.
//!
//! A participant listens to a [group](crate::multicast_group) on an interface if it announces that
//! group and an address on the network of the interface. A switch, an access point or a firewall
//! may nevertheless drop the datagrams. Only probes are sent to a group until its listeners have
//! answered.
//!
//! A probe is a `HEARTBEAT` (RTPS 2.5 §8.3.8.6) of the writer of participant messages, which every
//! participant reads. The probe is sent to the group only, and offers no samples. Its first
//! sequence number occurs in no other submessage. A reader of any vendor acknowledges up to that
//! number, and so proves that it receives the group. The writer continues above the last probe,
//! so no number is ambiguous.
//!
//! Probes are sent only while a writer would use the group, in rounds of up to [`PROBES_MAX`].
//! Rounds are [`PROBE_PERIOD`] apart, and earlier if a reader misses a sample sent there. All
//! listeners answer each probe, so without traffic there is only one round every
//! [`DORMANT_PROBE_PERIOD`]; the next sample starts another. A participant that answers no probe of
//! a round is assumed not to receive multicast: it gets all data by unicast, and is probed once in
//! each later round. Until every listener has answered or is assumed unreachable, all data are sent
//! by unicast, so that participants on the group do not receive samples twice.
//!
//! Not supported: IPv6 groups, and groups that endpoints announce for themselves.

use super::{PARTICIPANT_MESSAGES, Remote};
use crate::context::{Context, Job};
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::multicast_group::{
    MULTICAST_GROUPS_MAX, MulticastGroup, MulticastReachability, MulticastSet, PROBES_MAX, ProbePhase,
};
use crate::path::Path;
use crate::time::Instant;
use crate::timer::TimerKind;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use takt_schedule::Priority;
use takt_wire::builder::{MessageBuilder, SUBMESSAGE_HEADER_LEN};
use takt_wire::discovery::SubscriptionData;
use takt_wire::message::AckNack;
use takt_wire::{EntityId, GuidPrefix, Locator, SequenceNumber, SequenceNumberSet};

/// Wait for answers to the first probe of a round; doubles with each probe.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(50);

/// Time between two rounds.
const PROBE_PERIOD: Duration = Duration::from_secs(2);

/// Time between two rounds without traffic. Switches forget group memberships after minutes
/// (RFC 3376 §8.4: 260 s).
const DORMANT_PROBE_PERIOD: Duration = Duration::from_secs(64);

/// Multicast groups of a remote participant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListenedGroups {
    /// Groups that the participant announces.
    announced: MulticastSet,
    validated: MulticastSet,
    unreachable: MulticastSet,
    /// Groups of which it answered a probe in the current round.
    answered: MulticastSet,
}

impl Discovery {
    /// Registers the groups: each IPv4 group of this participant on each interface.
    pub(crate) fn open_multicast_groups(&mut self, ctx: &mut Context) {
        for group in ctx.multicast_groups.list.drain(..) {
            ctx.timers.release(group.timer);
        }
        if ctx.multicast_groups.readers_min == 0 {
            return;
        }
        let groups =
            self.locators.default_multicast.iter().filter(|address_group| address_group.kind == Locator::KIND_UDP_V4);
        for address_group in groups {
            for (address, max_message) in self.reachability.interface_addresses_v4() {
                let group = ctx.multicast_groups.list.len();
                if group == MULTICAST_GROUPS_MAX {
                    return;
                }
                let timer = ctx.timers.register(TimerKind::MulticastProbe { group });
                ctx.multicast_groups.list.push(MulticastGroup {
                    locator: address_group.by_interface(address),
                    max_message,
                    listeners: 0,
                    unreachable: 0,
                    timer,
                    phase: ProbePhase::Idle,
                    probes: [SequenceNumber::ZERO; PROBES_MAX],
                    probes_sent: 0,
                    in_use: false,
                });
            }
        }
    }

    /// Resets all groups after a change of the interfaces.
    pub(super) fn reset_multicast_groups(&mut self, ctx: &mut Context, endpoints: &mut Endpoints) {
        if ctx.multicast_groups.list.is_empty() && self.locators.default_multicast.is_empty() {
            return;
        }
        self.open_multicast_groups(ctx);
        let known: Vec<u32> = self.remotes.iter().map(|(index, _)| index).collect();
        for index in known {
            ctx.work.unit();
            let Some(remote) = self.remotes.get_mut(index) else { continue };
            remote.listened_groups = ListenedGroups::default();
            let prefix = remote.prefix;
            self.update_multicast_groups(ctx, endpoints, index);
            self.redirect_endpoints(ctx, endpoints, prefix);
        }
    }

    /// Updates the groups that a participant listens to, after it was validated, moved or changed
    /// its announcement.
    pub(super) fn update_multicast_groups(&mut self, ctx: &mut Context, endpoints: &mut Endpoints, index: u32) {
        let Some(remote) = self.remotes.get(index) else { return };
        let announced = if remote.is_on_probation() { 0 } else { self.announced_multicast_groups(ctx, remote) };
        let (prefix, before) = (remote.prefix, remote.listened_groups);
        if announced == before.announced {
            return;
        }
        ctx.count_listener(&before, announced);
        if let Some(remote) = self.remotes.get_mut(index) {
            remote.listened_groups = ListenedGroups { announced, ..ListenedGroups::default() };
        }
        self.redirect_endpoints(ctx, endpoints, prefix);
    }

    fn announced_multicast_groups(&self, ctx: &Context, remote: &Remote) -> MulticastSet {
        let mut announced = 0;
        for (at, group) in ctx.multicast_groups.list.iter().enumerate() {
            let is_group = |locator: &Locator| {
                (locator.ip(), locator.port) == (group.locator.ip(), group.locator.port) && !locator.is_tcp()
            };
            let Some(exit) = group.locator.interface().map(IpAddr::V4) else { continue };
            let mut addresses = remote.data.default_unicast.iter().chain(&remote.data.metatraffic_unicast);
            let is_there =
                |locator: &Locator| self.reachability.is_on_interface(exit, locator, &remote.metatraffic.locator);
            if remote.data.default_multicast.iter().any(is_group) && addresses.any(is_there) {
                announced |= 1 << at;
            }
        }
        announced
    }

    /// Returns the groups of a reader that is reached by `path`. Data use the groups of its
    /// participant unless the reader has locators of its own. Paths other than UDP use no group,
    /// because data would arrive twice.
    pub(super) fn multicast_reachability_of(
        &self,
        prefix: GuidPrefix,
        has_own_locators: bool,
        path: &Path,
    ) -> MulticastReachability {
        // Local readers use no group: the participant ignores its own multicast datagrams.
        let remote = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        let Some(Remote { listened_groups: groups, .. }) = remote else { return MulticastReachability::default() };
        let is_allowed = !has_own_locators && path.locator.kind == Locator::KIND_UDP_V4;
        MulticastReachability {
            listens: groups.announced & !groups.unreachable,
            allowed: if is_allowed { groups.announced } else { 0 },
            validated: groups.validated,
        }
    }

    /// Builds the next probe of a group. Visits each remote participant for the first probe of
    /// a round.
    pub(crate) fn transmit_multicast_probe(
        &mut self,
        call: &mut Call<'_>,
        at: usize,
        frame: &mut [u8],
    ) -> Option<usize> {
        let group = call.ctx.multicast_groups.list.get_mut(at).filter(|group| group.phase == ProbePhase::Queued)?;
        if group.probes_sent == 0 {
            call.ctx.work.steps(self.remotes.len());
            self.remotes.iter_mut().for_each(|(_, remote)| remote.listened_groups.answered &= !(1 << at));
            group.in_use = false;
        }
        let (number, builder) = call.endpoints.build_probe(call.ctx, frame)?;
        let len = builder.len();
        let group = call.ctx.multicast_groups.list.get_mut(at)?;
        group.probes[group.probes_sent] = number;
        call.ctx.timers.arm(group.timer, call.now.after(ANSWER_TIMEOUT * (1 << group.probes_sent)));
        group.probes_sent += 1;
        group.phase = ProbePhase::Probing;
        call.ctx.counters.multicast_probes_sent += 1;
        call.ctx.destinations.push(group.locator);
        Some(len)
    }

    /// Handles an acknowledgment of participant messages that may answer a probe. Returns it
    /// limited to the written samples, if it extends beyond them.
    pub(crate) fn handle_probe_answer(
        &mut self,
        ctx: &mut Context,
        endpoints: &mut Endpoints,
        prefix: GuidPrefix,
        acknack: &AckNack,
    ) -> Option<AckNack> {
        let number = acknack.reader_sn_state.base();
        let is_probe = |group: &MulticastGroup| group.probes[..group.probes_sent].contains(&number);
        if let Some(at) = ctx.multicast_groups.list.iter().position(is_probe)
            && let Some(remote) = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get_mut(index))
        {
            remote.listened_groups.answered |= 1 << at;
        }
        ctx.work.steps(endpoints.writers.len());
        for (_, writer) in endpoints.writers.iter_mut() {
            writer.handle_probe_answer(ctx, prefix, number);
        }
        let end = endpoints.writers.get(PARTICIPANT_MESSAGES)?.history.last_sn().next();
        let reader_sn_state = SequenceNumberSet::new(end);
        (number > end).then_some(AckNack { reader_sn_state, ..*acknack })
    }

    /// Handles the timer of a group: ends the wait for answers to a probe, or starts another
    /// round. Visits each remote participant, writer and match.
    pub(crate) fn handle_multicast_probe_timeout(&mut self, call: &mut Call<'_>, at: usize) {
        let Some(group) = call.ctx.multicast_groups.list.get(at) else { return };
        let (phase, probes_sent, in_use) = (group.phase, group.probes_sent, group.in_use);
        call.ctx.work.steps(2 * self.remotes.len() + call.endpoints.writers.len());
        let is_wanted =
            call.endpoints.writers.iter().any(|(_, writer)| writer.wanted_multicast_groups() & (1 << at) != 0);
        match phase {
            _ if !is_wanted => self.reset_probes(call.ctx, call.endpoints, at),
            ProbePhase::Idle | ProbePhase::Queued => {}
            ProbePhase::Probed if !in_use && !self.has_unprobed_listeners(at) => {
                call.ctx.enter_dormant_phase(call.now, at)
            }
            ProbePhase::Probed | ProbePhase::Dormant => call.ctx.queue_multicast_probe(at, 0),
            ProbePhase::Probing => self.evaluate_probe_answers(call, at, probes_sent),
        }
    }

    fn evaluate_probe_answers(&mut self, call: &mut Call<'_>, at: usize, probes_sent: usize) {
        let bit: MulticastSet = 1 << at;
        let (mut waits, mut has_changed, mut unreachable) = (false, false, 0);
        for (_, Remote { listened_groups: groups, .. }) in
            self.remotes.iter_mut().filter(|(_, remote)| remote.listened_groups.announced & bit != 0)
        {
            let before = (groups.validated & bit, groups.unreachable & bit);
            if groups.answered & bit != 0 {
                (groups.validated, groups.unreachable) = (groups.validated | bit, groups.unreachable & !bit);
            } else if probes_sent < PROBES_MAX && groups.unreachable & bit == 0 {
                waits = true;
            } else {
                call.ctx.counters.participants_unreachable_by_multicast += u64::from(groups.unreachable & bit == 0);
                (groups.validated, groups.unreachable) = (groups.validated & !bit, groups.unreachable | bit);
            }
            unreachable += usize::from(groups.unreachable & bit != 0);
            has_changed |= before != (groups.validated & bit, groups.unreachable & bit);
        }
        if let Some(group) = call.ctx.multicast_groups.list.get_mut(at) {
            group.unreachable = unreachable;
        }
        match waits {
            true => call.ctx.queue_multicast_probe(at, probes_sent),
            false => call.ctx.end_probe_round(call.now, at),
        }
        if has_changed {
            self.notify_writers(call.ctx, call.endpoints);
        }
    }

    /// Reports whether a listener of a group has neither answered nor been found unreachable.
    /// Visits each remote participant.
    fn has_unprobed_listeners(&self, at: usize) -> bool {
        let is_unprobed =
            |groups: &ListenedGroups| groups.announced & !groups.validated & !groups.unreachable & 1 << at != 0;
        self.remotes.iter().any(|(_, remote)| is_unprobed(&remote.listened_groups))
    }

    /// Resets the probe results of a group that no writer wants.
    fn reset_probes(&mut self, ctx: &mut Context, endpoints: &mut Endpoints, at: usize) {
        if let Some(group) = ctx.multicast_groups.list.get_mut(at) {
            (group.phase, group.probes_sent, group.unreachable) = (ProbePhase::Idle, 0, 0);
        }
        for (_, Remote { listened_groups: groups, .. }) in self.remotes.iter_mut() {
            (groups.validated, groups.unreachable) = (groups.validated & !(1 << at), groups.unreachable & !(1 << at));
        }
        self.notify_writers(ctx, endpoints);
    }

    /// Notifies the writers that the reachable groups have changed.
    fn notify_writers(&mut self, ctx: &mut Context, endpoints: &mut Endpoints) {
        let Self { remotes, remote_by_prefix, .. } = self;
        let Endpoints { writers, .. } = endpoints;
        let groups_of = |prefix: GuidPrefix| {
            let remote = remote_by_prefix.get(&prefix).and_then(|&index| remotes.get(index));
            remote.map(|remote| {
                (
                    remote.listened_groups.announced & !remote.listened_groups.unreachable,
                    remote.listened_groups.validated,
                )
            })
        };
        for (_, writer) in writers.iter_mut() {
            writer.update_multicast_reachability(ctx, &groups_of);
        }
    }
}

impl Endpoints {
    /// Builds a probe: its sequence number, and the message.
    fn build_probe<'a>(
        &mut self,
        ctx: &mut Context,
        frame: &'a mut [u8],
    ) -> Option<(SequenceNumber, MessageBuilder<'a>)> {
        let writer = self.writers.get_mut(PARTICIPANT_MESSAGES)?;
        let last = ctx.multicast_groups.last_probe.max(writer.history.last_sn());
        // The acknowledgment of all written samples has the number in between.
        let number = last.next().next();
        let heartbeat = writer.challenge(EntityId::UNKNOWN, number);
        let mut builder = MessageBuilder::new(frame, &ctx.header).ok()?;
        builder.heartbeat(&heartbeat).ok()?;
        ctx.multicast_groups.last_probe = number;
        Some((number, builder))
    }

    /// Builds the next probe of a writer to best-effort readers, sent by the path of its samples.
    pub(crate) fn transmit_writer_probe(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        index: u32,
        frame: &mut [u8],
    ) -> Option<usize> {
        self.writers.get_mut(index)?.probes.take_queued().then_some(())?;
        let (number, mut builder) = self.build_probe(ctx, frame)?;
        let writer = self.writers.get_mut(index)?;
        let len = writer.address_probe(now, number, ctx);
        if let Some(more) = len.checked_sub(builder.len() + SUBMESSAGE_HEADER_LEN) {
            // Rounded down, because the length of a submessage is a multiple of four octets.
            builder.pad((more & !3) as u16).ok()?;
        }
        Some(builder.len())
    }
}

impl Context {
    /// Removes a departed participant from its groups.
    pub(super) fn leave_multicast_groups(&mut self, remote: &Remote) {
        self.count_listener(&remote.listened_groups, 0);
    }

    fn count_listener(&mut self, before: &ListenedGroups, announced: MulticastSet) {
        for (at, group) in self.multicast_groups.list.iter_mut().enumerate() {
            let is_in = |set: MulticastSet| usize::from(set >> at & 1);
            group.listeners = group.listeners + is_in(announced) - is_in(before.announced);
            group.unreachable -= is_in(before.unreachable).min(group.unreachable);
        }
    }

    fn queue_multicast_probe(&mut self, at: usize, probes_sent: usize) {
        if let Some(group) = self.multicast_groups.list.get_mut(at) {
            (group.phase, group.probes_sent) = (ProbePhase::Queued, probes_sent);
            self.jobs.push(Priority::NORMAL, Job::MulticastProbe { group: at });
        }
    }

    fn end_probe_round(&mut self, now: Instant, at: usize) {
        if let Some(group) = self.multicast_groups.list.get_mut(at) {
            group.phase = ProbePhase::Probed;
            self.timers.arm(group.timer, now.after(PROBE_PERIOD));
        }
    }

    fn enter_dormant_phase(&mut self, now: Instant, at: usize) {
        if let Some(group) = self.multicast_groups.list.get_mut(at) {
            group.phase = ProbePhase::Dormant;
            self.timers.arm(group.timer, now.after(DORMANT_PROBE_PERIOD - PROBE_PERIOD));
        }
    }
}

/// Reports whether a reader has other data locators than its participant.
pub(super) fn has_own_locators(subscription: &SubscriptionData) -> bool {
    !subscription.unicast.is_empty() || !subscription.multicast.is_empty()
}
