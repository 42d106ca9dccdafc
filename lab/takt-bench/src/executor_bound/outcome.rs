//! Outcome of the executor-bound experiment, as text and as JSON.

use super::Plan;
use super::model::{Declared, LOCK, SLOW_CALLBACK, to_toml};
use super::phase::{Class, Late, Observed};
use crate::error::{Error, Result};
use crate::report::{Host, to_json};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use takt_calculus::Certificate;

/// Share of the planned load that must arrive; the report names load below it.
const FULL: f64 = 0.95;
/// Maximum number of late samples in the text; the JSON has more.
const LATE_SHOWN: usize = 10;

/// Complete results, with all data needed to check them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Command line of the experiment.
    pub command: String,
    /// Host on which it ran.
    pub host: Host,
    /// Load average of the machine at the beginning and at the end, from /proc/loadavg.
    pub load_average: [String; 2],
    /// Unavailable features of the machine, and the reasons.
    pub missing: Vec<String>,
    /// Settings of the experiment.
    pub plan: Plan,
    /// Upper bound of the response time of a critical sample, if no duration exceeds its declared
    /// maximum.
    pub bound_ns: u64,
    /// Assumptions of the bound.
    pub declared: Declared,
    /// System and bound, with the proof.
    pub certificate: Certificate,
    /// Results of the phase with the critical topic alone.
    pub alone: Observed,
    /// Results of the calibration with all load.
    pub calibration: Observed,
    /// Results of the measurement with all load, compared with the bound.
    pub measurement: Observed,
}

/// Conclusions from the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether no sample was above the bound.
    pub is_kept: bool,
    /// Longest response divided by the bound.
    pub tightness: f64,
    /// Number of critical samples that never arrived.
    pub lost: u64,
    /// Number of listed late samples whose excess is at most the time that the kernel's counters
    /// explain.
    pub late_by_kernel: u64,
    /// Durations above their declared maximum; if there are any, the bound does not apply.
    pub exceeded: Vec<String>,
    /// Load that did not arrive.
    pub short: Vec<String>,
}

impl Outcome {
    /// Returns the conclusions from the measurement.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let seen = &self.measurement;
        let by_kernel = |late: &&Late| late.by_kernel_ns() >= late.response_ns.saturating_sub(self.bound_ns);
        Verdict {
            is_kept: seen.late == 0,
            tightness: seen.response_max_ns as f64 / self.bound_ns as f64,
            lost: seen.sent.saturating_sub(seen.received),
            late_by_kernel: seen.late_samples.iter().filter(by_kernel).count() as u64,
            exceeded: self.exceeded(),
            short: self.short(),
        }
    }

    fn exceeded(&self) -> Vec<String> {
        let seen = &self.measurement;
        let times = |name: String, took_ns: u64, declared_ns: Option<u64>| {
            let declared = declared_ns.map_or("nothing".to_owned(), microseconds);
            (took_ns > declared_ns.unwrap_or(0)).then(|| format!("{name} took {} of {declared}", microseconds(took_ns)))
        };
        let write = times("write".into(), seen.write_max_ns, Some(self.declared.write_ns));
        // Callbacks of another executor do not delay this one.
        let delays_executor =
            |class: &&Class| !self.plan.separate_executor || (class.kind, class.priority) != SLOW_CALLBACK;
        let is_job = |class: &&Class| !class.kind.starts_with(LOCK);
        let classes = seen.classes.iter().filter(delays_executor).filter(is_job).filter_map(|class| {
            let name = format!("{} {}", class.kind, class.priority);
            times(name, class.max_ns, self.declared_ns(class.kind, class.priority))
        });
        write.into_iter().chain(classes).collect()
    }

    fn declared_ns(&self, kind: &str, priority: i32) -> Option<u64> {
        let class = self.declared.classes.iter().find(|class| class.kind == kind && class.priority == priority);
        class.map(|class| class.time_ns)
    }

    fn short(&self) -> Vec<String> {
        let (seen, load) = (&self.measurement, &self.plan.load);
        let wanted = |rate: u32| f64::from(rate) * seen.seconds;
        let callbacks = if load.callback_us > 0 { wanted(load.callback_hz) } else { 0.0 };
        // Of three participants, one is admitted, one is refused, and one fails authentication.
        let third = if self.plan.secured { load.participants / 3 } else { 0 };
        let each = [
            ("background samples", seen.background_received as f64, wanted(load.samples_hz)),
            ("slow callbacks", seen.slow_callbacks as f64, callbacks),
            ("participants", seen.discovered as f64, load.participants as f64),
            ("permitted participants", seen.authenticated as f64, third as f64),
            ("refused participants", seen.refused as f64, third as f64),
        ];
        let short = each.into_iter().filter(|(_, arrived, wanted)| *arrived < FULL * wanted);
        short.map(|(what, arrived, wanted)| format!("{arrived:.0} of {wanted:.0} {what} arrived")).collect()
    }

    /// Returns the outcome and the verdict as JSON.
    ///
    /// # Errors
    /// Never in practice: all fields have a form in JSON.
    pub fn to_json(&self) -> Result<String> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            outcome: &'a Outcome,
            verdict: Verdict,
        }
        to_json(&Whole { outcome: self, verdict: self.verdict() })
    }

    /// Creates a directory and writes `system.toml` and `certificate.json`, as `takt analyze` reads
    /// them, and `report.json`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_to(&self, directory: &Path) -> Result<()> {
        let failure = |path: &Path| {
            let op = path.display().to_string();
            move |source| Error::Os { op, source }
        };
        std::fs::create_dir_all(directory).map_err(failure(directory))?;
        let certificate = to_json(&self.certificate)?;
        let files = [
            ("system.toml", to_toml(&self.certificate.system)),
            ("certificate.json", certificate),
            ("report.json", self.to_json()?),
        ];
        for (name, text) in files {
            let path = directory.join(name);
            std::fs::write(&path, text).map_err(failure(&path))?;
        }
        Ok(())
    }

    /// Formats the outcome as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (seen, verdict, mut text) = (&self.measurement, self.verdict(), String::new());
        let mut line = |what: String| writeln!(text, "{what}").expect("writing to a String cannot fail");
        line(format!("load average before {}, after {}", self.load_average[0], self.load_average[1]));
        self.missing.iter().for_each(|what| line(format!("not available: {what}")));
        line(format!(
            "bound     {} us = write {}, kernel and wake-up {}, executor {}; certified",
            microseconds(self.bound_ns),
            microseconds(self.declared.write_ns),
            microseconds(self.declared.delay_ns),
            microseconds(self.bound_ns.saturating_sub(self.declared.write_ns + self.declared.delay_ns)),
        ));
        let response = &seen.response_us;
        line(format!(
            "response  min {} us, median {}, p99.9 {}, max {}; worst/bound {:.3}",
            response.min,
            response.p50,
            response.p999,
            microseconds(seen.response_max_ns),
            verdict.tightness,
        ));
        for (what, phase) in [("alone", &self.alone), ("calibrated", &self.calibration)] {
            let (median, max) = (phase.response_us.p50, microseconds(phase.response_max_ns));
            let waited = microseconds(phase.waited_ns);
            line(format!("          {what}: median {median}, max {max}; runnable but not running for {waited}"));
        }
        line(format!(
            "critical  {} sent in {:.1} s, {} lost, {} late",
            seen.sent, seen.seconds, verdict.lost, seen.late
        ));
        self.late(&verdict).into_iter().for_each(&mut line);
        let per_second = |count: u64| count as f64 / seen.seconds;
        line(format!(
            "load      {:.0} background samples/s of {:.0} written, {} slow callbacks of {}, {} participants discovered{}",
            per_second(seen.background_received),
            per_second(seen.background_written),
            seen.slow_callbacks,
            seen.slow_written,
            seen.discovered,
            match self.plan.secured {
                true => format!(", {} authenticated, {} refused", seen.authenticated, seen.refused),
                false => String::new(),
            },
        ));
        verdict.short.iter().for_each(|what| line(format!("short     {what}")));
        line(format!(
            "executor  busy {:.0} %; runnable but not running for {} us, interrupted {} times; its core was stolen for {} ms",
            100.0 * seen.ran_ns as f64 * 1e-9 / seen.seconds,
            microseconds(seen.waited_ns),
            seen.interrupted,
            seen.stolen_ns / 1_000_000,
        ));
        line(self.jobs());
        verdict.exceeded.iter().for_each(|what| line(format!("longer than declared: {what} us")));
        line(if verdict.is_kept { "the bound is kept".into() } else { "the bound is NOT kept".into() });
        text
    }

    /// Returns the lines on late samples, with the kernel's counters for each.
    fn late(&self, verdict: &Verdict) -> Vec<String> {
        let seen = &self.measurement;
        let mut lines = Vec::new();
        if seen.late > 0 {
            let listed = seen.late_samples.len();
            lines.push(format!(
                "late      {} of the first {listed} are explained by the kernel's counters",
                verdict.late_by_kernel
            ));
        }
        for late in seen.late_samples.iter().take(LATE_SHOWN) {
            let excess_ns = late.response_ns.saturating_sub(self.bound_ns);
            let state = if late.by_kernel_ns() >= excess_ns { "explained" } else { "NOT explained" };
            lines.push(format!(
                "late      {} us, at {:.3} s, {} above the bound, {state}; meanwhile runnable but not running for {}",
                microseconds(late.response_ns),
                late.at_ns as f64 * 1e-9,
                microseconds(excess_ns),
                microseconds(late.waited_ns),
            ));
            for (whose, core) in ["writer", "executor"].into_iter().zip(&late.cores) {
                lines.push(format!(
                    "          core of the {whose}: stolen for {} us, in interrupts for {}, {} interrupts, {} soft interrupts",
                    microseconds(core.stolen_ns),
                    microseconds(core.interrupts_ns),
                    core.interrupts,
                    core.soft_interrupts,
                ));
            }
        }
        lines
    }

    /// Returns the table of job classes: measured and declared durations, and the longest `write`.
    fn jobs(&self) -> String {
        let heads = ["median", "p99.9", "max", "declared"].map(|head| format!(" {head:>12}")).concat();
        let mut text = format!("{:<12} {:>8} {:>10}{heads}\n", "jobs, us", "priority", "count");
        for class in &self.measurement.classes {
            let declared = self.declared_ns(class.kind, class.priority).map_or("-".to_owned(), microseconds);
            let times = [class.median_ns, class.p999_ns, class.max_ns].map(|ns| format!(" {:>12}", microseconds(ns)));
            let (kind, priority, count, times) = (class.kind, class.priority, class.count, times.concat());
            writeln!(text, "{kind:<12} {priority:>8} {count:>10}{times} {declared:>12}").expect("infallible");
        }
        let [longest, declared] = [self.measurement.write_max_ns, self.declared.write_ns].map(microseconds);
        text + &format!("{:<58}{longest:>12} {declared:>12}", "write")
    }
}

fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
