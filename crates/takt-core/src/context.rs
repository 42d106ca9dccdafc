//! What every state machine of the participant shares: timers, pending work, events, counters.

use crate::cache::PayloadRef;
use crate::channel::{ChannelSet, Channels, Phase};
use crate::config::Limits;
use crate::counters::Counters;
use crate::event::Event;
use crate::lifespan::Expiry;
use crate::security::Security;
use crate::standstill::Standstills;
use crate::time::{Clocks, Instant};
use crate::timer::{TimerId, TimerKind, TimerQueue};
use crate::work::Work;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::cell::Cell;
use core::ops::Range;
use core::time::Duration;
use takt_exec::{Priority, PriorityQueue};
use takt_wire::{EntityId, Lent, Timestamp};

/// A datagram that somebody wants to send, of the priority of its endpoint; discovery has the normal one. Each owner queues at most one job of a kind, and knows that it has:
/// a job that finds its owner gone, or another one in its place that wants nothing, does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// New samples of a writer to all its readers.
    Data { writer: u32 },
    /// Repairs, gaps and directed heartbeats to one reader.
    Repair { writer: u32, proxy: u32 },
    /// A periodic heartbeat to all reliable readers that have not acknowledged everything.
    Heartbeat { writer: u32 },
    /// Acknowledgement to one writer.
    AckNack { reader: u32, proxy: u32 },
    /// The participant's announcement, to the next destinations of its list.
    Announce,
    /// A participant's announcement to those whom it concerns.
    Introduce { participant: u32 },
    /// The participant's announcement to a new participant, and what it takes to believe it.
    Greet { participant: u32 },
    /// A question of a writer to best-effort readers, whether they get what it sends.
    Question { writer: u32 },
    /// A question to a channel, who hears it.
    Ask { channel: usize },
}

/// A channel that readers miss things of is asked about, but not more often than this.
const SUSPICION: Duration = Duration::from_millis(200);

/// A part of a payload that goes out from a writer's history, without being copied into the frame.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    pub(crate) writer: u32,
    pub(crate) payload: PayloadRef,
    pub(crate) range: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) timers: TimerQueue,
    pub(crate) jobs: PriorityQueue<Job>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    pub(crate) work: Work,
    pub(crate) limits: Limits,
    pub(crate) timing: Timing,
    pub(crate) standstills: Standstills,
    /// Wall clock less monotonic clock in nanoseconds, modulo 2^64.
    wall_offset_ns: u64,
    /// What the wall clock showed when it was last asked: each sample of a datagram or a batch asks.
    wall: Cell<(Instant, Timestamp)>,
    /// Endpoints and matches that exist.
    owners: usize,
    /// Other participants that are known.
    participants: u32,
    /// Something may have become visible of a group.
    pub(crate) groups_stirred: bool,
    /// Has them looked at again.
    pub(crate) groups_timer: TimerId,
    /// The payload that goes with the datagram that is being built, and stays where it is.
    pub(crate) lent: Option<Lent>,
    /// The caller sends payloads from where they are; see [`Ahead`].
    pub(crate) gathers: bool,
    /// What follows the datagram that is being built.
    pub(crate) ahead: Option<Ahead>,
    /// Places given out in the order that readers of a subscriber share.
    pub(crate) arrivals: u64,
    /// Multicast of user data.
    pub(crate) channels: Channels,
    /// The plugins of DDS Security, if the participant has them, and their timer.
    pub(crate) security: Option<Box<dyn Security>>,
    pub(crate) security_timer: Option<TimerId>,
}

/// Less than this is a clock that is kept, not one that is set.
const WALL_STEP_NS: u64 = 1_000_000;

/// So many other participants are no crowd.
const CROWD: u32 = 8;
/// The most that periods of builtin endpoints are multiplied with.
const PATIENCE_MAX: u32 = 10;

const JOBS_PER_OWNER: usize = 2;
const EVENTS_PER_OWNER: usize = 10;

/// The protocol's periods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) heartbeat_first: Duration,
    pub(crate) heartbeat_period: Duration,
    pub(crate) nack_delay: Duration,
    pub(crate) nack_suppression: Duration,
}

impl Context {
    pub(crate) fn new(limits: Limits, timing: Timing) -> Self {
        let mut timers = TimerQueue::new();
        let mut jobs = PriorityQueue::new();
        jobs.reserve(Priority::NORMAL, 64);
        Self {
            groups_timer: timers.register(TimerKind::Groups),
            timers,
            jobs,
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
            groups_stirred: false,
            lent: None,
            gathers: false,
            ahead: None,
            arrivals: 0,
            channels: Channels::default(),
            security: None,
            security_timer: None,
        }
    }

    /// Says whether the wall clock was set: whether it goes otherwise than it was told last, by [`WALL_STEP_NS`] or more.
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

    /// The last moment that the wall clock was asked for.
    pub(crate) fn last_clocks(&self) -> Clocks {
        let (at, wall) = self.wall.get();
        Clocks { at, wall }
    }

    /// A moment by both clocks.
    pub(crate) fn clocks(&self, now: Instant) -> Clocks {
        Clocks { at: now, wall: self.wall_clock(now) }
    }

    /// The moment of an expiry, as the wall clock goes now.
    pub(crate) fn moment_of(&self, expiry: Expiry, now: Instant) -> Instant {
        now.after(Duration::from_nanos(expiry.nanos_from(self.wall_clock(now))))
    }

    /// Makes room for the jobs and events that one more owner can have pending at once, so that queueing
    /// them never allocates.
    pub(crate) fn add_owner(&mut self, priority: Priority) {
        self.owners += 1;
        self.make_room(priority);
        self.events.reserve((self.owners * EVENTS_PER_OWNER).saturating_sub(self.events.len()));
    }

    /// Makes room for the jobs of all owners, if they were of this priority.
    pub(crate) fn make_room(&mut self, priority: Priority) {
        self.jobs.reserve(priority, self.owners * JOBS_PER_OWNER);
    }

    /// Octets that protection adds to each submessage of a protected endpoint at most.
    pub(crate) fn submessage_overhead(&self) -> usize {
        self.security.as_ref().map_or(0, |security| security.submessage_overhead())
    }

    /// Octets that protection adds to each payload of a writer.
    pub(crate) fn payload_overhead(&self, writer: EntityId) -> usize {
        self.security.as_ref().map_or(0, |security| security.payload_overhead(writer))
    }

    /// Endpoints and matches that exist.
    pub(crate) fn owners(&self) -> usize {
        self.owners
    }

    pub(crate) fn remove_owner(&mut self) {
        self.owners -= 1;
    }

    /// A writer would use these channels.
    pub(crate) fn want_channels(&mut self, wanted: ChannelSet) {
        for (channel, it) in self.channels.list.iter_mut().enumerate() {
            if wanted >> channel & 1 != 0 && it.phase == Phase::Idle {
                (it.phase, it.asked) = (Phase::Queued, 0);
                self.jobs.push(Priority::NORMAL, Job::Ask { channel });
            }
        }
    }

    /// A writer that would use these channels has sent something new: one that was quiet is asked about now.
    pub(crate) fn use_channels(&mut self, wanted: ChannelSet) {
        if wanted == 0 {
            return;
        }
        for (channel, it) in self.channels.list.iter_mut().enumerate().filter(|(at, _)| wanted >> at & 1 != 0) {
            it.in_use = true;
            if it.phase == Phase::Quiet {
                (it.phase, it.asked) = (Phase::Queued, 0);
                self.jobs.push(Priority::NORMAL, Job::Ask { channel });
            }
        }
    }

    /// A reader misses what was sent to a channel: it is asked about early.
    pub(crate) fn suspect_channel(&mut self, now: Instant, channel: usize) {
        if let Some(it) = self.channels.list.get_mut(channel)
            && matches!(it.phase, Phase::Resting | Phase::Quiet)
        {
            it.in_use = true;
            self.timers.arm_by(it.timer, now.after(SUSPICION));
        }
    }

    /// Queues an event once. The last word on a participant stays the last.
    pub(crate) fn notify(&mut self, event: Event) {
        self.work.steps(self.events.len());
        let place = self.events.iter().position(|queued| *queued == event);
        match (place, event) {
            (Some(place), Event::ParticipantDiscovered(_) | Event::ParticipantLost(_)) => {
                self.events.remove(place);
            }
            (Some(_), _) => return,
            (None, _) => {}
        }
        self.events.push_back(event);
    }

    /// So many other participants are known.
    pub(crate) fn set_participants(&mut self, count: usize) {
        self.participants = u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// What the periods of builtin endpoints are multiplied with. When many participants meet, answers wait for one another on the way for
    /// longer than those of one do, and asking again makes it worse. Those that have proven nothing count too, since they meet; so who
    /// forges announcements can have builtin writers ask once a second.
    pub(crate) fn patience(&self) -> u32 {
        (self.participants / CROWD).clamp(1, PATIENCE_MAX)
    }
}
