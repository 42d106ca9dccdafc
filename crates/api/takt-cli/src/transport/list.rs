//! `takt transport ls`: lists the transports of this build.

use crate::output::outln;
use clap::Args;
use serde::Serialize;
use takt_bench::Result;
use takt_bench::report::to_json;
use takt_transport::choice::{Description, KNOWN_NAMES, factories};

/// `takt transport ls`
#[derive(Args)]
pub struct List {
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    transports: Vec<Row>,
    /// Known transport names that are not part of this build.
    absent: Vec<&'static str>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    form: &'static str,
    summary: &'static str,
    needs: &'static str,
}

impl List {
    /// Prints the list.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn run(&self) -> Result<()> {
        let factories = factories();
        let row = |name: &'static str| {
            let factory = factories.iter().find(|factory| factory.name() == name)?;
            let Description { summary, needs, form, .. } = factory.description();
            Some(Row { name, form, summary, needs })
        };
        let absent = KNOWN_NAMES.into_iter().filter(|name| row(name).is_none()).collect();
        let report = Report { transports: KNOWN_NAMES.into_iter().filter_map(row).collect(), absent };
        if self.json {
            outln!("{}", to_json(&report)?)?;
            return Ok(());
        }
        for Row { form, summary, needs, .. } in &report.transports {
            outln!("{form}\n    {summary}\n    requires: {needs}")?;
        }
        if !report.absent.is_empty() {
            outln!("not in this build: {}", report.absent.join(", "))?;
        }
        Ok(())
    }
}
