//! Configuration and report of an AF_XDP transport.

use std::fmt;
use std::io;

use takt_transport::udp::{InterfaceSelection, UdpConfig};

/// Location where the kernel runs the filter.
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

/// Queues of an interface for a participant. A queue belongs to one participant at a time, across
/// processes. The kernel's sockets carry datagrams that arrive by other queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queues {
    /// This number of free queues.
    Free(u32),
    /// Exactly these queues.
    These(Vec<u32>),
    /// All current queues of the interface.
    All,
}

/// Configuration of an [`XdpTransport`](crate::XdpTransport).
#[derive(Debug, Clone, PartialEq)]
pub struct XdpConfig {
    /// Interface whose frames are sent and received by AF_XDP.
    pub interface: String,
    /// Queues of the interface. With several, a datagram is sent by the one for the priority of its
    /// flow (TRANSPORT_PRIORITY): the values 0 to 63 are divided evenly among them, the lowest to
    /// the first. Frames are received from them round-robin.
    pub queues: Queues,
    /// Mode of the filter. `None`: the mode of an existing filter; else native if the driver
    /// supports it, else generic. On a veth, generic, because native mode would slow other traffic.
    pub mode: Option<Mode>,
    /// VLAN ID of frames by AF_XDP, 0 to 4094; 0 means a priority tag. The priority (PCP) is the
    /// upper half of the DSCP. Addresses and neighbors are those of the interface itself. `None`:
    /// frames are sent without a tag. Frames of other VLANs are left to the kernel; frames without
    /// a VLAN may have a priority tag or none.
    pub vlan: Option<u16>,
    /// Receive frames of each queue, a power of two from 64 to 32,768. Each takes 2 KiB, or 4 KiB
    /// where the MTU is above 1774. A packet longer than 3840 octets takes several.
    pub rx_frames: u32,
    /// Transmit frames for all queues together, a power of two from 64 to 32,768; of the same size.
    /// Where the MTU is above 3822, every packet takes as many frames as the longest one,
    /// regardless of its length.
    pub tx_frames: u32,
    /// Whether to accept only datagrams that begin with `RTPS`; others to the same ports arrive
    /// through the kernel's sockets.
    pub rtps_only: bool,
    /// Settings of the kernel's sockets: ports, groups, and every other interface.
    pub udp: UdpConfig,
}

impl XdpConfig {
    /// Returns the defaults for a domain: one queue, no tags, and kernel sockets at the same
    /// interface alone.
    pub fn new(domain_id: u32, interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            queues: Queues::Free(1),
            mode: None,
            vlan: None,
            rx_frames: 4096,
            tx_frames: 1024,
            rtps_only: true,
            udp: UdpConfig {
                interfaces: InterfaceSelection::Named(vec![interface.to_owned()]),
                ..UdpConfig::new(domain_id)
            },
        }
    }

    /// Checks the values.
    pub(crate) fn check(&self) -> io::Result<()> {
        let odd = |frames: &u32| !frames.is_power_of_two() || !(64..=32_768).contains(frames);
        let why = if let Some(frames) = [self.rx_frames, self.tx_frames].into_iter().find(odd) {
            format!("{frames} frames: expected a power of two from 64 to 32,768")
        } else if let Some(vlan) = self.vlan.filter(|vlan| *vlan > 4094) {
            format!("VLAN {vlan}: expected 0 to 4,094")
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

/// Actual properties of an AF_XDP transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpReport {
    /// Name of the interface.
    pub interface: String,
    /// Queues of this participant.
    pub queues: Vec<u32>,
    /// Whether the filter of other participants, of this process or others, was attached already.
    pub is_joined: bool,
    /// Mode of the filter.
    pub mode: Mode,
    /// Reason why the filter does not run in the driver, if that was tried.
    pub not_native: Option<String>,
    /// Whether the driver accesses the frames directly, without copies.
    pub zero_copy: bool,
    /// Size of a frame in the shared memory, in octets.
    pub frame_len: usize,
    /// Maximum number of frames of one packet, above 1 where the MTU is above 3,822.
    pub parts: u32,
    /// Maximum length of a datagram, in octets.
    pub max_message_len: usize,
}

impl fmt::Display for XdpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = if self.zero_copy { "zero copy" } else { "copy" };
        let (noun, queues) = match &self.queues[..] {
            [only] => ("queue", only.to_string()),
            several => ("queues", several.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let parts = if self.parts > 1 { format!("up to {} times ", self.parts) } else { String::new() };
        write!(
            f,
            "{} {noun} {queues}: {}, {copy}, frames of {}{} octets, datagrams of up to {}",
            self.interface, self.mode, parts, self.frame_len, self.max_message_len
        )?;
        if self.is_joined {
            f.write_str(", filter shared")?;
        }
        match &self.not_native {
            Some(why) => write!(f, " (not native: {why})"),
            None => Ok(()),
        }
    }
}

/// Counters of the AF_XDP half since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XdpCounters {
    /// Datagrams received from the rings.
    pub datagrams_in: u64,
    /// Octets of these datagrams, without headers.
    pub bytes_in: u64,
    /// Received datagrams that were not copied: all that arrived in one part.
    pub in_place_in: u64,
    /// Frames that were held beyond the call that received them, because samples were on loan.
    pub held_in: u64,
    /// Datagrams put into the transmit rings.
    pub datagrams_out: u64,
    /// Octets of these datagrams, without headers.
    pub bytes_out: u64,
    /// Sent datagrams that were not copied.
    pub in_place_out: u64,
    /// Destinations that were left to the kernel's sockets: groups, other interfaces, this host,
    /// unknown neighbors.
    pub by_kernel_out: u64,
    /// Destinations that were left to the kernel's sockets because no frame was free.
    pub no_frame_out: u64,
    /// Received frames with inconsistent lengths, or with a wrong checksum of the IP header.
    pub malformed: u64,
    /// Received datagrams with a wrong checksum.
    pub damaged: u64,
    /// Received datagrams for a port that was closed meanwhile.
    pub closed: u64,
    /// Invalid entries of a ring, which a correct kernel never writes.
    pub invalid_entries: u64,
    /// Failed attempts to send, because the interface is down or gone. The frames stay queued.
    pub refused_flushes: u64,
    /// Frames that the kernel dropped: no free frame, or no room in the ring.
    pub kernel_drops: u64,
}
