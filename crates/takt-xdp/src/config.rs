//! What an AF_XDP transport is asked to be, and what it has become.

use std::fmt;

use takt_transport::udp::{InterfaceSelection, UdpConfig};

/// Where the kernel runs the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel makes a packet of the frame.
    Native,
    /// In the kernel's receive path, for drivers without support.
    Generic,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

/// Configuration of an [`XdpTransport`](crate::XdpTransport).
#[derive(Debug, Clone, PartialEq)]
pub struct XdpConfig {
    /// The interface whose frames are sent and received by AF_XDP.
    pub interface: String,
    /// The queue of that interface. One socket can have it at a time, in all processes together. What arrives by other queues
    /// comes through the kernel's sockets.
    pub queue: u32,
    /// Where the filter is to run; `None`: natively if the driver can, else generically.
    pub mode: Option<Mode>,
    /// Frames that can wait to be received, a power of two from 64 to 32,768. Each takes 2 KiB, or 4 KiB where the MTU is above 1774.
    pub rx_frames: u32,
    /// Frames that can be on their way out, a power of two from 64 to 32,768; of the same size.
    pub tx_frames: u32,
    /// Take only what begins with `RTPS`; the rest that comes to our ports arrives through the kernel's sockets.
    pub rtps_only: bool,
    /// The kernel's sockets: ports, groups, and every other interface.
    pub udp: UdpConfig,
}

impl XdpConfig {
    /// The defaults for a domain: queue 0, and kernel sockets at the same interface alone.
    pub fn new(domain_id: u32, interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            queue: 0,
            mode: None,
            rx_frames: 4096,
            tx_frames: 1024,
            rtps_only: true,
            udp: UdpConfig {
                interfaces: InterfaceSelection::Named(vec![interface.to_owned()]),
                ..UdpConfig::new(domain_id)
            },
        }
    }
}

/// What an AF_XDP transport has become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpReport {
    /// The interface.
    pub interface: String,
    /// Its queue.
    pub queue: u32,
    /// Where the filter runs.
    pub mode: Mode,
    /// Why it does not run in the driver, if that was tried.
    pub not_native: Option<String>,
    /// Does the driver read and write the frames themselves, instead of copies?
    pub zero_copy: bool,
    /// Octets of a frame in the shared memory.
    pub frame_len: usize,
    /// The largest datagram, in octets.
    pub max_message_len: usize,
}

impl fmt::Display for XdpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = if self.zero_copy { "zero copy" } else { "copy" };
        write!(
            f,
            "{} queue {}: {}, {copy}, frames of {} octets, datagrams of up to {}",
            self.interface, self.queue, self.mode, self.frame_len, self.max_message_len
        )?;
        match &self.not_native {
            Some(why) => write!(f, " (not native: {why})"),
            None => Ok(()),
        }
    }
}

/// What the AF_XDP half has carried and refused, since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XdpCounters {
    /// Datagrams received from the ring.
    pub datagrams_in: u64,
    /// Their octets, without headers.
    pub bytes_in: u64,
    /// Datagrams put into the transmit ring.
    pub datagrams_out: u64,
    /// Their octets, without headers.
    pub bytes_out: u64,
    /// Of those, the ones that were written where they were sent from: not copied.
    pub in_place_out: u64,
    /// Destinations that were left to the kernel's sockets: groups, other interfaces, this host, neighbours not known yet.
    pub by_kernel_out: u64,
    /// Destinations that were left to the kernel's sockets since no frame was free.
    pub no_frame_out: u64,
    /// Received frames whose lengths contradict each other, or with a wrong checksum of the IP header.
    pub malformed: u64,
    /// Received datagrams with a wrong checksum.
    pub damaged: u64,
    /// Received datagrams for a port that was closed meanwhile.
    pub closed: u64,
    /// Entries of a ring that the kernel cannot have meant. Never, unless the machine is ill.
    pub strange_entries: u64,
    /// Attempts to send that the interface refused: it is down, or gone. What was queued stays so.
    pub refused_flushes: u64,
    /// Frames that the kernel dropped: no free frame, or no room in the ring.
    pub kernel_drops: u64,
}
