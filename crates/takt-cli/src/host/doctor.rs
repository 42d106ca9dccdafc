//! `takt doctor`: what is in the way of real-time traffic, and the command that mends it.

use crate::output::outln;
use std::path::PathBuf;

use clap::Args;
use takt_bench::Result;
use takt_host::clock::Source;
use takt_host::{ClockQuality, Facts, Machine};

use super::{WishArgs, mend, print_json};

/// `takt doctor`
#[derive(Args, Clone, Debug)]
pub struct Doctor {
    #[command(flatten)]
    wish: WishArgs,
    /// Files below this directory in place of the machine's
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    root: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Something that is in the way.
#[derive(serde::Serialize)]
struct Finding {
    what: String,
    why: String,
    /// What mends it, or what can be done instead.
    mend: String,
    /// It is a line for a shell.
    is_command: bool,
}

/// A clock that can be off by more tells nothing of latencies within a network.
const CLOCK_OFF_MAX_NS: u64 = 1_000_000;

/// What of the clock is in the way.
fn of_clock(clock: &ClockQuality, facts: &Facts, interface: Option<&str>) -> Option<Finding> {
    let own = interface.and_then(|name| facts.interface(name)).filter(|facts| facts.clock.is_some());
    let (mend, is_command) = match own {
        Some(facts) => (format!("ptp4l -i {0} -m & phc2sys -s {0} -w -m &", facts.name), true),
        None => ("apt-get install chrony".to_owned(), true),
    };
    let why =
        "times of samples from other hosts are not comparable; one-way latencies need echoes: takt perf sub --clock";
    let what = match clock.offset_uncertainty_ns {
        None => "the clock is synchronised with no other".to_owned(),
        Some(ns) if ns > CLOCK_OFF_MAX_NS => format!("the clock can be off by {:.1} ms", ns as f64 / 1e6),
        Some(_) => return None,
    };
    if clock.source == Source::Chrony && own.is_none() {
        let mend = "a nearer server in chrony.conf, or PTP by an interface with a clock of its own".to_owned();
        return Some(Finding { what, why: why.to_owned(), mend, is_command: false });
    }
    Some(Finding { what, why: why.to_owned(), mend, is_command })
}

impl Doctor {
    pub fn run(&self) -> Result<()> {
        let machine = self.root.as_ref().map_or_else(Machine::default, Machine::below);
        let facts = Facts::of(&machine);
        let plan = self.wish.plan(&machine, &facts)?;
        let changes = plan.changes.iter().map(|change| Finding {
            what: format!("{} is {:?}", change.knob, change.from),
            why: change.why.clone(),
            mend: mend::command(&change.knob, &change.to),
            is_command: true,
        });
        let lacks = plan.lacks.iter().map(|lack| Finding {
            what: lack.what.clone(),
            why: lack.why.clone(),
            mend: lack.instead.clone(),
            is_command: false,
        });
        let clock = of_clock(&ClockQuality::now(), &facts, self.wish.interface.as_deref());
        let findings: Vec<_> = changes.chain(lacks).chain(clock).collect();
        if self.json {
            return print_json(&findings);
        }
        for Finding { what, why, mend, is_command } in &findings {
            let sign = if *is_command { "$" } else { "->" };
            outln!("{what}\n    {why}\n    {sign} {mend}")?;
        }
        match findings.len() {
            0 => outln!("nothing is in the way")?,
            count => outln!("{count} findings; takt host plan and apply mend what can be set")?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_in_the_way_unless_it_is_known_well() {
        let facts = Facts::of(&Machine::default());
        let of = |source, offset_uncertainty_ns| {
            of_clock(&ClockQuality { source, offset_uncertainty_ns, cards: Vec::new() }, &facts, None)
        };
        assert!(of(Source::Kernel, Some(CLOCK_OFF_MAX_NS)).is_none());
        let finding = of(Source::Nobody, None).expect("it is in the way");
        assert_eq!((finding.mend.as_str(), finding.is_command), ("apt-get install chrony", true));
        let finding = of(Source::Chrony, Some(2_500_000)).expect("it is in the way");
        assert_eq!((finding.what.as_str(), finding.is_command), ("the clock can be off by 2.5 ms", false));
    }
}
