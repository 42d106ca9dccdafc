//! How much a call does, in units that a bound can be stated for, and how much the participant keeps for others.
//!
//! A call handles *units*: submessages, timers, jobs (one of which is a datagram, or turns out to be stale), samples of
//! builtin topics, and calls of the application. For each it looks at table entries, samples and instances: *steps*. No
//! unit takes more steps than [`crate::Participant::steps_per_unit_max`], which is a sum over what the participant has,
//! never a product: `docs/limits.md` says what a call may handle. The simulation checks both after every call.

use crate::participant::Participant;

/// What the participant keeps for others at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Remote participants.
    pub participants: usize,
    /// Of these, those that have not proven their address.
    pub on_probation: usize,
    /// Remote writers and readers.
    pub endpoints: usize,
    /// The most of one participant.
    pub endpoints_of_one_max: usize,
    /// Memory in octets of what they announce.
    pub octets: usize,
    /// The most of one participant.
    pub octets_of_one_max: usize,
    /// Datagrams that somebody wants to send, and events that nobody has polled.
    pub queued: usize,
    /// Refused matches.
    pub refusals: usize,
}

impl Participant {
    /// What it keeps for others at present; looks at each remote participant.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let remotes = || self.remotes.iter().map(|(_, remote)| remote);
        Kept {
            participants: self.remotes.len(),
            on_probation: remotes().filter(|remote| remote.is_on_probation()).count(),
            endpoints: self.publications.len() + self.subscriptions.len(),
            endpoints_of_one_max: remotes().map(|remote| remote.endpoints).max().unwrap_or(0),
            octets: self.discovery_bytes,
            octets_of_one_max: remotes().map(|remote| remote.footprint).max().unwrap_or(0),
            queued: self.ctx.jobs.len() + self.ctx.events.len(),
            refusals: self.refusals.len(),
        }
    }
}

/// What all calls have done so far. Both wrap at 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Submessages, timers, jobs, samples of builtin topics, calls of the application.
    pub units: u64,
    /// Entries of tables, samples and instances that were looked at for them.
    pub steps: u64,
    /// The most steps of one unit since the last [`crate::Participant::take_work`].
    pub steps_of_one_max: u64,
    /// Where the unit at hand began.
    began: u64,
}

impl Work {
    /// One more unit, which is a step too.
    pub(crate) fn unit(&mut self) {
        self.end_unit();
        self.units = self.units.wrapping_add(1);
        self.steps(1);
    }

    fn end_unit(&mut self) {
        self.steps_of_one_max = self.steps_of_one_max.max(self.steps.wrapping_sub(self.began));
        self.began = self.steps;
    }

    /// The account so far; the search for the largest unit begins anew.
    pub(crate) fn take(&mut self) -> Self {
        self.end_unit();
        let work = *self;
        self.steps_of_one_max = 0;
        work
    }

    /// So many steps.
    pub(crate) fn steps(&mut self, steps: usize) {
        self.steps = self.steps.wrapping_add(steps as u64);
    }
}
