//! What an AF_XDP transport is asked to be, and what it has become.

use std::fmt;
use std::io;

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

/// Which of an interface's queues a participant has. A queue is one participant's at a time, of all processes; the kernel's
/// sockets carry what arrives by others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queues {
    /// So many of those that nobody has.
    Free(u32),
    /// These.
    These(Vec<u32>),
    /// All that the interface has now.
    All,
}

/// Configuration of an [`XdpTransport`](crate::XdpTransport).
#[derive(Debug, Clone, PartialEq)]
pub struct XdpConfig {
    /// The interface whose frames are sent and received by AF_XDP.
    pub interface: String,
    /// Its queues. Of several a datagram leaves by the one for its flow's priority (TRANSPORT_PRIORITY): the values 0 to 63 are
    /// divided evenly among them, the lowest to the first. They are received from in turn.
    pub queues: Queues,
    /// Where the filter is to run; `None`: as it does for others at the interface, or natively if the driver can, else generically;
    /// generically on a veth, where others would pay for the other one.
    pub mode: Option<Mode>,
    /// The VLAN, 0 to 4094, of what goes by AF_XDP; 0 says that frames are tagged for their priority alone. The priority (PCP) is the
    /// upper half of the DSCP. Addresses and neighbours are those of the interface itself. `None`: no tags. Frames of another VLAN are
    /// left to the kernel; one without a VLAN may have a tag or not.
    pub vlan: Option<u16>,
    /// Frames that can wait to be received by each queue, a power of two from 64 to 32,768. Each takes 2 KiB, or 4 KiB where the MTU is
    /// above 1774. A packet that is longer than 3840 octets takes several.
    pub rx_frames: u32,
    /// Frames that can be on their way out, by all queues, a power of two from 64 to 32,768; of the same size. Where the MTU is above
    /// 3822, a packet takes as many as the longest one does, of whatever length it is.
    pub tx_frames: u32,
    /// Take only what begins with `RTPS`; the rest that comes to our ports arrives through the kernel's sockets.
    pub rtps_only: bool,
    /// The kernel's sockets: ports, groups, and every other interface.
    pub udp: UdpConfig,
}

impl XdpConfig {
    /// The defaults for a domain: one queue, no tags, and kernel sockets at the same interface alone.
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

    /// Can it be at all?
    pub(crate) fn check(&self) -> io::Result<()> {
        let odd = |frames: &u32| !frames.is_power_of_two() || !(64..=32_768).contains(frames);
        let why = if let Some(frames) = [self.rx_frames, self.tx_frames].into_iter().find(odd) {
            format!("{frames} frames: a power of two from 64 to 32,768 is possible")
        } else if let Some(vlan) = self.vlan.filter(|vlan| *vlan > 4094) {
            format!("VLAN {vlan}: 0 to 4094 is possible")
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

/// What an AF_XDP transport has become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpReport {
    /// The interface.
    pub interface: String,
    /// Its queues that this participant has.
    pub queues: Vec<u32>,
    /// Other participants, of this process or others, had the filter there already.
    pub is_joined: bool,
    /// Where the filter runs.
    pub mode: Mode,
    /// Why it does not run in the driver, if that was tried.
    pub not_native: Option<String>,
    /// Does the driver read and write the frames themselves, instead of copies?
    pub zero_copy: bool,
    /// Octets of a frame in the shared memory.
    pub frame_len: usize,
    /// How many of these a packet may take, as where the MTU is above 3,822.
    pub parts: u32,
    /// The largest datagram, in octets.
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

/// What the AF_XDP half has carried and refused, since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XdpCounters {
    /// Datagrams received from the ring.
    pub datagrams_in: u64,
    /// Their octets, without headers.
    pub bytes_in: u64,
    /// Of those datagrams the ones that were read where the kernel, or the driver, put them: all that came in one part.
    pub in_place_in: u64,
    /// Frames that were held beyond the call that received them: samples are borrowed from them.
    pub held_in: u64,
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
