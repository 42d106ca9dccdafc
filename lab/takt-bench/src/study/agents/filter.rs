//! Job of kind `filter`: a reader with a content filter, with the roles `load` and `pick`.

use super::{Measurement, Report, number, whole};
use crate::error::Result;
use crate::study::site::Traffic;

impl Measurement<'_> {
    pub(super) fn filter(&self) -> Result<Report> {
        let place = self.launcher.place;
        let percent = self.number("pass-percent", 100).clamp(1, 100);
        let mut before = Traffic::default();
        let mut begin = || {
            before = place.traffic(0)?;
            Ok(())
        };
        let further = ["type=numbered".to_owned(), format!("pass_percent={percent}")];
        let (mut report, written, received) = self.one_way_as(["load", "pick"], &further, &mut begin)?;
        let octets = place.traffic(0)?.since(&before).octets;
        let taken = received.first().map_or(0, |line| whole(line, "n"));
        // Samples that pass are at even distances, and the first and the last counted sample pass.
        let due = received.first().map_or(0, |line| whole(line, "span")) * percent / 100;
        for found in &mut report.results {
            let figures = &mut found.measured.figures;
            figures.insert("lost".into(), due.saturating_sub(taken) as f64);
            figures.insert("delivered_percent".into(), 100.0 * taken as f64 / due.max(1) as f64);
            figures.insert("wire_octets".into(), octets as f64 / number(&written, "total").max(1.0));
        }
        Ok(report)
    }
}
