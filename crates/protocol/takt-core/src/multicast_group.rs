//! Multicast groups for user data, each on one local interface, and the participants
//! that listen to them.
//!
//! Sending to a group costs one datagram, regardless of how many listen. Each listening
//! participant receives that datagram, even without a matched reader. Unicast costs one send and
//! one receive for each destination. A group is therefore cheaper once more than half of the
//! listeners, this participant included, need the data ([`MulticastGroups::is_cheaper`]).
//!
//! Participants announce the groups they listen to (RTPS 2.5 §8.5.3.2). Probes in
//! `crate::discovery` validate that datagrams to a group arrive.

use crate::timer::TimerId;
use alloc::vec::Vec;
use takt_wire::{Locator, SequenceNumber};

/// Maximum number of groups, counted as groups times interfaces. Further ones are not used.
pub(crate) const MULTICAST_GROUPS_MAX: usize = 8;

/// Maximum number of probes in one round, of which one must arrive.
pub(crate) const PROBES_MAX: usize = 4;

/// Set of groups, one bit each.
pub(crate) type MulticastSet = u8;

/// Multicast groups of a matched reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MulticastReachability {
    /// Groups that the reader's participant listens to as far as known, whether the writer may
    /// use them or not.
    pub(crate) listens: MulticastSet,
    /// Groups by which the reader's data may be sent.
    pub(crate) allowed: MulticastSet,
    /// Groups that the reader's participant has acknowledged to receive.
    pub(crate) validated: MulticastSet,
}

impl MulticastReachability {
    /// Reports whether a group may carry the reader's data, and is validated.
    pub(crate) fn is_served_by(&self, group: usize) -> bool {
        self.allowed & self.validated & (1 << group) != 0
    }
}

/// State of the probing of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbePhase {
    /// No writer would use the group.
    Idle,
    /// The next probe is queued.
    Queued,
    /// Answers to probes are awaited.
    Probing,
    /// All listeners have answered or are assumed unreachable. The timer ends this phase.
    Probed,
    /// As [`Self::Probed`], and nothing was sent since. The next sample ends this phase, or the
    /// timer much later.
    Dormant,
}

#[derive(Debug)]
pub(crate) struct MulticastGroup {
    /// Address of the group, and the interface.
    pub(crate) locator: Locator,
    /// Largest RTPS message in bytes that travels in one packet.
    pub(crate) max_message: usize,
    /// Listening participants, this one excluded, and how many of them do not receive the group.
    pub(crate) listeners: usize,
    pub(crate) unreachable: usize,
    pub(crate) timer: TimerId,
    pub(crate) phase: ProbePhase,
    /// Sequence numbers of the probes of this round. A participant that acknowledges one of them
    /// receives the group.
    pub(crate) probes: [SequenceNumber; PROBES_MAX],
    pub(crate) probes_sent: usize,
    /// Since this round began, a writer sent a sample that could have used the group, or a reader
    /// missed one.
    pub(crate) in_use: bool,
}

#[derive(Debug, Default)]
pub(crate) struct MulticastGroups {
    /// Minimum number of matched readers' destinations from which a writer uses multicast; 0:
    /// never.
    pub(crate) readers_min: usize,
    pub(crate) list: Vec<MulticastGroup>,
    /// Sequence number of the last probe.
    pub(crate) last_probe: SequenceNumber,
}

impl MulticastGroups {
    /// Reports whether one datagram to a group with `listeners` listeners, this participant
    /// excluded, is cheaper than one datagram to each of `destinations` locators. Sending and
    /// receiving a datagram count the same.
    pub(crate) fn is_cheaper(&self, listeners: usize, destinations: usize) -> bool {
        let listeners = listeners + 1;
        self.readers_min > 0 && destinations >= self.readers_min && 2 * destinations > listeners + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_cheaper_when_more_than_half_of_its_listeners_need_the_data() {
        let from = |readers_min| MulticastGroups { readers_min, ..MulticastGroups::default() };
        let destinations_min =
            |listeners, min| (0..100).find(|destinations| from(min).is_cheaper(listeners, *destinations));
        assert_eq!([2, 3, 4, 10, 32].map(|listeners| destinations_min(listeners, 1)), [3, 3, 4, 7, 18].map(Some));
        assert_eq!((destinations_min(3, 5), destinations_min(3, 0)), (Some(5), None));
    }
}
