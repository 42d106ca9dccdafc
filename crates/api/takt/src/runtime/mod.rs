//! Runtime of the protocol engine: clocks, locks, blocking, and the driver between core and
//! transports.
//!
//! Modules above this one are API. Modules below it are sans-IO, or I/O without protocol.

pub(crate) mod clock;
pub(crate) mod diagnosis;
pub(crate) mod drive;
pub(crate) mod driver;
pub(crate) mod engine;
pub(crate) mod event_count;
pub(crate) mod guarded;
pub(crate) mod job_recorder;
pub(crate) mod leading;
pub(crate) mod listeners;
pub(crate) mod os;
pub(crate) mod pi_mutex;
pub(crate) mod poll;
pub(crate) mod roles;
pub(crate) mod scheduler;
pub(crate) mod state;
pub(crate) mod tasks;
pub(crate) mod thread_cell;

#[cfg(test)]
mod model;
#[cfg(test)]
mod simulation;

use std::time::Duration;

use takt_core::Instant;

/// Thread model of a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// The application's thread drives the participant: in
    /// [`spin_once`](crate::DomainParticipant::spin_once), [`WaitSet::wait`](crate::WaitSet::wait)
    /// and every other blocking call. Listeners are called from there. There is no other thread and
    /// no lock. The participant and its entities belong to the thread that built it; calls from
    /// other threads fail with [`Error::IllegalOperation`](crate::Error::IllegalOperation). Nothing
    /// is received or acknowledged between these calls.
    Inline,
    /// A thread of its own, `takt-rx`, drives the participant and calls listeners. Any thread may
    /// call any method, also from listeners. A `write` sends in the caller's context under a short
    /// lock with priority inheritance. A thread that waits in
    /// [`WaitSet::wait`](crate::WaitSet::wait) or
    /// [`DataReader::recv_timeout`](crate::DataReader::recv_timeout) receives in place of `takt-rx`
    /// but calls no listeners.
    #[default]
    Shared,
}

/// Behavior of the driving thread while no job is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Sleeps until a datagram arrives or a timer expires.
    #[default]
    Block,
    /// Never sleeps but polls the sockets continuously. Occupies a core and saves the wakeup
    /// latency, some 20 us.
    Spin,
    /// Spins for this duration after activity and from the start of a blocking call, then sleeps.
    /// Datagrams that arrive within the duration find the thread awake, and an idle participant
    /// consumes no processor time.
    SpinThenBlock(Duration),
}

impl Idle {
    /// Combines the settings of two participants on one thread: the more wakeful one applies.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Spin, _) | (_, Self::Spin) => Self::Spin,
            (Self::SpinThenBlock(a), Self::SpinThenBlock(b)) => Self::SpinThenBlock(a.max(b)),
            (Self::Block, idle) | (idle, Self::Block) => idle,
        }
    }

    /// Returns the time until which to spin after activity at `now`; `now` if not at all.
    pub(crate) fn spins_until(self, now: Instant) -> Instant {
        match self {
            Self::Block => now,
            Self::Spin => Instant(u64::MAX),
            Self::SpinThenBlock(span) => now.after(span),
        }
    }
}
