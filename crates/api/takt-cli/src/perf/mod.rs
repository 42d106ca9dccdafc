//! `takt perf`: measurements of latency and throughput.

mod compare;
mod duo;
mod options;
mod run;
mod transports;
mod transports_columns;
#[cfg(feature = "dpdk")]
mod transports_dpdk;
mod transports_table;

use clap::{Args, Subcommand};
use takt_bench::{Result, agent};

const EXAMPLES: &str = "\
Examples:
  takt perf pong                                   answers pings, in one terminal
  takt perf ping --size 64 --samples 10000         measures round trips, in another terminal
  takt perf ping --spin --cpu 1 --fifo 80 --json   spins on core 1 with SCHED_FIFO, prints JSON
  takt perf ping --rate 1000                       one ping every millisecond
  takt perf sub                                    receives a stream, reports at its end
  takt perf pub --size 1024 --max                  sends a stream at maximum rate
  takt perf compare --size 64 --spin               compares with plain UDP, in interleaved rounds
  takt perf compare --block --peers DIR            compares also with other DDS: agents in DIR
  takt perf transports                             compares AF_XDP with sockets, between two namespaces
  takt perf topics --topics 1,1000                 measures the cost of a thousand topics
  takt perf within --size 1048576                  1 MiB within a process, serialized and unserialized

  takt perf pub --interface eth0 --answer-clock 0.0.0.0:7399     on one host; on another:
  takt perf sub --interface eth0 --clock 10.0.0.1:7399           one-way latency between them, with an uncertainty

Without --clock both sides have to run on one host, since latencies need one clock.";

/// `takt perf`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Perf {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Measure round trips to a `takt perf pong`
    Ping(options::Run),
    /// Answer pings until interrupted, or --samples times
    Pong(options::Run),
    /// Send a stream to `takt perf sub`
    Pub(options::Run),
    /// Receive a stream until its end or --samples samples; report loss and latency
    Sub(options::Run),
    /// Compare round trips with plain UDP and other middleware, in interleaved rounds
    Compare(compare::Compare),
    /// Compare transports between two network namespaces (root)
    Transports(transports::Transports),
    /// Measure the cost of many topics, between two participants of this process
    Topics(duo::Topics),
    /// Measure the cost of samples within a process, serialized and unserialized
    Within(duo::Within),
    /// Run one workload for a benchmark driver: one JSON object per line, until SIGTERM
    Agent(AgentArguments),
}

/// `takt perf agent`
#[derive(Args)]
struct AgentArguments {
    /// info, ping, pong, pub, sub, idle or disc
    #[arg(default_value = "info")]
    role: String,
    /// KEY=VALUE; unknown keys are ignored
    arguments: Vec<String>,
}

impl Perf {
    /// Reports whether a benchmark driver runs the command.
    pub fn is_agent(&self) -> bool {
        matches!(self.workload, Workload::Agent(_))
    }

    /// Runs the measurement.
    ///
    /// # Errors
    /// The measurement failed; the error names the cause.
    pub fn run(&self) -> Result<()> {
        match &self.workload {
            Workload::Ping(options) => run::ping(options),
            Workload::Pong(options) => run::pong(options),
            Workload::Pub(options) => run::publish(options),
            Workload::Sub(options) => run::subscribe(options),
            Workload::Compare(compare) => compare.run(),
            Workload::Transports(transports) => transports.run(),
            Workload::Topics(topics) => topics.run(),
            Workload::Within(within) => within.run(),
            Workload::Agent(agent) => agent::run(&agent.role, &agent.arguments, &mut std::io::stdout().lock()),
        }
    }
}
