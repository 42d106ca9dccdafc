//! UDP baseline: plain sockets without middleware, with the same loops and the same payloads.
//!
//! A blocking reader sleeps in `recv`; a spinning reader calls a nonblocking `recv` repeatedly. A
//! sample is one datagram, so its size is limited to 65,507 bytes. There is no discovery: the ports
//! follow from domain and topic, below those of DDS and the ephemeral ports of the kernel. Each
//! topic has one reader. Lost datagrams are not repaired.

use crate::error::{Error, Result};
use crate::link::{Idle, Link, Matched};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::signal::stopped;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Maximum payload of one UDP datagram over IPv4, bytes.
pub const DATAGRAM_LEN_MAX: usize = 65_507;

/// Maximum sleep of a blocking `recv` before it checks the stop flag.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(100);
const SOCKET_BUFFER_BYTES: libc::c_int = 4 << 20;
const PORT_BASE: u16 = 6000;
const TOPICS_PER_DOMAIN: u16 = 4;
/// Number of spins between two reads of the clock.
const SPINS_PER_CLOCK: u32 = 256;

/// Returns the UDP port that stands for a topic of the benchmarks.
fn port(domain: u32, topic: &str) -> Result<u16> {
    let index = match topic {
        "Ping" => 0,
        "Pong" => 1,
        "Data" => 2,
        _ => return Err(Error::Usage(format!("topic {topic} has no UDP port"))),
    };
    match u16::try_from(domain) {
        Ok(domain) if domain <= 232 => Ok(PORT_BASE + domain * TOPICS_PER_DOMAIN + index),
        _ => Err(Error::Usage(format!("domain {domain} is not within 0 to 232"))),
    }
}

/// Link over a pair of UDP sockets: one sends to the port of a topic, one is bound to the port of
/// another.
pub struct RawUdp {
    sender: Option<UdpSocket>,
    receiver: Option<UdpSocket>,
    idle: Idle,
}

impl RawUdp {
    /// Sends to `write_topic` at the peer's address and receives `read_topic` at the local address.
    ///
    /// # Errors
    /// The topic is unknown, or the sockets cannot be opened.
    pub fn new(
        domain: u32,
        [own, peer]: [Ipv4Addr; 2],
        idle: Idle,
        write_topic: Option<&str>,
        read_topic: Option<&str>,
    ) -> Result<Self> {
        let receiver = match read_topic {
            Some(topic) => Some(open_receiver(SocketAddrV4::new(own, port(domain, topic)?))?),
            None => None,
        };
        let sender = match write_topic {
            Some(topic) => Some(open_sender(own, SocketAddrV4::new(peer, port(domain, topic)?))?),
            None => None,
        };
        Ok(Self { sender, receiver, idle })
    }

    /// Polls until a datagram arrives.
    fn spin(receiver: &UdpSocket, sample: &mut Blob, timeout: Duration) -> Result<bool> {
        let deadline = monotonic_ns() + timeout.as_nanos() as u64;
        loop {
            for _ in 0..SPINS_PER_CLOCK {
                if receive_into(receiver, sample, libc::MSG_DONTWAIT)? {
                    return Ok(true);
                }
            }
            if stopped() || monotonic_ns() >= deadline {
                return Ok(false);
            }
        }
    }
}

impl Link for RawUdp {
    fn write(&mut self, sample: &Blob) -> Result<bool> {
        let Some(sender) = &self.sender else {
            return Err(Error::Usage("this link has no writer".into()));
        };
        match sender.send(&sample.data) {
            Ok(_) => Ok(true),
            // No socket is bound there yet, or any more: the datagram counts as lost.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => Ok(false),
            Err(e) => Err(Error::os("send", e)),
        }
    }

    fn receive(&mut self, sample: &mut Blob, timeout: Duration) -> Result<bool> {
        let Some(receiver) = &self.receiver else {
            return Err(Error::Usage("this link has no reader".into()));
        };
        match self.idle {
            Idle::Spin => Self::spin(receiver, sample, timeout),
            Idle::Block if timeout >= RECEIVE_TIMEOUT => receive_into(receiver, sample, 0),
            // ppoll instead of a socket timeout: the kernel rounds the latter to its ticks, so that
            // waits would be longer.
            Idle::Block => Ok(wait_readable(receiver, timeout)? && receive_into(receiver, sample, libc::MSG_DONTWAIT)?),
        }
    }

    fn matched(&mut self) -> Result<Matched> {
        Ok(Matched { readers: usize::from(self.sender.is_some()), writers: usize::from(self.receiver.is_some()) })
    }
}

fn open_receiver(address: SocketAddrV4) -> Result<UdpSocket> {
    let receiver = UdpSocket::bind(address).map_err(|e| Error::os(format!("bind {address}"), e))?;
    set_buffer(&receiver, libc::SO_RCVBUF);
    receiver.set_read_timeout(Some(RECEIVE_TIMEOUT)).map_err(|e| Error::os("SO_RCVTIMEO", e))?;
    Ok(receiver)
}

fn open_sender(own: Ipv4Addr, address: SocketAddrV4) -> Result<UdpSocket> {
    let any_port = SocketAddrV4::new(own, 0);
    let sender = UdpSocket::bind(any_port).map_err(|e| Error::os(format!("bind {any_port}"), e))?;
    set_buffer(&sender, libc::SO_SNDBUF);
    sender.connect(address).map_err(|e| Error::os(format!("connect {address}"), e))?;
    Ok(sender)
}

/// Requests a large socket buffer; the kernel may limit it, which is not an error.
fn set_buffer(socket: &UdpSocket, option: libc::c_int) {
    let bytes = SOCKET_BUFFER_BYTES;
    // SAFETY: the option's value is a c_int, valid for reads, with its true size.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
}

/// Calls `recv` once into the sample's buffer. Returns `false` if there is no datagram or a signal
/// arrived.
fn receive_into(receiver: &UdpSocket, sample: &mut Blob, flags: libc::c_int) -> Result<bool> {
    sample.data.clear();
    sample.data.reserve(DATAGRAM_LEN_MAX);
    // SAFETY: the buffer has room for that many bytes, which recv writes and never reads.
    let len = unsafe { libc::recv(receiver.as_raw_fd(), sample.data.as_mut_ptr().cast(), DATAGRAM_LEN_MAX, flags) };
    let Ok(len) = usize::try_from(len) else {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
            _ => Err(Error::os("recv", error)),
        };
    };
    // SAFETY: recv wrote the first `len` bytes, and `len` is at most the capacity reserved above.
    unsafe { sample.data.set_len(len) };
    Ok(true)
}

fn wait_readable(socket: &UdpSocket, timeout: Duration) -> Result<bool> {
    let mut descriptor = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    // SAFETY: one pollfd and one timespec, both valid; a null mask leaves the signals as they are.
    match unsafe { libc::ppoll(&mut descriptor, 1, &time, std::ptr::null()) } {
        ready if ready >= 0 => Ok(ready > 0),
        _ => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            e => Err(Error::os("ppoll", e)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LO: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn loop_back(domain: u32, idle: Idle) {
        let mut link = RawUdp::new(domain, [LO, LO], idle, Some("Ping"), Some("Ping")).unwrap();
        let mut sent = Blob::filled(100);
        sent.mark(3, 4);
        assert!(link.write(&sent).unwrap());
        let mut received = Blob::default();
        assert!(link.receive(&mut received, Duration::from_secs(5)).unwrap());
        assert_eq!(received, sent);
        assert!(!link.receive(&mut received, Duration::from_millis(1)).unwrap());
    }

    #[test]
    fn datagram_round_trips_with_a_blocking_reader() {
        loop_back(230, Idle::Block);
    }

    #[test]
    fn datagram_round_trips_with_a_spinning_reader() {
        loop_back(231, Idle::Spin);
    }

    #[test]
    fn ports_of_topics_are_distinct_and_below_those_of_dds() {
        let ports: std::collections::BTreeSet<u16> =
            (0..=232).flat_map(|domain| ["Ping", "Pong", "Data"].map(|topic| port(domain, topic).unwrap())).collect();
        assert_eq!(ports.len(), 3 * 233);
        assert!(ports.iter().all(|&port| (6000..7400).contains(&port)));
        assert!(port(0, "Square").is_err());
        assert!(port(233, "Ping").is_err());
    }

    #[test]
    fn write_without_a_reader_succeeds() {
        let mut link = RawUdp::new(229, [LO, LO], Idle::Block, Some("Pong"), None).unwrap();
        let sample = Blob::filled(16);
        for _ in 0..3 {
            assert!(link.write(&sample).unwrap());
        }
    }
}
