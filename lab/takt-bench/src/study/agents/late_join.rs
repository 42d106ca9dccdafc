//! Job of kind `late-join`: a reader that joins after the samples were written, with the roles
//! `hold` and `join`.

use super::{Measurement, RUN_LIMIT, Report, number, whole};
use crate::error::Result;
use crate::study::support::{SERVICE, needs_service};
use std::collections::BTreeMap;

impl Measurement<'_> {
    pub(super) fn late_join(&self) -> Result<Report> {
        let needs_service = needs_service(&self.job.cells[0].values);
        let mut processes = Vec::new();
        if needs_service {
            let mut keep = self.start(SERVICE, 1, &[])?;
            keep.child.wait_for("ready", RUN_LIMIT)?;
            processes.push(keep);
        }
        let mut hold = self.start("hold", 1, &[])?;
        hold.child.wait_for("ready", RUN_LIMIT)?;
        let mut commands = vec![self.command(&hold)];
        commands.extend(processes.iter().map(|process| self.command(process)));
        if needs_service {
            // The samples must outlive the writer.
            hold.child.stop()?;
        } else {
            processes.push(hold);
        }
        let mut join = self.start("join", 0, &[self.started()])?;
        commands.insert(0, self.command(&join));
        let result = join.child.wait_for("result", RUN_LIMIT)?;
        join.child.stop()?;
        for process in &mut processes {
            process.child.stop()?;
        }
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
