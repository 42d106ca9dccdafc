//! Job of kind `churn`: an open loop while participants join and leave.

use super::{Measurement, RUN_LIMIT, Report, wait};
use crate::error::Result;
use std::time::{Duration, Instant};

/// Time from the match to the beginning of an open loop, as in the contract.
const BEFORE: Duration = Duration::from_millis(500);
/// Time for which a crowd stays.
const STAY: Duration = Duration::from_millis(500);

impl Measurement<'_> {
    pub(super) fn churn(&self) -> Result<Report> {
        let participants = self.number("participants", 0);
        let length = self.seconds("warm_s", 0.5) + self.seconds("secs", 2.0);
        let mut visits = 0_u32;
        let mut replace_participants = || {
            wait(BEFORE)?;
            let end = Instant::now() + length;
            while participants > 0 && Instant::now() < end {
                let mut crowd = self.start("crowd", 1, &[])?;
                crowd.child.wait_for("ready", RUN_LIMIT)?;
                wait(STAY)?;
                crowd.child.stop()?;
                visits += 1;
            }
            Ok(())
        };
        let mut report = self.one_way("load", &mut replace_participants)?;
        let comings = f64::from(visits) * participants as f64;
        for found in &mut report.results {
            found.measured.figures.insert("comings".into(), comings);
        }
        Ok(report)
    }
}
