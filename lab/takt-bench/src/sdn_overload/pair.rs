//! Pair of a writer and its readers: processes on hosts of the network.
//!
//! The processes are those of Takt ([`side`](super::side)), or programs of other products that use
//! the line protocol of `lab/interop/peers`.

use super::series::{Arrival, Series};
use super::side::{BLOCKING_LIMIT, MATCH_LIMIT, SidePlan};
use super::site::{PUBLISHER, SUBSCRIBERS, Site};
use crate::campaign::Column;
use crate::campaign::child::{Child, Placement};
use crate::error::{Error, Result};
use crate::signal::stopped;
use serde_json::Value;
use std::ffi::CString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum time for a process to start.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Time without a sample after which the missing ones count as lost, for best effort and for
/// reliable. A best-effort sample waits at most in a queue of the link; a reliable writer of Fast
/// DDS repeats after 3 s.
const QUIET: [Duration; 2] = [Duration::from_millis(1500), Duration::from_secs(5)];
/// Interval between two checks for arrivals.
const STEP: Duration = Duration::from_millis(20);
/// SCHED_FIFO priority of the pair, below that of the switch.
const FIFO: u8 = 20;
/// Maximum datagram size, so that none is fragmented: rules by ports do not match IP fragments.
const MAX_MESSAGE: usize = 1400;

/// Program that runs the roles of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    column: Column,
    is_peer: bool,
}

impl Program {
    /// Describes Takt: `program`, followed by `words`, a role and a plan, runs that role.
    #[must_use]
    pub fn takt(program: PathBuf, words: &[&str]) -> Self {
        let prefix = words.iter().map(ToString::to_string).collect();
        Self { column: Column { name: "takt".into(), program, prefix, ..Column::default() }, is_peer: false }
    }

    /// Describes a program of `lab/interop/peers`.
    #[must_use]
    pub fn peer(name: &str, program: PathBuf) -> Self {
        Self { column: Column { name: name.into(), program, ..Column::default() }, is_peer: true }
    }

    /// Returns the name in the tables.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.column.name
    }

    fn start(&self, role: &'static str, site: &Site, host: &str, plan: &SidePlan) -> Result<Child<'_>> {
        let arguments = if self.is_peer {
            // INTEROP(Fast DDS 3.2.3): given the address of the only interface, participants do not
            // find each other, so it is omitted.
            let text = format!("domain={} interface=eth0 max_message={MAX_MESSAGE} ports=own", plan.domain);
            text.split(' ').map(str::to_owned).collect()
        } else {
            vec![serde_json::to_string(plan).map_err(|why| Error::os("JSON", why.into()))?]
        };
        let namespace = CString::new(site.namespace(host)).map_err(|why| Error::Usage(why.to_string()))?;
        let placement = Placement { fifo: Some(FIFO), namespace: Some(namespace), ..Placement::default() };
        let mut child = Child::start(&self.column, role, &arguments, placement)?;
        child.wait_for("ready", READY_LIMIT)?;
        Ok(child)
    }
}

/// Running pair; dropping it ends the processes.
pub struct Pair<'a> {
    program: &'a Program,
    plan: SidePlan,
    publisher: Child<'a>,
    subscribers: Vec<Child<'a>>,
    arrivals: Vec<Vec<Arrival>>,
    is_written: bool,
}

fn qos(plan: &SidePlan, depth: Option<u32>) -> String {
    let reliability = if plan.category.is_reliable() { "reliable" } else { "best_effort" };
    let history = depth.map_or("all".to_owned(), |depth| depth.to_string());
    let block_ms = BLOCKING_LIMIT.as_millis();
    let topic = &plan.topic;
    format!("topic={topic} type=unkeyed reliability={reliability} history={history} order=source block_ms={block_ms}")
}

fn matched(line: &Value, count: usize) -> bool {
    line["ev"] == "matched" && line["current"].as_u64().is_some_and(|current| current >= count as u64)
}

impl<'a> Pair<'a> {
    /// Starts the processes: first the readers, then the writer.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn start(program: &'a Program, site: &Site, plan: SidePlan) -> Result<Self> {
        let mut subscribers = Vec::new();
        for host in &SUBSCRIBERS[..plan.readers] {
            let mut subscriber = program.start("overload-subscribe", site, host, &plan)?;
            if program.is_peer {
                subscriber.write_line(&format!("reader id=reader {}", qos(&plan, None)))?;
            }
            subscribers.push(subscriber);
        }
        let mut publisher = program.start("overload-publish", site, PUBLISHER, &plan)?;
        if program.is_peer {
            let depth = plan.category.depth();
            publisher.write_line(&format!("writer id=writer {}", qos(&plan, depth)))?;
        }
        let arrivals = vec![Vec::new(); plan.readers];
        Ok(Self { program, plan, publisher, subscribers, arrivals, is_written: false })
    }

    /// Waits until writer and readers match.
    ///
    /// # Errors
    /// They do not match in time, or a process failed.
    pub fn wait_until_matched(&mut self) -> Result<()> {
        let readers = self.plan.readers;
        self.publisher.wait_until("matched", MATCH_LIMIT, |line| matched(line, readers))?;
        for subscriber in &mut self.subscribers {
            subscriber.wait_until("matched", MATCH_LIMIT, |line| matched(line, 1))?;
        }
        Ok(())
    }

    /// Starts the writing of samples.
    ///
    /// # Errors
    /// The process of the writer has ended.
    pub fn begin(&mut self) -> Result<()> {
        let SidePlan { count, size, period_ns, .. } = self.plan;
        let period_us = period_ns / 1000;
        self.publisher.write_line(&format!("write id=writer first=0 count={count} size={size} period_us={period_us}"))
    }

    /// Returns the samples received by each reader until now, in the order of arrival.
    ///
    /// # Errors
    /// A process failed.
    pub fn arrivals(&mut self) -> Result<&[Vec<Arrival>]> {
        for (subscriber, arrivals) in self.subscribers.iter_mut().zip(&mut self.arrivals) {
            arrivals.extend(subscriber.pending().iter().filter_map(Arrival::parse));
        }
        let written = |line: &Value| line["ev"] == "done" && line["command"] == "write";
        let lines = self.publisher.pending();
        if let Some(why) = lines.iter().find(|line| line["ev"] == "error") {
            return Err(Error::NoAnswer { what: format!("{}: {}", self.program.name(), why["what"]) });
        }
        self.is_written |= lines.iter().any(written);
        Ok(&self.arrivals)
    }

    /// Reports whether the writer had written all samples at the last call of
    /// [`arrivals`](Self::arrivals).
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.is_written
    }

    /// Waits at most `limit` until the writer has written all samples, and then until no more
    /// arrive. Returns one series for each reader.
    ///
    /// # Errors
    /// A process failed, the writer did not finish in time, or no sample arrived.
    pub fn finish(mut self, limit: Duration) -> Result<Vec<Series>> {
        let end = Instant::now() + limit;
        let (mut received, mut last) = (0, Instant::now());
        let quiet = QUIET[usize::from(self.plan.category.is_reliable())];
        loop {
            if stopped() {
                return Err(Error::Stopped);
            }
            let counts = self.arrivals()?.iter().map(Vec::len);
            let (least, sum) = counts.fold((usize::MAX, 0), |(least, sum), len| (least.min(len), sum + len));
            if sum != received {
                (received, last) = (sum, Instant::now());
            }
            let is_quiet = least as u64 >= self.plan.count || last.elapsed() > quiet;
            if self.is_written && is_quiet {
                break;
            }
            if Instant::now() > end {
                let what = format!("{}: the writer is not ready after {limit:?}", self.program.name());
                return Err(Error::NoAnswer { what });
            }
            std::thread::sleep(STEP);
        }
        for child in self.subscribers.iter_mut().chain([&mut self.publisher]) {
            child.stop()?;
        }
        let SidePlan { count, period_ns, .. } = self.plan;
        let series: Vec<_> = self.arrivals.iter().map(|arrivals| Series::new(count, period_ns, arrivals)).collect();
        match series.iter().position(|series| series.arrivals.is_empty()) {
            Some(reader) => Err(Error::NoAnswer { what: format!("no sample arrived at {}", SUBSCRIBERS[reader]) }),
            None => Ok(series),
        }
    }
}
