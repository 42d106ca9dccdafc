//! Runs of many seeds, one after another.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::check::{Rule, Violation};
use crate::clock::Nanos;
use crate::scenario::Scenario;
use crate::timeline::Timeline;
use crate::world::{self, Report};

/// Totals of many runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of runs.
    pub runs: u64,
    /// Simulated time of all worlds.
    pub simulated: Nanos,
    /// Simulated time summed over all participants.
    pub participant_time: Nanos,
    /// Samples written.
    pub written: u64,
    /// Samples taken.
    pub taken: u64,
    /// Coherent sets that were completed.
    pub sets: u64,
    /// Frames sent.
    pub frames: u64,
}

impl Tally {
    /// Adds the report of a run.
    pub fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.simulated += report.simulated;
        self.participant_time += report.participant_time;
        self.written += report.written;
        self.taken += report.taken;
        self.sets += report.sets;
        self.frames += report.network.sent;
    }
}

/// Runs a scenario. A panic counts as a violation.
pub fn run(scenario: &Scenario, timeline: &mut dyn Timeline) -> Report {
    catch_unwind(AssertUnwindSafe(|| world::run(scenario, timeline))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let text = text.unwrap_or_else(|| "a panic without words".to_owned());
        Report { violation: Some(Violation { at: 0, rule: Rule::Panic, text }), ..Report::default() }
    })
}
