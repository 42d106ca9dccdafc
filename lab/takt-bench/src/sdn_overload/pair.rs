//! One writer and its readers: processes on hosts of the lab network, controlled line by line
//! through their standard input and output.
//!
//! The processes run Takt ([`side`](super::side)), or another product in a program of
//! `lab/interop/peers`.

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

/// Maximum time from the start of a process until it is ready.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Time without a sample after which missing best-effort samples count as lost. It is longer than a
/// frame waits in a full queue of the link.
const QUIET_BEST_EFFORT: Duration = Duration::from_millis(1500);
/// The same for reliable samples. A writer of Fast DDS sends heartbeats every 3 s.
const QUIET_RELIABLE: Duration = Duration::from_secs(5);
/// Interval between two checks for arrivals.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// SCHED_FIFO priority of the pair, below that of the switch.
const FIFO: u8 = 20;
/// Maximum length of a datagram of the other products, in octets, so that IP fragments none: flow
/// entries that match ports do not match fragments.
const MAX_MESSAGE: usize = 1400;

/// Program that runs the roles of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    column: Column,
    is_peer: bool,
}

impl Program {
    /// Describes Takt. The command line is `program`, `words`, the role, and the plan as JSON.
    #[must_use]
    pub fn takt(program: PathBuf, words: &[&str]) -> Self {
        let prefix = words.iter().map(ToString::to_string).collect();
        Self { column: Column { name: "takt".into(), program, prefix, ..Column::default() }, is_peer: false }
    }

    /// Describes a program of `lab/interop/peers`. `name` is that in the tables.
    #[must_use]
    pub fn peer(name: &str, program: PathBuf) -> Self {
        Self { column: Column { name: name.into(), program, ..Column::default() }, is_peer: true }
    }

    /// Returns the name in the tables.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.column.name
    }

    /// Starts the program in a role on a host, and waits until it is ready.
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

/// Running pair. Dropping it ends the processes.
pub struct Pair<'a> {
    program: &'a Program,
    plan: SidePlan,
    publisher: Child<'a>,
    /// One process for each reader.
    subscribers: Vec<Child<'a>>,
    /// Samples so far, by reader.
    arrivals: Vec<Vec<Arrival>>,
    /// The writer has written all samples.
    is_written: bool,
}

/// Returns the words for topic and QoS of an endpoint. Without a depth, the history is KEEP_ALL.
fn qos(plan: &SidePlan, depth: Option<u32>) -> String {
    let reliability = if plan.category.is_reliable() { "reliable" } else { "best_effort" };
    let history = depth.map_or("all".to_owned(), |depth| depth.to_string());
    let block_ms = BLOCKING_LIMIT.as_millis();
    let topic = &plan.topic;
    format!("topic={topic} type=unkeyed reliability={reliability} history={history} order=source block_ms={block_ms}")
}

/// Reports whether a line states that at least `count` endpoints are matched.
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

    /// Returns the samples that each reader has received so far, in the order of arrival.
    ///
    /// # Errors
    /// The process of the writer reports an error.
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
        let quiet = if self.plan.category.is_reliable() { QUIET_RELIABLE } else { QUIET_BEST_EFFORT };
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
                let what = format!("{}: the writer has not written all samples within {limit:?}", self.program.name());
                return Err(Error::NoAnswer { what });
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        for child in self.subscribers.iter_mut().chain([&mut self.publisher]) {
            child.stop()?;
        }
        let SidePlan { count, period_ns, .. } = self.plan;
        let series: Vec<_> = self.arrivals.iter().map(|arrivals| Series::new(count, period_ns, arrivals)).collect();
        match series.iter().position(|series| series.arrivals.is_empty()) {
            Some(reader) => {
                let what = format!("{}: no sample arrived at {}", self.program.name(), SUBSCRIBERS[reader]);
                Err(Error::NoAnswer { what })
            }
            None => Ok(series),
        }
    }
}
