//! Interfering traffic of the isolation experiment: iperf3 between the two hosts, UDP in both
//! directions at once, at link rate.

use super::network::{LinkCounters, Network};
use crate::campaign::child::{Placement, place};
use crate::error::{Error, Result};
use crate::signal::stopped;
use serde::{Deserialize, Serialize};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PORT: u16 = 5201;
/// State of a listening socket in /proc/net/tcp.
const LISTENS: &str = "0A";
/// Maximum time for the server to listen, and for the flows to fill the link.
const BEGIN_LIMIT: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);
/// Minimum share of the link rate, in both directions, at which the flows fill the link.
const FULL: f64 = 0.9;
/// Duration of the flows, longer than any measurement.
const SECONDS: &str = "86400";

/// Settings of the interfering traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterferencePlan {
    /// Number of flows in each direction.
    pub flows: u32,
    /// Payload of a datagram in octets; 0: that of the pings.
    pub payload: usize,
    /// Offered load of all flows of one direction together, Mbit/s of payload.
    pub megabits: u32,
}

/// Client and server of iperf3; both end when dropped.
pub struct Interference {
    processes: Vec<Child>,
}

impl Interference {
    /// Starts both, and waits until they fill the link, or for [`BEGIN_LIMIT`].
    ///
    /// `cpus` are the cores that both are bound to; all if it is empty.
    ///
    /// # Errors
    /// iperf3 is not installed, or its server does not listen.
    pub fn start(
        network: &Network,
        plan: &InterferencePlan,
        payload: usize,
        cpus: &[usize],
        full_megabits: f64,
    ) -> Result<Self> {
        let mut interference = Self { processes: Vec::new() };
        let server = interference.spawn(network, 1, cpus, &["-s", "-1"])?;
        interference.wait_until_listening(server)?;
        let address = network.ends()[1].address.to_string();
        let flows = plan.flows.to_string();
        let rate = format!("{}", u64::from(plan.megabits) * 1_000_000 / u64::from(plan.flows.max(1)));
        let len = if plan.payload == 0 { payload } else { plan.payload }.to_string();
        let words = ["-c", &address, "-u", "--bidir", "-P", &flows, "-b", &rate, "-l", &len, "-t", SECONDS];
        interference.spawn(network, 0, cpus, &words)?;
        interference.wait_until_flowing(network, full_megabits)?;
        Ok(interference)
    }

    fn spawn(&mut self, network: &Network, side: usize, cpus: &[usize], words: &[&str]) -> Result<u32> {
        let port = PORT.to_string();
        let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        let mut command = if cpus.is_empty() { Command::new("iperf3") } else { Command::new("taskset") };
        if !cpus.is_empty() {
            command.args(["-c", &list.join(","), "iperf3"]);
        }
        command.args(words).args(["-p", &port]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let namespace = Some(network.ends()[side].namespace.clone());
        place(&mut command, Placement { cpu: None, fifo: None, namespace, ..Placement::default() });
        let process = command.spawn().map_err(|e| Error::os("start iperf3 (is it installed?)", e))?;
        let id = process.id();
        self.processes.push(process);
        Ok(id)
    }

    fn wait_until_listening(&mut self, id: u32) -> Result<()> {
        let since = Instant::now();
        loop {
            self.check_processes()?;
            // An error means that the process has just ended; the next check reports that.
            let listens = ["tcp", "tcp6"].iter().any(|table| {
                std::fs::read_to_string(format!("/proc/{id}/net/{table}")).is_ok_and(|text| is_listening(&text, PORT))
            });
            if listens {
                return Ok(());
            }
            if since.elapsed() > BEGIN_LIMIT {
                return Err(Error::NoAnswer {
                    what: format!("iperf3 -s does not listen on port {PORT} within {BEGIN_LIMIT:?}"),
                });
            }
            std::thread::sleep(STEP);
        }
    }

    fn wait_until_flowing(&mut self, network: &Network, full_megabits: f64) -> Result<()> {
        let since = Instant::now();
        let mut before: (LinkCounters, Instant) = (network.link_counters()?, Instant::now());
        while since.elapsed() < BEGIN_LIMIT {
            std::thread::sleep(5 * STEP);
            self.check_processes()?;
            let now = (network.link_counters()?, Instant::now());
            let rates = now.0.megabits_since(&before.0, (now.1 - before.1).as_secs_f64());
            if rates.iter().all(|rate| *rate >= FULL * full_megabits) {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Checks that all processes run and that no stop is requested.
    ///
    /// # Errors
    /// A process has ended, or a signal requested a stop.
    pub fn check_processes(&mut self) -> Result<()> {
        if stopped() {
            return Err(Error::Stopped);
        }
        for process in &mut self.processes {
            if let Some(status) = process.try_wait().map_err(|e| Error::os("wait for iperf3", e))? {
                return Err(Error::NoAnswer { what: format!("iperf3 ended early: {status}") });
            }
        }
        Ok(())
    }
}

impl Drop for Interference {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            // An error means that the process has ended already.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// Reports whether a table of /proc/net has a socket that listens at this port.
fn is_listening(table: &str, port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1).is_some_and(|local| local.ends_with(&suffix)) && fields.get(3) == Some(&LISTENS)
    })
}

/// Returns the version of iperf3, or the reason why there is none.
#[must_use]
pub fn version() -> String {
    match Command::new("iperf3").arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("").to_owned(),
        Err(why) => format!("iperf3 is not available: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_socket_is_found_by_its_port() {
        let table = "  sl  local_address rem_address   st\n   0: 00000000:1451 00000000:0000 0A 0\n   1: 0100007F:1452 00000000:0000 01 0\n";
        assert!(is_listening(table, 5201));
        assert!(!is_listening(table, 5202), "the socket is connected, not listening");
        assert!(!is_listening(table, 80));
        assert!(!is_listening("", 5201));
    }
}
