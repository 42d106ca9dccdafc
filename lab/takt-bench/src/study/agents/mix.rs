//! Job of kind `mix`: all flows of a machine at once, each with the roles `load` and `sub`.

use super::out_file::OutFile;
use super::stream::stream_figures;
use super::{CellResult, Measurement, Process, READY_LIMIT, RUN_LIMIT, Report};
use crate::error::Result;
use crate::study::cell::{Latency, Measured};
use crate::study::file::Flow;
use crate::study::parameter::{self, Values};
use std::collections::BTreeMap;

/// Processes of a flow.
struct Pair<'a> {
    flow: &'a Flow,
    writer: Process<'a>,
    reader: Process<'a>,
    out: OutFile<'a>,
}

impl Measurement<'_> {
    pub(super) fn mix(&self) -> Result<Report> {
        let flows = self.workload.flows_of(&self.job.cells[0].values);
        let mut readers = Vec::new();
        for (number, flow) in (0_u32..).zip(flows) {
            let out = self.numbered_out_file(1, number);
            let times = self.launcher.has_one_clock.then(|| out.argument());
            let mut reader = self.start("sub", 1, &self.of_flow(flow, number, times)?)?;
            reader.child.wait_for("ready", READY_LIMIT)?;
            readers.push((flow, reader, out));
        }
        let mut pairs = Vec::new();
        for (number, (flow, reader, out)) in (0_u32..).zip(readers) {
            let writer = self.start("load", 0, &self.of_flow(flow, number, Some("n=1".into()))?)?;
            pairs.push(Pair { flow, writer, reader, out });
        }
        let commands = pairs.iter().flat_map(|pair| [&pair.writer, &pair.reader]);
        let commands = commands.map(|process| self.command(process)).collect();
        for pair in &mut pairs {
            pair.writer.child.wait_for("matched", RUN_LIMIT)?;
        }
        let limit = self.stream_limit();
        let mut measured = BTreeMap::new();
        for pair in &mut pairs {
            let written = pair.writer.child.wait_for("result", limit)?;
            let received = pair.reader.child.wait_for("result", limit)?;
            let times_ns = pair.out.read()?;
            let figures = stream_figures(&written, &[received]);
            let latency = Latency::of(times_ns.clone());
            measured.insert(pair.flow.flow.as_str(), (Measured { figures, latency, ..Measured::default() }, times_ns));
        }
        for pair in &mut pairs {
            pair.writer.child.stop()?;
            pair.reader.child.stop()?;
        }
        let found = self.job.cells.iter().filter_map(|cell| {
            let (measured, times_ns) = measured.remove(cell.values.get("flow")?.to_string().as_str())?;
            Some(CellResult { cell: cell.clone(), measured, times_ns })
        });
        Ok(Report { results: found.collect(), commands })
    }

    /// Returns the arguments of a flow. All agents have the same topic, so each flow has a domain
    /// of its own.
    fn of_flow(&self, flow: &Flow, number: u32, further: Option<String>) -> Result<Vec<String>> {
        let mut values = Values::new();
        flow.add_to(&mut values);
        let mut arguments = parameter::arguments(&values)?;
        arguments.push(format!("domain={}", self.launcher.domain + number));
        arguments.extend(further);
        Ok(arguments)
    }
}
