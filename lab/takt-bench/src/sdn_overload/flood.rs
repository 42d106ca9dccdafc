//! Overload traffic: UDP datagrams from other hosts to the first reader's host, one second on, one
//! second off.

use super::site::{SUBSCRIBER_ADDRESS, SUBSCRIBERS, Site};
use crate::error::{Error, Result};
use crate::machine::{monotonic_ns, set_fifo};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Destination port of the datagrams; a socket is bound there and not read.
const PORT: u16 = 9;
/// Length of the headers of Ethernet, IPv4 and UDP, octets.
const HEADERS_LEN: usize = 42;
/// Length of preamble, checksum and gap, octets.
const OVERHEAD_LEN: u64 = 24;
/// SCHED_FIFO priority of the overload, below that of the pair, so that other work of the machine
/// does not reduce it.
const FIFO: u8 = 10;
/// Length of a phase with datagrams, and of one without.
const PHASE_NS: u64 = 1_000_000_000;
/// Interval between two bursts.
const STEP: Duration = Duration::from_millis(1);

/// Traffic of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FloodPlan {
    /// Octets of a frame, without FCS.
    frame_len: usize,
    /// Rate on the wire in a phase with datagrams.
    bits_per_second: u64,
}

/// Amount of overload traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flooded {
    /// Number of datagrams sent.
    pub datagrams: u64,
    /// Number of datagrams planned.
    pub planned: u64,
}

/// Overload that runs until it is stopped.
#[derive(Debug)]
pub struct Flood {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Flooded>>,
    /// Bound socket at the destination, so that no ICMP messages are returned.
    _sink: UdpSocket,
}

/// Returns the time within phases with datagrams, of the time since the beginning; the first phase
/// has none.
fn time_on(since_ns: u64) -> u64 {
    let (whole, rest) = (since_ns / (2 * PHASE_NS), since_ns % (2 * PHASE_NS));
    whole * PHASE_NS + rest.saturating_sub(PHASE_NS)
}

/// Returns the length of a frame on the wire, octets.
#[must_use]
pub fn wire_octets(frame_len: usize) -> u64 {
    frame_len as u64 + OVERHEAD_LEN
}

impl Flood {
    /// Starts the overload with a phase without datagrams. The first host sends twice the rate of
    /// the links. Each other host sends the link rate, which is added to the traffic from the link
    /// before it.
    ///
    /// # Errors
    /// A socket cannot be created.
    pub fn start(site: &Site, frame_len: usize) -> Result<Self> {
        let failed = |source| Error::os("open a socket of the overload", source);
        let sink = site.run(SUBSCRIBERS[0], || UdpSocket::bind((SUBSCRIBER_ADDRESS, PORT)))?.map_err(failed)?;
        let mut flood = Self { is_over: Arc::new(AtomicBool::new(false)), threads: Vec::new(), _sink: sink };
        for (index, host) in site.plan().flooders().iter().enumerate() {
            let socket = site.run(host, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?.map_err(failed)?;
            let rates = if index == 0 { 2 } else { 1 };
            let plan = FloodPlan { frame_len, bits_per_second: rates * 1_000_000 * u64::from(site.plan().megabits) };
            let over = Arc::clone(&flood.is_over);
            flood.threads.push(std::thread::spawn(move || send(&socket, plan, &over)));
        }
        Ok(flood)
    }

    /// Stops the overload and returns the traffic of all hosts.
    #[must_use]
    pub fn stop(mut self) -> Flooded {
        self.end()
    }

    fn end(&mut self) -> Flooded {
        self.is_over.store(true, Ordering::Relaxed);
        let mut sum = Flooded::default();
        // The panic of a thread has been printed already.
        for flooded in self.threads.drain(..).filter_map(|thread| thread.join().ok()) {
            // tidy-allow(dropped-cause): see above
            sum.datagrams += flooded.datagrams;
            sum.planned += flooded.planned;
        }
        sum
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.end();
    }
}

fn send(socket: &UdpSocket, plan: FloodPlan, is_over: &AtomicBool) -> Flooded {
    // Without the priority the overload may be smaller than planned, which is reported.
    drop(set_fifo(FIFO));
    let payload = vec![0; plan.frame_len.saturating_sub(HEADERS_LEN).max(1)];
    let bits = 8 * wire_octets(plan.frame_len);
    let begin_ns = monotonic_ns();
    let mut flooded = Flooded::default();
    while !is_over.load(Ordering::Relaxed) {
        let on_ns = u128::from(time_on(monotonic_ns() - begin_ns));
        let due = on_ns * u128::from(plan.bits_per_second) / 1_000_000_000 / u128::from(bits);
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        for _ in flooded.planned..due {
            // A datagram that the kernel has no room for is not counted.
            flooded.datagrams += u64::from(socket.send_to(&payload, (SUBSCRIBER_ADDRESS, PORT)).is_ok());
        }
        flooded.planned = due;
        std::thread::sleep(STEP);
    }
    flooded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_with_and_without_datagrams_alternate() {
        let second = PHASE_NS;
        assert_eq!([0, 1, 2, 3, 4].map(|n| time_on(n * second)), [0, 0, second, second, 2 * second]);
        assert_eq!(time_on(second + 7), 7);
        assert_eq!(time_on(2 * second + 7), second);
    }
}
