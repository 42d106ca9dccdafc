//! Clock synchronization of two hosts by UDP echoes: the offset of another host's
//! `CLOCK_MONOTONIC`, for one-way latencies.
//!
//! One side replies ([`EchoServer`]), the other one sends requests ([`RemoteClock`]). The first
//! echoes follow each other at once, to find short delays. Later echoes are periodic, because the
//! clocks drift apart. Estimate and bounds are those of [`takt_host::clock::echo`]. The echoes use
//! a port of their own, outside the measured middleware.
//!
//! Receive times are kernel timestamps, so that the wake-up latency of a thread is not part of a
//! delay.
//!
//! An echo has 32 octets, little endian: 8 that identify a request or a reply, then three 64-bit
//! fields: its number, its receive time, and its send time at the server. A reply is as long as its
//! request and causes no further reply. Invalid datagrams are dropped.

use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use crate::signal::stopped;
use serde::Serialize;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use takt_host::clock::{Echo, Offset, OffsetEstimator};

use crate::workload::lock;

const LEN: usize = 32;
const REQUEST: &[u8; 8] = b"TAKTECHQ";
const REPLY: &[u8; 8] = b"TAKTECHA";

/// Number of echoes before the first sample. The minimum delay decreases with the number of echoes.
const FIRST: u64 = 200;
/// Interval between later echoes: at 100 parts per million, the clocks drift 2 us apart meanwhile.
const PERIOD: Duration = Duration::from_millis(20);
/// Timeout of a reply, and maximum time until a thread notices that it must end.
const READ_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum time without any reply at the start.
const LIMIT_NS: u64 = 30_000_000_000;

/// Thread that repeats a step until it is dropped.
struct Worker {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(name: &str, mut step: impl FnMut() + Send + 'static) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let run = move || {
            while !seen.load(Ordering::Relaxed) {
                step();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run).map_err(|e| Error::os("thread", e))?;
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The panic of a thread has been printed already.
            drop(thread.join());
        }
    }
}

/// Binds a socket with a read timeout.
fn socket(address: SocketAddr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind(address).map_err(|e| Error::os(format!("echoes by {address}"), e))?;
    socket.set_read_timeout(Some(READ_TIMEOUT)).map_err(|e| Error::os("setsockopt", e))?;
    Ok(socket)
}

/// Returns the receive time of the last datagram by `clock`, rounded up rather than down, so that
/// bounds hold.
fn arrival_ns(socket: &UdpSocket, clock: fn() -> u64) -> u64 {
    let age_ns = stamp::age_ns(socket);
    clock().saturating_sub(age_ns)
}

/// Kernel receive timestamps of datagrams.
mod stamp {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// `SIOCGSTAMPNS_OLD` of linux/sockios.h, whose structure is this machine's `timespec`.
    const SIOCGSTAMPNS: libc::Ioctl = 0x8907;

    /// Maximum age; a greater value means that `CLOCK_REALTIME` was stepped in between.
    const AGE_NS_MAX: i64 = 100_000_000;

    /// Returns the age of the datagram received last. Returns 0 if the kernel has no timestamp: the
    /// first call makes the kernel take timestamps.
    pub(super) fn age_ns(socket: &UdpSocket) -> u64 {
        let mut received = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one such structure.
        if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS, &raw mut received) } != 0 {
            return 0;
        }
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is valid for writes; CLOCK_REALTIME exists on every Linux, so the call
        // cannot fail.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
        let ns = |time: libc::timespec| time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec);
        let age = ns(now).saturating_sub(ns(received));
        if (0..AGE_NS_MAX).contains(&age) { age.unsigned_abs() } else { 0 }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::time::{Duration, Instant};

        #[test]
        fn age_includes_the_time_in_the_receive_buffer() {
            let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            sender.connect(receiver.local_addr().unwrap()).unwrap();
            let waited = || {
                sender.send(b"echo").unwrap();
                let sent = Instant::now();
                while sent.elapsed() < Duration::from_millis(5) {
                    std::hint::spin_loop();
                }
                receiver.recv(&mut [0; 8]).unwrap();
                age_ns(&receiver)
            };
            // The first call makes the kernel take timestamps, which takes effect with a delay;
            // until then the age is 0.
            let begun = Instant::now();
            while waited() < 5_000_000 {
                assert!(begun.elapsed() < Duration::from_secs(30), "the kernel reports no timestamps");
            }
        }
    }
}

/// Thread that replies to echoes until it is dropped.
pub struct EchoServer {
    address: SocketAddr,
    _worker: Worker,
}

impl EchoServer {
    /// Starts a server at an address, with receive and send times of a clock such as
    /// [`monotonic_ns`].
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn start(address: SocketAddr, clock: fn() -> u64) -> Result<Self> {
        let socket = socket(address)?;
        let address = socket.local_addr().map_err(|e| Error::os("getsockname", e))?;
        let worker = Worker::start("clock-answers", move || {
            let mut echo = [0; LEN + 1];
            let Ok((LEN, from)) = socket.recv_from(&mut echo) else { return };
            let received_ns = arrival_ns(&socket, clock);
            if !echo.starts_with(REQUEST) {
                return;
            }
            echo[..8].copy_from_slice(REPLY);
            echo[16..24].copy_from_slice(&received_ns.to_le_bytes());
            echo[24..LEN].copy_from_slice(&clock().to_le_bytes());
            // A reply that cannot be sent counts as lost.
            drop(socket.send_to(&echo[..LEN], from));
        })?;
        Ok(Self { address, _worker: worker })
    }

    /// Returns the bound address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Sender of echoes to one server.
struct EchoClient {
    socket: UdpSocket,
    number: u64,
}

impl EchoClient {
    fn new(address: SocketAddr) -> Result<Self> {
        let own = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = socket(own.parse().expect("a valid address"))?;
        socket.connect(address).map_err(|e| Error::os(format!("echoes with {address}"), e))?;
        Ok(Self { socket, number: 0 })
    }

    /// Exchanges one echo; `None` if no reply arrived in time.
    fn send_echo(&mut self) -> io::Result<Option<Echo>> {
        self.number += 1;
        let mut request = [0; LEN];
        request[..8].copy_from_slice(REQUEST);
        request[8..16].copy_from_slice(&self.number.to_le_bytes());
        let sent_ns = monotonic_ns();
        self.socket.send(&request)?;
        let mut reply = [0; LEN + 1];
        loop {
            let len = match self.socket.recv(&mut reply) {
                Ok(len) => len,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                    return Ok(None);
                }
                Err(e) => return Err(e),
            };
            let returned_ns = arrival_ns(&self.socket, monotonic_ns);
            let number = |at: usize| u64::from_le_bytes(*reply[at..].first_chunk().expect("the reply is long enough"));
            if len == LEN && reply.starts_with(REPLY) && number(8) == self.number {
                let [received_ns, answered_ns] = [number(16), number(24)].map(signed);
                let [sent_ns, returned_ns] = [sent_ns, returned_ns].map(signed);
                return Ok(Some(Echo { sent_ns, received_ns, answered_ns, returned_ns }));
            }
            // A late reply or a foreign datagram. The next one may be the reply, as long as there
            // is time.
            if monotonic_ns() - sent_ns > READ_TIMEOUT.as_nanos() as u64 {
                return Ok(None);
            }
        }
    }
}

/// Converts a time for the estimator; saturates after 292 years.
fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Offset and uncertainty of a clock during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockUncertainty {
    /// Address of the server.
    #[serde(rename = "answerer")]
    pub server: String,
    /// Clock of the server minus this host's clock at the end, us.
    pub offset_us: f64,
    /// Maximum error of a one-way latency in either direction, us.
    pub uncertainty_us: f64,
    /// Number of echoes so far.
    pub echoes: u64,
    /// Number of times that a clock was stepped, or drifted by more than is assumed. If it is not
    /// 0, the figures are not trustworthy.
    pub restarts: u64,
}

/// Estimate of another host's clock.
pub struct RemoteClock {
    address: SocketAddr,
    estimator: Arc<Mutex<OffsetEstimator>>,
    _worker: Worker,
}

impl RemoteClock {
    /// Waits for the first echoes, then continues to send echoes until it is dropped.
    ///
    /// # Errors
    /// No reply arrives within half a minute, or a signal requests a stop.
    pub fn of(address: SocketAddr) -> Result<Self> {
        let mut client = EchoClient::new(address)?;
        let mut estimator = OffsetEstimator::new(OffsetEstimator::DRIFT_MAX_PPM);
        let mut last_reply_ns = monotonic_ns();
        while estimator.echoes() < FIRST {
            if stopped() {
                return Err(Error::Stopped);
            }
            // Refused: the server is not bound yet.
            match client.send_echo() {
                Ok(Some(echo)) => {
                    last_reply_ns = monotonic_ns();
                    estimator.handle_echo(echo);
                }
                _ if monotonic_ns() - last_reply_ns > LIMIT_NS => {
                    return Err(Error::NoAnswer {
                        what: format!("no echo from {address} within {} s", LIMIT_NS / 1_000_000_000),
                    });
                }
                Ok(None) => {}
                Err(_) => std::thread::park_timeout(PERIOD),
            }
        }
        let estimator = Arc::new(Mutex::new(estimator));
        let shared = Arc::clone(&estimator);
        let worker = Worker::start("clock-asks", move || {
            // Without a reply the bounds widen; no other action is needed.
            if let Ok(Some(echo)) = client.send_echo() {
                lock(&shared).handle_echo(echo);
            }
            std::thread::park_timeout(PERIOD);
        })?;
        Ok(Self { address, estimator, _worker: worker })
    }

    /// Returns the other clock minus this one, at a time of this clock.
    #[must_use]
    pub fn offset(&self, now_ns: u64) -> Offset {
        lock(&self.estimator).offset(signed(now_ns)).expect("the clock is created after the first echoes")
    }

    /// Returns the clock entry of a report whose latencies have at most this uncertainty.
    #[must_use]
    pub fn uncertainty(&self, uncertainty_ns: u64) -> ClockUncertainty {
        let offset = self.offset(monotonic_ns());
        let estimator = lock(&self.estimator);
        ClockUncertainty {
            server: self.address.to_string(),
            offset_us: offset.offset_ns as f64 / 1e3,
            uncertainty_us: uncertainty_ns as f64 / 1e3,
            echoes: estimator.echoes(),
            restarts: estimator.restarts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD_NS: u64 = 5_000_000_000_000;

    fn ahead() -> u64 {
        monotonic_ns() + AHEAD_NS
    }

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[test]
    fn offset_of_a_clock_ahead_lies_within_its_uncertainty() {
        let server = EchoServer::start(loopback(), ahead).unwrap();
        let clock = RemoteClock::of(server.address()).unwrap();
        let offset = clock.offset(monotonic_ns());
        assert!(offset.offset_ns.abs_diff(AHEAD_NS as i64) <= offset.uncertainty_ns, "{offset:?}");
        let uncertainty = clock.uncertainty(offset.uncertainty_ns);
        assert!(uncertainty.echoes >= FIRST && uncertainty.restarts == 0, "{uncertainty:?}");
        assert_eq!(uncertainty.server, server.address().to_string());
    }

    #[test]
    fn invalid_requests_and_replies_are_ignored() {
        let server = EchoServer::start(loopback(), monotonic_ns).unwrap();
        let mut client = EchoClient::new(server.address()).unwrap();
        let mut reply = [0; LEN];
        reply[..8].copy_from_slice(REPLY);
        let good = [REQUEST.as_slice(), &[0; LEN - 8]].concat();
        for bad in [&[][..], &good[..LEN - 1], &[&good[..], &[0]].concat(), &reply, &[0xff; LEN]] {
            client.socket.send(bad).unwrap();
        }
        // The only reply is that to the valid request; it carries the number of the client.
        let echo = client.send_echo().unwrap().expect("a reply arrives");
        assert!(
            echo.sent_ns <= echo.received_ns
                && echo.received_ns <= echo.answered_ns
                && echo.answered_ns <= echo.returned_ns
        );
        client.socket.set_nonblocking(true).unwrap();
        assert_eq!(client.socket.recv(&mut reply).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    }
}
