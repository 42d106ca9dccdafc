//! Rate of a TCP stream (iperf3) over the interface on which a pair of agents ping each other.

use super::child::{Child, STOP_CHECK_INTERVAL};
use super::column::Column;
use super::rounds::{Outcome, run_rounds};
use super::{Domains, Plan, READY_LIMIT, Site, arguments, placement};
use crate::error::{Error, Result};
use crate::signal::stopped;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child as Process, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Number of pings that never ends within a run.
const ENDLESS: &str = "count=1000000";
/// Name of the measurement without any agent.
pub const ALONE: &str = "alone";
const PORT: &str = "5201";
/// Maximum time for a client to connect.
const CONNECT_LIMIT_MS: &str = "5000";
/// Text that the server of iperf3 prints when it accepts connections.
const LISTENS: &str = "Server listening";

/// Rate of TCP during the pings of one column in one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpCell {
    /// Column whose agents ping each other during the transfer; `alone`: no agents.
    pub column: String,
    /// Index of the round, from 0.
    pub round: usize,
    /// Received rate in Gbit/s.
    pub gigabits_per_second: f64,
}

/// Measures TCP alone and during each column's pings, for `window` each.
///
/// # Errors
/// iperf3 is not installed, or an agent failed.
pub fn tcp(
    plan: &Plan,
    site: &Site,
    window: Duration,
    columns: &[Column],
    progress: &mut dyn FnMut(usize, &str),
) -> Result<Outcome<TcpCell>> {
    let mut domains = Domains::of(plan);
    let names: Vec<&str> = [ALONE].into_iter().chain(columns.iter().map(|column| column.name.as_str())).collect();
    run_rounds(plan, &names, progress, |at, round| {
        let gigabits_per_second = match at.checked_sub(1) {
            None => transfer(site, window)?,
            Some(at) => measure_during_pings(plan, site, window, &columns[at], domains.next())?,
        };
        Ok(vec![TcpCell { column: names[at].into(), round, gigabits_per_second }])
    })
}

fn measure_during_pings(plan: &Plan, site: &Site, window: Duration, column: &Column, domain: u32) -> Result<f64> {
    let mut pong = Child::start(column, "pong", &arguments(plan, column, domain, 1), placement(plan, column, 1))?;
    pong.wait_for("ready", READY_LIMIT)?;
    let mut pinging = arguments(plan, column, domain, 0);
    pinging.push(ENDLESS.into());
    pinging.extend(plan.period.map(|period| format!("period_ns={}", period.as_nanos())));
    let mut ping = Child::start(column, "ping", &pinging, placement(plan, column, 0))?;
    ping.wait_for("ready", READY_LIMIT)?;
    let rate = transfer(site, window)?;
    ping.stop()?;
    pong.stop()?;
    Ok(rate)
}

/// Runs iperf3 once from the first host to the second.
fn transfer(site: &Site, window: Duration) -> Result<f64> {
    let mut server = Server::start(site)?;
    let mut client = site.command(0, "iperf3");
    let server_at = site.ends()[1].address.to_string();
    client.args(["-c", &server_at, "-p", PORT, "--connect-timeout", CONNECT_LIMIT_MS, "-J", "-t"]);
    client.arg(window.as_secs().max(1).to_string()).stdin(Stdio::null());
    let answer = output(client)?;
    server.stop()?;
    received(&answer)
}

/// Runs iperf3 to its end, or until a signal requests a stop.
fn output(mut command: Command) -> Result<Output> {
    let failure = |e| Error::os("run iperf3", e);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(failure)?;
    let mut stream = process.stdout.take().expect("standard output is piped");
    let (sender, text) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes).map(|_| bytes);
        // The receiver is gone if the run was stopped.
        drop(sender.send(read));
    });
    loop {
        match text.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(stdout) => {
                let output = process.wait_with_output().map_err(failure)?;
                return Ok(Output { stdout: stdout.map_err(failure)?, ..output });
            }
            Err(_) if stopped() => {
                process.kill().and_then(|()| process.wait()).map_err(failure)?;
                return Err(Error::Stopped);
            }
            Err(_) => {}
        }
    }
}

/// Listening server of iperf3 on the second host. Killed when dropped.
struct Server(Process);

impl Server {
    /// Starts the server and waits until it listens. An earlier client is refused, and with `-J` it
    /// ends without an error.
    fn start(site: &Site) -> Result<Self> {
        let mut server = site.command(1, "iperf3");
        server.args(["-s", "-p", PORT, "--forceflush"]);
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Self(server.spawn().map_err(|e| Error::os("start iperf3", e))?);
        let output = server.0.stdout.take().expect("standard output is piped");
        let mut lines = BufReader::new(output).lines().map_while(std::io::Result::ok);
        if lines.any(|line| line.starts_with(LISTENS)) {
            // The rest of the output is read and dropped, so that the server never blocks on a full
            // pipe.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(server);
        }
        let mut text = String::new();
        if let Some(mut errors) = server.0.stderr.take() {
            errors.read_to_string(&mut text).map_err(|e| Error::os("read the output of iperf3", e))?;
        }
        Err(Error::Usage(format!("the server of iperf3 does not listen (is it installed?): {}", text.trim())))
    }

    /// Stops the server, which does not end otherwise.
    fn stop(&mut self) -> Result<()> {
        let killed = self.0.kill().and_then(|()| self.0.wait());
        killed.map(drop).map_err(|e| Error::os("stop iperf3", e))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server has been stopped already unless something failed.
        drop(self.stop());
    }
}

/// Returns the received rate in Gbit/s.
fn received(answer: &Output) -> Result<f64> {
    let report: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
    let errors = || String::from_utf8_lossy(&answer.stderr).trim().to_owned();
    rate.map(|rate| rate * 1e-9)
        .ok_or_else(|| Error::Usage(format!("iperf3 reports no rate: {} {}", report["error"], errors())))
}
