//! Check of the resource bounds of the core. No unit of work (`takt_core::Work`: a submessage, a
//! timer or a job) examines more than the participant contains in total. The participant keeps no
//! more state for others than its limits allow (`takt_core::Kept`). To an address that never
//! answers, it sends at most a multiple of what arrived in its name.

use std::collections::{BTreeMap, BTreeSet};

use takt_core::{AMPLIFICATION_MAX, Limits, Participant};

use crate::check::{Checker, Rule};
use crate::clock::Nanos;
use crate::hostile;

/// Work of a participant since the last check.
#[derive(Debug, Default)]
pub struct Meter {
    /// Bound of a unit of work at the last check, since entities that were deleted meanwhile were
    /// examined too.
    bound: u64,
    /// Octets received from the hostile host, by the GUID prefix that it used. `targets` holds the
    /// prefixes that have named its victim.
    hostile: BTreeMap<[u8; 12], u64>,
    targets: BTreeSet<[u8; 12]>,
    /// Octets sent to the victim.
    to_victim: u64,
}

/// Length of the UDP and IPv4 headers.
const HEADERS_LEN: u64 = 28;

/// Allowance for an impostor that makes a known participant appear to move. Datagrams of that
/// participant then count as requests of the victim: announcements and challenges until it
/// announces itself again, which happens every half second.
const MOVED_OCTETS: u64 = 4_000;

/// Maximum number of queued datagrams and events after all were polled: those that the last
/// datagram caused.
const QUEUED_MAX: usize = 64;

impl Meter {
    /// Checks the core after it has handled an input.
    pub fn check(&mut self, core: &mut Participant, now: Nanos, process: usize, checker: &mut Checker) {
        let most = core.take_work().steps_of_one_max;
        let bound = core.steps_per_unit_max();
        if most > self.bound.max(bound) {
            let text = format!("process {process} took {most} steps for one unit, {bound} are allowed");
            checker.report(now, Rule::Work, text);
        }
        self.bound = bound;
        let (kept, limits) = (core.remote_state_size(), Limits::default());
        let fits = kept.participants <= limits.max_participants
            && kept.on_probation <= limits.max_unvalidated_participants
            && kept.endpoints_of_one_max <= limits.max_endpoints_per_participant
            && kept.octets_of_one_max <= limits.max_discovery_bytes_per_participant
            && kept.octets <= limits.max_discovery_bytes
            && kept.refusals <= limits.max_refusals
            && kept.queued <= QUEUED_MAX;
        if !fits {
            checker.report(now, Rule::StateBound, format!("process {process} keeps {kept:?}"));
        }
    }

    /// Returns the octets received from the hostile host and those sent to its victim.
    #[must_use]
    pub fn hostile_octets(&self) -> (u64, u64) {
        (self.hostile.values().sum(), self.to_victim)
    }

    /// Records a datagram of the hostile host.
    pub fn record_hostile(&mut self, datagram: &[u8]) {
        let name: [u8; 12] = datagram.get(8..20).and_then(|name| name.try_into().ok()).unwrap_or_default();
        *self.hostile.entry(name).or_default() += datagram.len() as u64;
        if hostile::names_victim(datagram) {
            self.targets.insert(name);
        }
    }

    /// Records a datagram to the victim.
    pub fn record_to_victim(&mut self, octets: usize, now: Nanos, process: usize, checker: &mut Checker) {
        self.to_victim += octets as u64 + HEADERS_LEN;
        let in_its_name: u64 = self.targets.iter().filter_map(|name| self.hostile.get(name)).sum();
        let allowed = AMPLIFICATION_MAX as u64 * in_its_name + if checker.only_safety { MOVED_OCTETS } else { 0 };
        if self.to_victim > allowed {
            let text = format!("process {process} sent {} octets to a victim for {in_its_name}", self.to_victim);
            checker.report(now, Rule::Amplification, text);
        }
    }
}
