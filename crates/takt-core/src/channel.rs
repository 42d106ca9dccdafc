//! Channels: multicast groups of user data, each by one of our interfaces, and who hears them.
//!
//! Sending to a channel costs one datagram whoever listens, and each participant that listens one to receive, whether it has a
//! use for it or not. Unicast costs one to send and one to receive for each that has. So a channel is cheaper once more
//! than half of those who listen, ourselves included, are to be sent the data ([`Channels::is_cheaper`]).
//!
//! Who listens is announced (RTPS 2.5 §8.5.3.2). That what is sent there arrives must be proven (`crate::discovery`).

use crate::timer::TimerId;
use alloc::vec::Vec;
use takt_wire::{Locator, SequenceNumber};

/// Channels at most: groups times interfaces. Further ones are not used.
pub(crate) const CHANNELS_MAX: usize = 8;

/// Questions in one round at most, of which one must arrive.
pub(crate) const QUESTIONS_MAX: usize = 4;

/// Channels, one bit each.
pub(crate) type ChannelSet = u8;

/// What a reader hears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hearing {
    /// The channels that its participant listens to, as far as we know, whether we want it or not.
    pub(crate) hears: ChannelSet,
    /// Those that its data may be sent by.
    pub(crate) takes: ChannelSet,
    /// Those that its participant has proven to hear.
    pub(crate) proven: ChannelSet,
}

impl Hearing {
    /// Whether a channel leads to it.
    pub(crate) fn is_served_by(&self, channel: usize) -> bool {
        self.takes & self.proven & (1 << channel) != 0
    }
}

/// Whether it is known who hears a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody wants to know.
    Idle,
    /// The next question is queued.
    Queued,
    /// Answers to questions are awaited.
    Asking,
    /// All have answered, or never will; the timer ends it.
    Resting,
    /// The same, and nothing was sent since; the next that is ends it, or the timer much later.
    Quiet,
}

#[derive(Debug)]
pub(crate) struct Channel {
    /// The group, and the interface.
    pub(crate) locator: Locator,
    /// Largest RTPS message in bytes that travels in one packet.
    pub(crate) max_message: usize,
    /// Participants that listen, ourselves apart, and those of them that hear nothing.
    pub(crate) listeners: usize,
    pub(crate) deaf: usize,
    pub(crate) timer: TimerId,
    pub(crate) phase: Phase,
    /// The numbers of the questions of this round: whoever acknowledges up to one has heard it.
    pub(crate) questions: [SequenceNumber; QUESTIONS_MAX],
    pub(crate) asked: usize,
    /// Since this round began, something was sent that could have gone here, or a reader missed what did.
    pub(crate) in_use: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// Places of a writer's readers from which on a channel is used; 0: never.
    pub(crate) readers_min: usize,
    pub(crate) list: Vec<Channel>,
    /// The number of the last question.
    pub(crate) last_question: SequenceNumber,
}

impl Channels {
    /// Whether one datagram to a channel that so many listen to, ourselves apart, is cheaper than one to each of the places among
    /// them that are to have it. To send a datagram and to
    /// receive one count the same.
    pub(crate) fn is_cheaper(&self, listeners: usize, places: usize) -> bool {
        let listeners = listeners + 1;
        self.readers_min > 0 && places >= self.readers_min && 2 * places > listeners + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_for_more_than_half_of_those_who_hear_it() {
        let from = |readers_min| Channels { readers_min, ..Channels::default() };
        let least = |listeners, min| (0..100).find(|places| from(min).is_cheaper(listeners, *places));
        assert_eq!([2, 3, 4, 10, 32].map(|listeners| least(listeners, 1)), [3, 3, 4, 7, 18].map(Some));
        assert_eq!((least(3, 5), least(3, 0)), (Some(5), None));
    }
}
