//! What makes the protocol engine run: clock, lock, waiting, and the driver between core and transports.
//!
//! Everything above this module is API, everything below it is sans-IO or I/O without protocol.

pub(crate) mod clock;
pub(crate) mod diagnosis;
pub(crate) mod drive;
pub(crate) mod driver;
pub(crate) mod engine;
pub(crate) mod event_count;
pub(crate) mod guarded;
pub(crate) mod leading;
pub(crate) mod ledger;
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

/// Who drives a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// The application's thread, in [`spin_once`](crate::DomainParticipant::spin_once),
    /// [`WaitSet::wait`](crate::WaitSet::wait) and every call that blocks; listeners are called from there. No
    /// thread, no lock. The participant and its entities belong to the thread that built it: a call from another
    /// one is [`Error::IllegalOperation`](crate::Error::IllegalOperation). Between such calls nothing is received
    /// or acknowledged.
    Inline,
    /// A thread of its own, `takt-rx`, which also calls the listeners. Any thread may call anything, listeners
    /// included; a `write` sends in the caller's context under a short lock with priority inheritance.
    /// A thread that waits in [`WaitSet::wait`](crate::WaitSet::wait) or
    /// [`DataReader::recv_timeout`](crate::DataReader::recv_timeout) receives in its place meanwhile, but calls no listener.
    #[default]
    Shared,
}

/// What the driving thread does while there is nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Sleeps until a datagram or a timer is there.
    #[default]
    Block,
    /// Never sleeps: asks the sockets again and again. Takes a core for itself and saves the wake-up, some 20 us.
    Spin,
    /// Spins for so long after something has happened, and after a call that waits has begun; then sleeps. What comes in time
    /// finds the thread awake, and silence costs nothing.
    SpinThenBlock(Duration),
}

impl Idle {
    /// Of who drives two participants: as awake as the one that is more so.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Spin, _) | (_, Self::Spin) => Self::Spin,
            (Self::SpinThenBlock(a), Self::SpinThenBlock(b)) => Self::SpinThenBlock(a.max(b)),
            (Self::Block, idle) | (idle, Self::Block) => idle,
        }
    }

    /// Until when to spin if something happened now; `now` if not at all.
    pub(crate) fn spins_until(self, now: Instant) -> Instant {
        match self {
            Self::Block => now,
            Self::Spin => Instant(u64::MAX),
            Self::SpinThenBlock(span) => now.after(span),
        }
    }
}
