//! What a stream of TCP (iperf3) through the same interface is left of its rate, beside a pair of agents.

use super::child::Child;
use super::column::Column;
use super::{DOMAINS, Plan, READY_LIMIT, Site, arguments, placement, wait_until_alone};
use crate::error::{Error, Result};
use crate::signal::stopped;
use serde::Serialize;
use serde_json::Value;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// Says that there is no end to the pings.
const ENDLESS: &str = "count=1000000";
/// So long a measurement may take to begin.
const BEGIN_LIMIT: Duration = Duration::from_secs(10);
/// So long one server is waited for.
const BEGIN_PATIENCE: Duration = Duration::from_secs(1);
const BEGIN_STEP: Duration = Duration::from_millis(20);
/// The name of the measurement without any agent.
pub const ALONE: &str = "alone";
const PORT: &str = "5201";

/// The rate of TCP beside one column in one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpCell {
    /// The column whose agents ping each other meanwhile; `alone`: none.
    pub column: String,
    /// Round, from 0.
    pub round: usize,
    /// Gbit/s that arrived.
    pub gigabits_per_second: f64,
}

/// Measures TCP alone, and beside each column's pings, for `window` each.
///
/// # Errors
/// There is no iperf3, or an agent failed.
pub fn tcp(
    plan: &Plan,
    site: &Site,
    window: Duration,
    columns: &[Column],
    progress: &mut dyn FnMut(usize, &str),
) -> Result<Vec<TcpCell>> {
    let _alone = wait_until_alone()?;
    let mut cells = Vec::new();
    let mut domain = 0;
    for round in 0..plan.rounds {
        for index in 0..=columns.len() {
            if stopped() {
                return Err(Error::Stopped);
            }
            domain = (domain + 1) % DOMAINS;
            let column = columns.get((index + round) % (columns.len() + 1));
            let name = column.map_or(ALONE, |column| &column.name);
            progress(round, name);
            let gigabits_per_second = match column {
                None => transfer(site, window)?,
                Some(column) => beside(plan, site, window, column, plan.domain + domain)?,
            };
            cells.push(TcpCell { column: name.into(), round, gigabits_per_second });
        }
    }
    Ok(cells)
}

fn beside(plan: &Plan, site: &Site, window: Duration, column: &Column, domain: u32) -> Result<f64> {
    let mut pong = Child::start(column, "pong", &arguments(plan, column, domain, 1), placement(plan, 1))?;
    pong.wait_for("ready", READY_LIMIT)?;
    let mut pinging = arguments(plan, column, domain, 0);
    pinging.push(ENDLESS.into());
    pinging.extend(plan.period.map(|period| format!("period_ns={}", period.as_nanos())));
    let mut ping = Child::start(column, "ping", &pinging, placement(plan, 0))?;
    ping.wait_for("ready", READY_LIMIT)?;
    let rate = transfer(site, window)?;
    ping.stop()?;
    pong.stop()?;
    Ok(rate)
}

/// One run of iperf3 from the first host to the second. A server that answers nobody is replaced.
fn transfer(site: &Site, window: Duration) -> Result<f64> {
    let since = Instant::now();
    loop {
        let answer = serve_once(site, window)?;
        if answer.status.success() || since.elapsed() > BEGIN_LIMIT {
            return received(&answer);
        }
    }
}

/// A server, and the answer of a client that has found it, or of one that has not for [`BEGIN_PATIENCE`].
fn serve_once(site: &Site, window: Duration) -> Result<Output> {
    let mut server = site.command(1, "iperf3");
    server.args(["-s", "-p", PORT]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = server.spawn().map_err(|e| Error::os("start iperf3", e))?;
    let since = Instant::now();
    let answer = loop {
        let mut client = site.command(0, "iperf3");
        client.args(["-c", &site.ends()[1].address.to_string(), "-p", PORT, "-J", "-t"]);
        client.arg(window.as_secs().max(1).to_string()).stdin(Stdio::null());
        let answer = client.output().map_err(|e| Error::os("run iperf3", e));
        // The server may not listen yet.
        if answer.as_ref().map_or(true, |answer| answer.status.success()) || since.elapsed() > BEGIN_PATIENCE {
            break answer;
        }
        std::thread::sleep(BEGIN_STEP);
    };
    // It serves for ever, but is gone already if it could not listen.
    drop(server.kill());
    server.wait().map_err(|e| Error::os("wait for iperf3", e))?;
    answer
}

/// The rate that arrived, Gbit/s.
fn received(answer: &Output) -> Result<f64> {
    let report: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
    let said = || String::from_utf8_lossy(&answer.stderr).trim().to_owned();
    rate.map(|rate| rate * 1e-9)
        .ok_or_else(|| Error::Usage(format!("iperf3 gives no rate (is it installed?): {} {}", report["error"], said())))
}
