//! State that all state machines of the participant share: timers, pending jobs, events, counters.

use crate::blocked_flows::BlockedFlows;
use crate::cache::PayloadRef;
use crate::config::Limits;
use crate::counters::Counters;
use crate::event::Event;
use crate::lifespan::Expiry;
use crate::multicast_group::{MulticastGroups, MulticastSet, ProbePhase};
use crate::security::Security;
use crate::standstill::Standstills;
use crate::time::{Clocks, Instant};
use crate::timer::{TimerId, TimerKind, TimerQueue};
use crate::work::Work;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;
use core::time::Duration;
use takt_schedule::{Priority, PriorityQueue};
use takt_wire::message::Header;
use takt_wire::{EntityId, Locator, SharedPayload, Timestamp};
#[cfg(test)]
use takt_wire::{GuidPrefix, ProtocolVersion, VendorId};

/// Pending datagram, queued with the priority of its endpoint; discovery has the normal priority.
/// Each owner queues at most one job of a kind, and records that it did. A job does nothing if its
/// owner is gone, or if its slot holds another owner with nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// New samples of a writer to all its readers.
    Data { writer: u32 },
    /// Repairs, gaps and directed heartbeats to one reader.
    Repair { writer: u32, proxy: u32 },
    /// A periodic heartbeat to all reliable readers that have not acknowledged everything.
    Heartbeat { writer: u32 },
    /// Acknowledgment to one writer.
    AckNack { reader: u32, proxy: u32 },
    /// The participant's announcement, to the next destinations of its list.
    Announce,
    /// Announcement of a remote participant, sent by a discovery server to the participants it
    /// concerns.
    Introduction { participant: u32 },
    /// Announcement of this participant to a new one, with the challenge that validates its
    /// address.
    DirectedAnnouncement { participant: u32 },
    /// Probe of a writer that asks best-effort readers whether they receive its samples.
    WriterProbe { writer: u32 },
    /// Probe of a multicast group that asks which participants receive it.
    MulticastProbe { group: usize },
}

/// Minimum time between probe rounds of a multicast group whose readers miss samples.
const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(200);

/// Part of a payload that is sent from a writer's history without a copy into the frame.
#[derive(Clone, Debug)]
pub(crate) struct PayloadTail {
    pub(crate) writer: u32,
    pub(crate) payload: PayloadRef,
    pub(crate) range: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct Context {
    /// Header of all messages of the participant.
    pub(crate) header: Header,
    pub(crate) timers: TimerQueue,
    pub(crate) jobs: PriorityQueue<Job>,
    pub(crate) blocked_flows: BlockedFlows,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    pub(crate) work: Work,
    pub(crate) limits: Limits,
    pub(crate) timing: Timing,
    pub(crate) standstills: Standstills,
    /// Wall clock less monotonic clock in nanoseconds, modulo 2^64.
    wall_offset_ns: u64,
    /// Last reading of the wall clock. It is cached because each sample of a datagram or a batch
    /// reads it.
    wall: Cell<(Instant, Timestamp)>,
    /// Number of endpoints and matches.
    owners: usize,
    /// Number of known remote participants.
    participants: u32,
    /// Changes of a group may have become presentable.
    pub(crate) groups_changed: bool,
    /// Timer for the next check of the groups.
    pub(crate) groups_timer: TimerId,
    /// Destinations of the datagram being built.
    pub(crate) destinations: Vec<Locator>,
    /// Payload that accompanies the datagram being built, and stays in its shared memory.
    pub(crate) loan: Option<SharedPayload>,
    /// Whether the caller sends payloads from where they are stored; see [`PayloadTail`].
    pub(crate) scatter_gather: bool,
    /// The datagram being built is a fragment of a large sample.
    pub(crate) is_fragment: bool,
    /// Payload part that follows the datagram being built.
    pub(crate) payload_tail: Option<PayloadTail>,
    /// Number of positions assigned in the order of arrival that the readers of a subscriber share.
    pub(crate) arrivals: u64,
    /// Multicast groups of user data.
    pub(crate) multicast_groups: MulticastGroups,
    /// Plugins of DDS Security, if the participant has them, and their timer.
    pub(crate) security: Option<Box<dyn Security>>,
    pub(crate) security_timer: Option<TimerId>,
}

/// Smallest deviation that counts as a step of the wall clock, in nanoseconds. Below it the clock
/// is disciplined, not set.
const WALL_STEP_NS: u64 = 1_000_000;

/// Number of remote participants up to which periods are not multiplied.
const UNSCALED_PARTICIPANTS_MAX: u32 = 8;
/// Largest multiplier of the periods of builtin endpoints.
const PERIOD_MULTIPLIER_MAX: u32 = 10;

const JOBS_PER_OWNER: usize = 2;
const EVENTS_PER_OWNER: usize = 10;

/// Periods of the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) heartbeat_first: Duration,
    pub(crate) heartbeat_period: Duration,
    pub(crate) nack_delay: Duration,
    pub(crate) nack_suppression: Duration,
}

impl Context {
    pub(crate) fn new(header: Header, limits: Limits, timing: Timing) -> Self {
        let mut timers = TimerQueue::new();
        let mut jobs = PriorityQueue::new();
        jobs.reserve(Priority::NORMAL, 64);
        Self {
            header,
            groups_timer: timers.register(TimerKind::Groups),
            timers,
            jobs,
            blocked_flows: BlockedFlows::default(),
            events: VecDeque::with_capacity(64),
            counters: Counters::default(),
            work: Work::default(),
            limits,
            timing,
            standstills: Standstills::default(),
            wall_offset_ns: 0,
            wall: Cell::new((Instant(0), Timestamp::from_nanos(0))),
            owners: 0,
            participants: 0,
            groups_changed: false,
            destinations: Vec::with_capacity(16),
            loan: None,
            scatter_gather: false,
            is_fragment: false,
            payload_tail: None,
            arrivals: 0,
            multicast_groups: MulticastGroups::default(),
            security: None,
            security_timer: None,
        }
    }

    /// Sets the offset of the wall clock. Returns whether the clock was stepped by [`WALL_STEP_NS`]
    /// or more.
    pub(crate) fn set_wall_clock(&mut self, now: Instant, wall: Timestamp) -> bool {
        let offset = (wall.to_nanos() as u64).wrapping_sub(now.0);
        let before = core::mem::replace(&mut self.wall_offset_ns, offset);
        self.wall.set((now, wall));
        (offset.wrapping_sub(before) as i64).unsigned_abs() >= WALL_STEP_NS
    }

    pub(crate) fn wall_clock(&self, now: Instant) -> Timestamp {
        let (at, wall) = self.wall.get();
        if at == now {
            return wall;
        }
        let wall = Timestamp::from_nanos(now.0.wrapping_add(self.wall_offset_ns) as i64);
        self.wall.set((now, wall));
        wall
    }

    /// Returns the last reading of both clocks.
    pub(crate) fn last_clocks(&self) -> Clocks {
        let (at, wall) = self.wall.get();
        Clocks { at, wall }
    }

    /// Returns `now` on both clocks.
    pub(crate) fn clocks(&self, now: Instant) -> Clocks {
        Clocks { at: now, wall: self.wall_clock(now) }
    }

    /// Converts an expiry to the monotonic clock, by the present offset of the wall clock.
    pub(crate) fn instant_of(&self, expiry: Expiry, now: Instant) -> Instant {
        now.after(Duration::from_nanos(expiry.nanos_from(self.wall_clock(now))))
    }

    /// Reserves queue space for the jobs and events that one more owner can have pending at once,
    /// so that queueing never allocates.
    pub(crate) fn add_owner(&mut self, priority: Priority) {
        self.owners += 1;
        self.make_room(priority);
        self.events.reserve((self.owners * EVENTS_PER_OWNER).saturating_sub(self.events.len()));
    }

    /// Reserves space for the jobs of all owners in the queue of this priority.
    pub(crate) fn make_room(&mut self, priority: Priority) {
        self.jobs.reserve(priority, self.owners * JOBS_PER_OWNER);
    }

    /// Returns the most octets that protection adds to a submessage of a protected endpoint.
    pub(crate) fn submessage_overhead(&self) -> usize {
        self.security.as_ref().map_or(0, |security| security.submessage_overhead())
    }

    /// Returns the octets that protection adds to each payload of a writer.
    pub(crate) fn payload_overhead(&self, writer: EntityId) -> usize {
        self.security.as_ref().map_or(0, |security| security.payload_overhead(writer))
    }

    /// Returns the number of endpoints and matches.
    pub(crate) fn owners(&self) -> usize {
        self.owners
    }

    pub(crate) fn remove_owner(&mut self) {
        self.owners -= 1;
    }

    /// Starts probing the idle groups of the set, which a writer would use.
    pub(crate) fn start_probing(&mut self, wanted: MulticastSet) {
        for (group, it) in self.multicast_groups.list.iter_mut().enumerate() {
            if wanted >> group & 1 != 0 && it.phase == ProbePhase::Idle {
                (it.phase, it.probes_sent) = (ProbePhase::Queued, 0);
                self.jobs.push(Priority::NORMAL, Job::MulticastProbe { group });
            }
        }
    }

    /// Records that a writer sent a sample that could have used these groups. Dormant groups are
    /// probed now.
    pub(crate) fn record_multicast_use(&mut self, wanted: MulticastSet) {
        if wanted == 0 {
            return;
        }
        for (group, it) in self.multicast_groups.list.iter_mut().enumerate().filter(|(at, _)| wanted >> at & 1 != 0) {
            it.in_use = true;
            if it.phase == ProbePhase::Dormant {
                (it.phase, it.probes_sent) = (ProbePhase::Queued, 0);
                self.jobs.push(Priority::NORMAL, Job::MulticastProbe { group });
            }
        }
    }

    /// Schedules an early probe of a group, because a reader missed a sample that was sent to it.
    pub(crate) fn schedule_early_probe(&mut self, now: Instant, group: usize) {
        if let Some(it) = self.multicast_groups.list.get_mut(group)
            && matches!(it.phase, ProbePhase::Probed | ProbePhase::Dormant)
        {
            it.in_use = true;
            self.timers.arm_by(it.timer, now.after(PROBE_INTERVAL_MIN));
        }
    }

    /// Queues an event once. The latest discovered or lost event of a participant moves to the end
    /// of the queue.
    pub(crate) fn notify(&mut self, event: Event) {
        self.work.steps(self.events.len());
        let position = self.events.iter().position(|queued| *queued == event);
        match (position, event) {
            (Some(position), Event::ParticipantDiscovered(_) | Event::ParticipantLost(_)) => {
                self.events.remove(position);
            }
            (Some(_), _) => return,
            (None, _) => {}
        }
        self.events.push_back(event);
    }

    /// Sets the number of known remote participants.
    pub(crate) fn set_participants(&mut self, count: usize) {
        self.participants = u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// Returns the multiplier of the periods of builtin endpoints. When many participants discover
    /// each other, their answers queue up in the network, and repeated requests make it worse.
    /// Participants with unvalidated addresses count too, because they also exchange answers.
    /// Forged announcements can therefore slow the heartbeats of builtin writers down to one a
    /// second.
    pub(crate) fn period_multiplier(&self) -> u32 {
        (self.participants / UNSCALED_PARTICIPANTS_MAX).clamp(1, PERIOD_MULTIPLIER_MAX)
    }
}

#[cfg(test)]
impl Context {
    pub(crate) fn for_tests() -> Self {
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: GuidPrefix::default() };
        let zero = Duration::ZERO;
        let timing = Timing { heartbeat_first: zero, heartbeat_period: zero, nack_delay: zero, nack_suppression: zero };
        Self::new(header, Limits::default(), timing)
    }
}
