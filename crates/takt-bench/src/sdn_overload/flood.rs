//! The overload: UDP datagrams from a third host, one second on, one second off.

use super::site::{FLOODER, SUBSCRIBER, SUBSCRIBER_ADDRESS, Site};
use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The port that the datagrams go to; what listens there reads nothing.
const PORT: u16 = 9;
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS_LEN: usize = 42;
/// Preamble, checksum and gap.
const OVERHEAD_LEN: u64 = 24;
/// A phase with datagrams, and one without.
const PHASE_NS: u64 = 1_000_000_000;
/// Between two bursts.
const STEP: Duration = Duration::from_millis(1);

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloodPlan {
    /// Octets of a frame, without FCS.
    pub frame_len: usize,
    /// In a phase with datagrams, on the wire.
    pub bits_per_second: u64,
}

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flooded {
    /// Datagrams.
    pub datagrams: u64,
    /// Those that were to be sent.
    pub planned: u64,
}

/// An overload that goes on until it is stopped.
#[derive(Debug)]
pub struct Flood {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Flooded>>,
    /// So that no ICMP messages come back.
    _sink: UdpSocket,
}

/// Time within phases with datagrams, of the time since the beginning; the first phase has none.
fn time_on(since_ns: u64) -> u64 {
    let (whole, rest) = (since_ns / (2 * PHASE_NS), since_ns % (2 * PHASE_NS));
    whole * PHASE_NS + rest.saturating_sub(PHASE_NS)
}

impl Flood {
    /// Begins with a phase without datagrams.
    ///
    /// # Errors
    /// A socket cannot be made.
    pub fn start(site: &Site, plan: FloodPlan) -> Result<Self> {
        let failed = |source| Error::os("make a socket of the overload", source);
        let sink = site.run(SUBSCRIBER, || UdpSocket::bind((SUBSCRIBER_ADDRESS, PORT)))?.map_err(failed)?;
        let socket = site.run(FLOODER, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?.map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || send(&socket, plan, &over));
        Ok(Self { is_over, thread: Some(thread), _sink: sink })
    }

    /// Ends it.
    #[must_use]
    pub fn stop(mut self) -> Flooded {
        self.end().unwrap_or(Flooded { datagrams: 0, planned: 0 })
    }

    fn end(&mut self) -> Option<Flooded> {
        self.is_over.store(true, Ordering::Relaxed);
        // A panic of the thread has been reported by then.
        self.thread.take()?.join().ok() // tidy-allow(dropped-cause): see above
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.end();
    }
}

fn send(socket: &UdpSocket, plan: FloodPlan, is_over: &AtomicBool) -> Flooded {
    let payload = vec![0; plan.frame_len.saturating_sub(HEADERS_LEN).max(1)];
    let bits = 8 * (plan.frame_len as u64 + OVERHEAD_LEN);
    let begin_ns = monotonic_ns();
    let mut flooded = Flooded { datagrams: 0, planned: 0 };
    while !is_over.load(Ordering::Relaxed) {
        let on_ns = u128::from(time_on(monotonic_ns() - begin_ns));
        let due = on_ns * u128::from(plan.bits_per_second) / 1_000_000_000 / u128::from(bits);
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        for _ in flooded.planned..due {
            // What the kernel has no room for is missing in the count.
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
    fn every_second_second_has_datagrams() {
        let second = PHASE_NS;
        assert_eq!([0, 1, 2, 3, 4].map(|n| time_on(n * second)), [0, 0, second, second, 2 * second]);
        assert_eq!(time_on(second + 7), 7);
        assert_eq!(time_on(2 * second + 7), second);
    }
}
