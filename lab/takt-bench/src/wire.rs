//! Named-transport baseline: plain datagrams over a transport of Takt, without middleware.
//!
//! A sample is one datagram. It is written into the frame that is sent, and read where it was
//! received. It begins with `RTPS`, which packet filters require. There is no discovery: the other
//! end has the same port at the peer's address. For transports without IP it has the hardware
//! address that [`Site`](crate::campaign::Site) assigns to that address. Lost datagrams are not
//! repaired. The round-trip time is that of the technology; the difference to Takt's is the cost of
//! the middleware.

use crate::error::{Error, Result};
use crate::link::{Idle, Link, Matched};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::signal::stopped;
use crate::spec::LinkSpec;
use std::net::Ipv4Addr;
use std::time::Duration;
use takt::Locator;
use takt::transport::choice::{Request, TransportChoice, factories};
use takt::transport::shm::ShmConfig;
use takt::transport::tcp::TcpConfig;
use takt::transport::udp::UdpConfig;
use takt::transport::{Commit, FlowId, Receive, Scan, Transport};
use takt_transport::readiness;

/// Number of polls between two reads of the clock and between scans of sources outside memory.
const SPINS_PER_CLOCK: u32 = 128;
/// Maximum number of datagrams that a sender receives and drops at a time.
const RECEIVED_PER_DRIVE: u32 = 128;
/// First octets of each datagram.
const MAGIC: &[u8] = b"RTPS";

/// Opens the named transport.
fn open(name: &str, domain: u32) -> Result<Box<dyn Transport>> {
    let refused = |why: &str| Error::Usage(format!("{name}: {why}"));
    let choice: TransportChoice = name.parse().map_err(|why| refused(&format!("{why}")))?;
    let Some([spec]) = choice.alternatives.first().map(Vec::as_slice) else {
        return Err(refused("only a single transport can be plain"));
    };
    let known = factories();
    let factory =
        known.iter().find(|factory| factory.name() == spec.name).ok_or_else(|| refused("unknown transport"))?;
    let (udp, tcp, shm) = (UdpConfig::new(domain), TcpConfig::default(), ShmConfig::default());
    let opened = factory.open(&Request { spec, udp: &udp, tcp: &tcp, shm: &shm }).map_err(takt::Error::from)?;
    Ok(opened.transport)
}

/// Link over plain datagrams, to and from the same port of one peer.
pub struct RawWire {
    transport: Box<dyn Transport>,
    peer: Locator,
    idle: Idle,
    ends: Matched,
}

impl RawWire {
    /// Sends to the peer's port and receives at the local one.
    ///
    /// # Errors
    /// The machine has no such transport.
    pub fn new(spec: &LinkSpec, name: &str, writes: bool, reads: bool) -> Result<Self> {
        let transport = open(name, spec.domain)?;
        let nothing = || Error::Usage(format!("{name} has no address"));
        let peer = spec.peer.ok_or_else(|| Error::Usage("a raw transport needs peer=ADDRESS".into()))?;
        let own = transport.status().locators.default_unicast.first().copied().ok_or_else(nothing)?;
        let peer = at(&own, peer);
        let ends = Matched { readers: usize::from(writes), writers: usize::from(reads) };
        Ok(Self { transport, peer, idle: spec.idle, ends })
    }

    /// Takes a pending datagram.
    fn take(&mut self, sample: &mut Blob, scan: Scan) -> Result<bool> {
        let Some(frame) = self.transport.recv(Receive::Any(scan)).map_err(takt::Error::from)? else {
            return Ok(false);
        };
        let Some(data) = frame.strip_prefix(MAGIC) else {
            return Ok(false);
        };
        sample.data.clear();
        sample.data.extend_from_slice(data);
        Ok(true)
    }
}

/// Returns the locator with the same port at another address.
fn at(own: &Locator, address: Ipv4Addr) -> Locator {
    match own.kind {
        Locator::KIND_TAKT_ETHERNET => Locator::takt_ethernet(hardware_address(address), own.port as u16),
        _ => Locator { address: Locator::udp_v4(address, 1).address, ..*own },
    }
}

/// Returns the hardware address that a campaign assigns to the host with this address.
pub(crate) fn hardware_address(address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [2, 0, a, b, c, d]
}

impl Link for RawWire {
    fn write(&mut self, sample: &Blob) -> Result<bool> {
        let len = MAGIC.len() + sample.data.len();
        let too_long = || Error::Usage(format!("{len} bytes do not fit into one datagram of this transport"));
        let frame = self.transport.loan().map_err(takt::Error::from)?;
        let (magic, data) = frame.get_mut(..len).ok_or_else(too_long)?.split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        data.copy_from_slice(&sample.data);
        let sent = self
            .transport
            .commit(Commit::new(len, FlowId::DEFAULT, &[self.peer]))
            .and_then(|()| self.transport.flush());
        sent.map_err(takt::Error::from)?;
        Ok(true)
    }

    fn receive(&mut self, sample: &mut Blob, timeout: Duration) -> Result<bool> {
        let deadline = monotonic_ns() + timeout.as_nanos() as u64;
        loop {
            if self.idle == Idle::Spin {
                for _ in 0..SPINS_PER_CLOCK {
                    if self.take(sample, Scan::Hot)? {
                        return Ok(true);
                    }
                }
            }
            if self.take(sample, Scan::All)? {
                return Ok(true);
            }
            let now = monotonic_ns();
            if stopped() || now >= deadline {
                return Ok(false);
            }
            if self.idle == Idle::Block {
                let left = Duration::from_nanos(deadline - now);
                readiness::wait(self.transport.status().descriptors, Some(left)).map_err(|e| Error::os("wait", e))?;
            }
        }
    }

    /// A sender also receives: a transport resolves the addresses of its peers while it does.
    fn drive(&mut self, timeout: Duration) -> Result<()> {
        if self.ends.writers == 0 {
            for _ in 0..RECEIVED_PER_DRIVE {
                if self.transport.recv(Receive::Any(Scan::All)).map_err(takt::Error::from)?.is_none() {
                    break;
                }
            }
        }
        std::thread::park_timeout(timeout);
        Ok(())
    }

    fn matched(&mut self) -> Result<Matched> {
        Ok(self.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use takt::transport::{Capabilities, Locators, Reach, RxFrame, RxMeta, Status, TransportError, TransportStats};

    type TransportResult<T> = std::result::Result<T, TransportError>;

    /// Transport with datagrams that are not received yet.
    struct Unread {
        datagrams: Arc<AtomicUsize>,
        locators: Locators,
    }

    impl Transport for Unread {
        fn capabilities(&self) -> Capabilities {
            Capabilities { name: "unread", max_message_len: 1_000, scans_memory: true }
        }

        fn status(&self) -> Status<'_> {
            Status::new(&self.locators, TransportStats::default())
        }

        fn reach(&self, _: &Locator) -> Reach {
            Reach::from(true)
        }

        fn loan(&mut self) -> TransportResult<&mut [u8]> {
            Ok(&mut [])
        }

        fn commit(&mut self, _: Commit<'_>) -> TransportResult<()> {
            Ok(())
        }

        fn flush(&mut self) -> TransportResult<()> {
            Ok(())
        }

        fn recv(&mut self, _: Receive) -> TransportResult<Option<RxFrame<'_>>> {
            let left = self.datagrams.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1));
            let source = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
            let meta = RxMeta { source, local: source, flow: FlowId::DEFAULT, multicast: false };
            Ok(left.ok().map(|_| RxFrame::new(&[], meta)))
        }
    }

    #[test]
    fn sender_receives_while_it_drives_and_a_receiver_keeps_its_datagrams() {
        for (writers, left) in [(0, 0), (1, 3)] {
            let datagrams = Arc::new(AtomicUsize::new(3));
            let transport = Box::new(Unread { datagrams: Arc::clone(&datagrams), locators: Locators::default() });
            let peer = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
            let mut wire = RawWire { transport, peer, idle: Idle::Spin, ends: Matched { readers: 1, writers } };
            wire.drive(Duration::ZERO).unwrap();
            assert_eq!(datagrams.load(Relaxed), left);
        }
    }

    #[test]
    fn peer_locator_has_the_local_port() {
        let own = Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 1), 7411);
        let peer = Ipv4Addr::new(10, 0, 0, 2);
        assert_eq!(at(&own, peer), Locator::udp_v4(peer, 7411));
    }

    #[test]
    fn peer_without_ip_has_the_hardware_address_derived_from_its_address() {
        let peer = Ipv4Addr::new(10, 0, 0, 2);
        let own = Locator::takt_ethernet([2, 0, 10, 0, 0, 1], 7411);
        assert_eq!(at(&own, peer), Locator::takt_ethernet([2, 0, 10, 0, 0, 2], 7411));
    }

    #[test]
    fn unknown_and_combined_transports_are_refused() {
        // An unknown name, and two transports at once.
        for name in ["pigeon:eth0", "udp+shm"] {
            let error = RawWire::new(&LinkSpec::default(), name, true, true).err().unwrap().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
