//! Work of a call, in units that have a stated bound, and state kept for remote participants.
//!
//! A call handles *units*: submessages, timers, jobs (a datagram, or a stale job), samples of
//! builtin topics, and calls of the application. For each unit it visits table entries, samples
//! and instances: *steps*. No unit takes more steps than
//! [`crate::Participant::steps_per_unit_max`]. That bound is a sum over the participant's state,
//! never a product; `docs/reference/limits.md` states what a call may handle. The simulation checks
//! both after every call.

/// State that the participant currently keeps for remote participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteStateSize {
    /// Remote participants.
    pub participants: usize,
    /// Remote participants with an unvalidated address.
    pub on_probation: usize,
    /// Remote writers and readers.
    pub endpoints: usize,
    /// Maximum number of endpoints of one participant.
    pub endpoints_of_one_max: usize,
    /// Memory of their announcements in octets.
    pub octets: usize,
    /// Maximum number of octets of one participant.
    pub octets_of_one_max: usize,
    /// Pending datagrams, and events that were not polled yet.
    pub queued: usize,
    /// Refused matches.
    pub refusals: usize,
}

/// Work of all calls so far. The totals wrap at 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Submessages, timers, jobs, samples of builtin topics, calls of the application.
    pub units: u64,
    /// Entries of tables, samples and instances that these units visited.
    pub steps: u64,
    /// Maximum number of steps of one unit since the last [`crate::Participant::take_work`].
    pub steps_of_one_max: u64,
    /// Value of `steps` at the start of the current unit.
    began: u64,
}

impl Work {
    /// Starts a unit, which counts as a step too.
    pub(crate) fn unit(&mut self) {
        self.end_unit();
        self.units = self.units.wrapping_add(1);
        self.steps(1);
    }

    fn end_unit(&mut self) {
        self.steps_of_one_max = self.steps_of_one_max.max(self.steps.wrapping_sub(self.began));
        self.began = self.steps;
    }

    /// Returns the totals, and restarts the search for the largest unit.
    pub(crate) fn take(&mut self) -> Self {
        self.end_unit();
        let work = *self;
        self.steps_of_one_max = 0;
        work
    }

    /// Adds steps.
    pub(crate) fn steps(&mut self, steps: usize) {
        self.steps = self.steps.wrapping_add(steps as u64);
    }
}
