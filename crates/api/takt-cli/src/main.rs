//! Command line of `takt`: parsing, dispatch and exit codes.
//!
//! Samples and figures go to standard output, as text or with `--json` as one JSON object. Progress
//! and errors go to standard error. Exit codes: [`EXIT_CODES`].

mod analyze;
mod bench;
mod capture;
mod completion;
mod config;
mod daemon;
mod discovery_server;
#[cfg(test)]
mod documents;
mod domain;
mod durability;
mod exit_codes;
mod finding;
mod help;
mod host;
mod lab;
mod ls;
mod network;
mod output;
mod paint;
mod perf;
mod progress;
mod ps;
mod sdn;
#[cfg(feature = "security")]
mod security;
mod topic;
mod transport;

use crate::output::note;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;
use paint::Paint;
use std::io::Write;
use std::process::ExitCode;
use takt_bench::{Error, signal};
use topic::measure::Quantity;

const EXIT_CODES: &str = "\
Exit codes:
  0    done, or standard output was closed
  1    failure of configuration, machine or network, or a limit that is exceeded; doctor: findings other than hints
  2    wrong usage
  3    timeout: no matching endpoint, no sample or no answer
  4    type of a topic not available
  130  stopped by SIGINT
  143  stopped by SIGTERM";

/// Takt, a real-time DDS.
#[derive(Parser)]
#[command(after_help = EXIT_CODES, name = "takt", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the samples of a topic; discovers its type and QoS
    Echo(topic::echo::Echo),
    /// Print the samples of a topic, with QoS policies from options
    Sub(topic::subscribe::Sub),
    /// Write samples to a topic
    Pub(topic::publish::Pub),
    /// Print the type of a topic as IDL or Rust
    Type(topic::show_type::ShowType),
    /// Measure the rate of a topic
    Hz(topic::measure::Measure),
    /// Measure the bandwidth of a topic
    Bw(topic::measure::Measure),
    /// Measure the delay of a topic, from source timestamp to reception
    Delay(topic::measure::Measure),
    /// Capture RTPS traffic in a pcapng file
    Capture(capture::Capture),
    /// Measure latency and throughput, and compare with plain UDP and other DDS
    Perf(perf::Perf),
    /// Run benchmark campaigns and experiments that create their own network
    Bench(bench::Bench),
    /// List participants, topics and endpoints of a domain, and unmatched pairs
    Ls(ls::Ls),
    /// List the processes of a domain
    Ps(ps::Ps),
    /// Run a discovery server for networks without multicast
    DiscoveryServer(discovery_server::DiscoveryServer),
    /// Run the daemon that owns network and discovery for applications of a host
    Daemon(daemon::Daemon),
    /// Run the durability service for TRANSIENT and PERSISTENT samples
    Durability(durability::Durability),
    /// List transports, and probe which ones an interface supports
    Transport(transport::Transport),
    /// Check, show and explain configurations: QoS profiles and settings
    Config(config::Config),
    /// Configure this machine for real-time traffic, and undo it
    Host(host::Host),
    /// Find obstacles to real-time traffic on this machine, with remedies
    Doctor(host::Doctor),
    /// Control the switches of a network by OpenFlow
    Sdn(sdn::Sdn),
    /// Create, check and explain keys, certificates and documents of DDS Security
    #[cfg(feature = "security")]
    Security(security::Security),
    /// Create networks of hosts and OpenFlow switches on this machine
    Lab(lab::LabCommand),
    /// Compute bounds on the end-to-end latency of flows over executors and links
    Analyze(analyze::Analyze),
    /// Print the completion script of a shell
    Completions(help::Completions),
    /// Write manual pages
    Man(help::Man),
}

impl Command {
    /// Reports whether the command ends by a signal by contract, with exit code 0. Benchmark
    /// drivers start such commands.
    fn ends_by_signal(&self) -> bool {
        match self {
            Self::Perf(perf) => perf.is_agent(),
            Self::Bench(bench) => bench.is_side(),
            _ => false,
        }
    }

    /// Reports whether the command only reads, computes or queries. A signal ends it at any point,
    /// since it leaves nothing behind.
    fn is_query(&self) -> bool {
        match self {
            Self::Sdn(sdn) => sdn.is_query(),
            #[cfg(feature = "security")]
            Self::Security(security) => security.is_query(),
            Self::Config(_) | Self::Analyze(_) | Self::Completions(_) | Self::Man(_) => true,
            _ => false,
        }
    }
}

/// Parses the command line.
///
/// # Errors
/// The exit code, if there is no command to run. Help, the version or the error has been written
/// before.
fn parse() -> Result<Cli, ExitCode> {
    let matches = help::grouped(exit_codes::with_exit_codes(Cli::command())).try_get_matches();
    matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        let written = error.print().and_then(|()| std::io::stdout().flush());
        let exit_code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        if error.use_stderr() {
            return exit_code;
        }
        written.map_err(output::failed).map_or_else(|error| end_with(&error), |()| exit_code)
    })
}

fn main() -> ExitCode {
    // A participant that discovers topics for a completion writes no warnings to the line.
    takt::warn_by_default(false);
    let factory = || exit_codes::with_exit_codes(Cli::command());
    CompleteEnv::with_factory(factory).var(completion::VARIABLE).complete();
    let cli = match parse() {
        Ok(cli) => cli,
        Err(exit_code) => return exit_code,
    };
    let has_contract = cli.command.ends_by_signal();
    if cli.command.is_query() {
        signal::install_exit();
    } else {
        signal::install();
    }
    takt::variable_warnings().iter().for_each(|warning| note!("takt: warning: {warning}"));
    takt_xdp::register();
    #[cfg(feature = "dpdk")]
    takt_dpdk::register();
    let result = match cli.command {
        Command::Echo(echo) => echo.run(),
        Command::Sub(sub) => sub.run(),
        Command::Pub(publish) => publish.run(),
        Command::Type(show_type) => show_type.run(),
        Command::Hz(measure) => measure.run(Quantity::Rate),
        Command::Bw(measure) => measure.run(Quantity::Bandwidth),
        Command::Delay(measure) => measure.run(Quantity::Delay),
        Command::Capture(capture) => capture.run(),
        Command::Perf(perf) => perf.run(),
        Command::Bench(bench) => bench.run(),
        Command::Ls(ls) => ls.run(),
        Command::Ps(ps) => ps.run(),
        Command::DiscoveryServer(server) => server.run(),
        Command::Daemon(daemon) => daemon.run(),
        Command::Durability(durability) => durability.run(),
        Command::Transport(transport) => transport.run(),
        Command::Config(config) => config.run(),
        Command::Analyze(analyze) => analyze.run(),
        Command::Completions(completions) => completions.run(help::grouped(Cli::command())),
        Command::Man(man) => man.run(exit_codes::with_exit_codes(Cli::command())),
        Command::Sdn(sdn) => sdn.run(),
        #[cfg(feature = "security")]
        Command::Security(security) => security.run(),
        Command::Lab(lab) => lab.run(),
        Command::Host(host) => host.run(),
        Command::Doctor(doctor) => doctor.run(),
    };
    match result {
        Ok(()) => ExitCode::from(if has_contract { 0 } else { signal::exit_code().unwrap_or(0) }),
        Err(error) => end_with(&error),
    }
}

/// Prints the error, unless standard output was closed, and returns its exit code.
fn end_with(error: &Error) -> ExitCode {
    if output::is_closed(error) {
        return ExitCode::SUCCESS;
    }
    let prefix = Paint::of_errors().error("takt:");
    error.to_string().lines().for_each(|line| note!("{prefix} {line}"));
    ExitCode::from(exit_code(error))
}

fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Usage(_) => 2,
        Error::NotMatched { .. } | Error::NoAnswer { .. } => 3,
        Error::NoType { .. } | Error::Dds(takt::Error::TypeUnavailable(_)) => 4,
        Error::Stopped => signal::exit_code().unwrap_or(1),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        assert_eq!(exit_code(&Error::Usage(String::new())), 2);
        let (wanted, found) = Default::default();
        assert_eq!(exit_code(&Error::NotMatched { wanted, found, seconds: 1 }), 3);
        assert_eq!(exit_code(&Error::NoAnswer { what: String::new() }), 3);
        assert_eq!(exit_code(&Error::NoType { what: String::new(), hint: "" }), 4);
        let source = std::io::ErrorKind::NotFound.into();
        assert_eq!(exit_code(&Error::Os { op: "open".into(), source }), 1);
    }
}
