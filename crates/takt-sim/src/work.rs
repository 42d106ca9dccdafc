//! Each call of the core does no more than it says (`takt_core::Work`): no unit of work, be it a submessage, a timer or a
//! job, looks at more than the sum of what the participant has.

use takt_core::Participant;

use crate::check::{Checker, Rule};
use crate::clock::Nanos;

/// A participant's work since it was last looked at.
#[derive(Debug, Default)]
pub struct Meter {
    /// What a unit may take, when last looked at: what has gone since was looked at too.
    bound: u64,
}

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
    }
}
