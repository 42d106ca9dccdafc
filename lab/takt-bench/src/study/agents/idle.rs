//! Job of kind `idle`: two processes without traffic.

use super::{Measurement, READY_LIMIT, RUN_LIMIT, Report, number};
use crate::error::Result;
use std::collections::BTreeMap;

impl Measurement<'_> {
    pub(super) fn idle(&self) -> Result<Report> {
        let mut first = self.start("idle", 1, &["id=1".into(), self.started()])?;
        first.child.wait_for("ready", READY_LIMIT)?;
        let mut second = self.start("idle", 0, &["id=0".into(), self.started()])?;
        let commands = vec![self.command(&second), self.command(&first)];
        let matched = second.child.wait_for("matched", RUN_LIMIT)?;
        let result = second.child.wait_for("result", self.stream_limit())?;
        second.child.stop()?;
        first.child.stop()?;
        let wall = number(&result, "wall_s").max(1e-9);
        let mut figures = BTreeMap::from([
            ("match_ms".to_owned(), number(&matched, "match_ms")),
            ("init_ms".to_owned(), number(&matched, "init_ms") - number(&matched, "main_ms")),
            ("idle_cpu_percent".to_owned(), 100.0 * number(&result, "cpu_s") / wall),
            ("idle_switches_hz".to_owned(), number(&result, "nvcsw") / wall),
        ]);
        for key in ["resident_kib", "private_kib"] {
            figures.extend(result[key].as_f64().map(|value| (key.to_owned(), value)));
        }
        if let (Some(bare), Some(resident)) = (result["bare_kib"].as_f64(), result["resident_kib"].as_f64()) {
            figures.insert("participant_kib".into(), resident - bare);
        }
        Ok(self.report(figures, commands))
    }
}
