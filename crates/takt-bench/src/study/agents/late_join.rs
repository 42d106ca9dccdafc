//! A reader that comes after the samples: `hold` and `join`.

use super::{Measurement, RUN_LIMIT, Report, number, whole};
use crate::error::Result;
use std::collections::BTreeMap;

impl Measurement<'_> {
    pub(super) fn late_join(&self) -> Result<Report> {
        let mut hold = self.start("hold", 1, &[])?;
        hold.child.wait_for("ready", RUN_LIMIT)?;
        let mut join = self.start("join", 0, &[self.started()])?;
        let commands = vec![self.command(&join), self.command(&hold)];
        let result = join.child.wait_for("result", RUN_LIMIT)?;
        join.child.stop()?;
        hold.child.stop()?;
        let samples = match self.number("samples", 0) {
            0 => self.number("count", 10_000),
            samples => samples,
        };
        let figures = BTreeMap::from([
            ("first_sample_ms".to_owned(), number(&result, "first_ms")),
            ("last_sample_ms".to_owned(), number(&result, "last_ms")),
            ("lost".to_owned(), samples.saturating_sub(whole(&result, "n")) as f64),
        ]);
        Ok(self.report(figures, commands))
    }
}
