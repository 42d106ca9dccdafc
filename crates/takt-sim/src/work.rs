//! Each call of the core does no more than it says (`takt_core::Work`): no unit of work, be it a submessage, a timer or a
//! job, looks at more than the sum of what the participant has. It keeps no more for others than its limits allow
//! (`takt_core::Kept`), and sends an address that never answers no more than a multiple of what came in its name.

use std::collections::{BTreeMap, BTreeSet};

use takt_core::{AMPLIFICATION_MAX, Limits, Participant};

use crate::check::{Checker, Rule};
use crate::clock::Nanos;
use crate::hostile;

/// A participant's work since it was last looked at.
#[derive(Debug, Default)]
pub struct Meter {
    /// What a unit may take, when last looked at: what has gone since was looked at too.
    bound: u64,
    /// Octets that came from the hostile host by the name it used; and the names that have named its victim.
    hostile: BTreeMap<[u8; 12], u64>,
    aimed: BTreeSet<[u8; 12]>,
    /// Octets that left for its victim.
    to_victim: u64,
}

/// UDP and IPv4.
const HEADERS_LEN: u64 = 28;

/// An impostor can make a participant that we know seem to move, and what that says meanwhile then counts as the victim's:
/// announcements and challenges for as long as it takes to announce itself again, which it does every half second.
const MOVED_OCTETS: u64 = 4_000;

/// Datagrams and events that may wait when everything was polled: what the last datagram caused.
const QUEUED_MAX: usize = 64;

impl Meter {
    /// To be called when the core has handled something.
    pub fn check(&mut self, core: &mut Participant, now: Nanos, process: usize, checker: &mut Checker) {
        let most = core.take_work().steps_of_one_max;
        let bound = core.steps_per_unit_max();
        if most > self.bound.max(bound) {
            let text = format!("process {process} took {most} steps for one unit, {bound} are allowed");
            checker.report(now, Rule::Work, text);
        }
        self.bound = bound;
        let (kept, limits) = (core.kept(), Limits::default());
        let fits = kept.participants <= limits.max_participants
            && kept.on_probation <= limits.max_unvalidated_participants
            && kept.endpoints_of_one_max <= limits.max_endpoints_per_participant
            && kept.octets_of_one_max <= limits.max_discovery_bytes_per_participant
            && kept.octets <= limits.max_discovery_bytes
            && kept.refusals <= limits.max_refusals
            && kept.queued <= QUEUED_MAX;
        if !fits {
            checker.report(now, Rule::Kept, format!("process {process} keeps {kept:?}"));
        }
    }

    /// Octets that came from the hostile host, and that left for its victim.
    #[must_use]
    pub fn harm(&self) -> (u64, u64) {
        (self.hostile.values().sum(), self.to_victim)
    }

    /// A datagram of the hostile host came.
    pub fn heard(&mut self, datagram: &[u8]) {
        let name: [u8; 12] = datagram.get(8..20).and_then(|name| name.try_into().ok()).unwrap_or_default();
        *self.hostile.entry(name).or_default() += datagram.len() as u64;
        if hostile::names_victim(datagram) {
            self.aimed.insert(name);
        }
    }

    /// A datagram leaves for the victim.
    pub fn aims(&mut self, octets: usize, now: Nanos, process: usize, checker: &mut Checker) {
        self.to_victim += octets as u64 + HEADERS_LEN;
        let in_its_name: u64 = self.aimed.iter().filter_map(|name| self.hostile.get(name)).sum();
        let allowed = AMPLIFICATION_MAX as u64 * in_its_name + if checker.only_safety { MOVED_OCTETS } else { 0 };
        if self.to_victim > allowed {
            let text = format!("process {process} sent {} octets to a victim for {in_its_name}", self.to_victim);
            checker.report(now, Rule::Amplification, text);
        }
    }
}
