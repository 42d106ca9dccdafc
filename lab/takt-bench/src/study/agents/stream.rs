//! Jobs of kinds `stream`, `open-loop` and `both-ways`, with the roles `pub`, `load` and `sub`.

use super::{CellResult, Measurement, READY_LIMIT, RUN_LIMIT, Report, number, whole};
use crate::error::Result;
use crate::study::cell::{Latency, Measured};
use serde_json::Value as Line;
use std::collections::BTreeMap;

impl Measurement<'_> {
    pub(super) fn stream(&self) -> Result<Report> {
        self.one_way("pub", &mut || Ok(()))
    }

    /// Measures a stream whose samples carry the times that they are planned for.
    pub(super) fn open_loop(&self) -> Result<Report> {
        self.one_way("load", &mut || Ok(()))
    }

    /// Runs a writer in a role, and its readers. `meanwhile` runs when the writer of an open loop
    /// has matched them.
    pub(super) fn one_way(&self, role: &'static str, meanwhile: &mut dyn FnMut() -> Result<()>) -> Result<Report> {
        self.one_way_as([role, "sub"], &[], meanwhile).map(|(report, ..)| report)
    }

    /// Like [`one_way`](Self::one_way), with a role of the readers and further arguments for all.
    /// Also returns the results of writer and readers.
    pub(super) fn one_way_as(
        &self,
        [role, reader]: [&'static str; 2],
        of_all: &[String],
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(Report, Line, Vec<Line>)> {
        let readers = self.number("readers", 1).max(1);
        let out = self.out_file(1);
        let mut subscribers = Vec::new();
        for id in 0..readers {
            // Without a rate, latencies only show the length of the queues, and recording them has
            // a cost.
            let has_times = id == 0 && self.number("rate", 0) > 0 && self.launcher.has_one_clock;
            let further = if has_times { vec![out.argument()] } else { Vec::new() };
            let further = [of_all, &further, &[format!("id={id}")]].concat();
            let mut process = self.start(reader, 1, &further)?;
            process.child.wait_for("ready", READY_LIMIT)?;
            subscribers.push(process);
        }
        let mut publisher = self.start(role, 0, &[of_all, &[format!("n={readers}")]].concat())?;
        let mut commands = vec![self.command(&publisher)];
        commands.extend(subscribers.iter().map(|process| self.command(process)));
        let limit = self.stream_limit();
        if role == "load" {
            publisher.child.wait_for("matched", RUN_LIMIT)?;
            meanwhile()?;
        }
        let written = publisher.child.wait_for("result", limit)?;
        let mut received = Vec::new();
        for process in &mut subscribers {
            received.push(process.child.wait_for("result", limit)?);
        }
        publisher.child.stop()?;
        for process in &mut subscribers {
            process.child.stop()?;
        }
        let times_ns = out.read()?;
        let figures = stream_figures(&written, &received);
        let measured = Measured { figures, latency: Latency::of(times_ns.clone()), ..Measured::default() };
        let found = vec![CellResult { cell: self.job.cells[0].clone(), measured, times_ns }];
        Ok((Report { results: found, commands }, written, received))
    }

    /// Measures a stream in each direction, in domains of their own.
    pub(super) fn both_ways(&self) -> Result<Report> {
        let other = format!("domain={}", self.launcher.domain + 1);
        let limit = self.stream_limit();
        let (mut readers, mut commands) = (Vec::new(), Vec::new());
        for (side, further) in [(1, Vec::new()), (0, vec![other.clone()])] {
            let mut process = self.start("sub", side, &further)?;
            process.child.wait_for("ready", READY_LIMIT)?;
            readers.push(process);
        }
        let mut writers = [self.start("pub", 0, &[])?, self.start("pub", 1, &[other])?];
        commands.extend(writers.iter().chain(&readers).map(|process| self.command(process)));
        let mut figures: BTreeMap<String, f64> = BTreeMap::new();
        for (writer, reader) in writers.iter_mut().zip(&mut readers) {
            let written = writer.child.wait_for("result", limit)?;
            let received = reader.child.wait_for("result", limit)?;
            for (name, value) in stream_figures(&written, &[received]) {
                *figures.entry(name).or_default() += value;
            }
        }
        for process in writers.iter_mut().chain(&mut readers) {
            process.child.stop()?;
        }
        let megabytes = figures.get("megabytes_per_second").copied().unwrap_or(0.0);
        figures.insert("megabits_per_second".into(), megabytes * 8.0);
        figures.remove("delivered_percent");
        Ok(self.report(figures, commands))
    }
}

pub(super) fn stream_figures(written: &Line, received: &[Line]) -> BTreeMap<String, f64> {
    let rate = |line: &Line, key: &str| {
        let seconds = number(line, "wall_s");
        if seconds > 0.0 { number(line, key) / seconds } else { 0.0 }
    };
    let slowest = |key: &str| received.iter().map(|line| rate(line, key)).fold(f64::INFINITY, f64::min);
    let worst = |line: &Line| whole(line, "span").saturating_sub(whole(line, "n"));
    let delivered = |line: &Line| 100.0 * whole(line, "n") as f64 / whole(line, "span").max(1) as f64;
    let per_sample = |line: &Line| number(line, "cpu_s") * 1e6 / whole(line, "n").max(1) as f64;
    let share = |line: &Line| 100.0 * number(line, "cpu_s") / number(line, "wall_s").max(1e-9);
    let mean = |of: &dyn Fn(&Line) -> f64| received.iter().map(of).sum::<f64>() / received.len().max(1) as f64;
    let figures = [
        ("written_hz", rate(written, "n")),
        ("received_hz", slowest("n")),
        ("megabytes_per_second", slowest("bytes") * 1e-6),
        ("lost", received.iter().map(worst).max().unwrap_or(0) as f64),
        ("delivered_percent", received.iter().map(delivered).fold(100.0, f64::min)),
        ("writer_cpu_us", per_sample(written)),
        ("reader_cpu_us", mean(&per_sample)),
        ("writer_cpu_percent", share(written)),
        ("reader_cpu_percent", mean(&share)),
    ];
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}
