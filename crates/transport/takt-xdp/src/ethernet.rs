//! [`XdpPort`]: RTPS on Ethernet over AF_XDP. Sends and receives frames of Takt's own EtherType at
//! one interface.
//!
//! | | by AF_XDP | by AF_PACKET ([`PacketPort`]) |
//! |---|---|---|
//! | out | to other hardware addresses | to groups, and to this host |
//! | in | frames to the own address and ports, by the own queues | groups, this host, other queues, unknown versions, longer frames, tags that the driver or a bridge has stripped |
//!
//! Both have the same ports, so that each frame arrives by one of them.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;

use takt_packet::{EthernetFrame, EthernetHeader, MacAddress};
use takt_transport::ethernet::{FramePort, FramePortStats, PacketConfig, PacketPort};
use takt_transport::{Interface, Scan, TransportError, Warning};
use takt_wire::SharedFrame;

use crate::config::{Mode, Queues};
use crate::program::filter::{Key, PORTS_MAX};
use crate::sockets::queue_binding::{BindingParameters, QueueBinding};
use crate::sockets::socket_set::{QueueLocation, Received};
use crate::sockets::umem::{Frame, Shape};

/// Offset of an outgoing frame in a frame of the umem: its message begins 22 octets later, at a
/// cache line.
const FRAME_AT: usize = 42;

/// Configuration of an [`XdpPort`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdpPortConfig {
    /// Interface, its VLAN, and the AF_PACKET sockets for the other frames.
    pub packet: PacketConfig,
    /// Queues of the interface. Frames of other queues arrive by AF_PACKET; frames are sent by the
    /// first queue.
    pub queues: Queues,
    /// Mode of the filter; `None`: see [`XdpConfig::mode`](crate::XdpConfig::mode).
    pub mode: Option<Mode>,
    /// Receive frames of each queue, a power of two from 64 to 32,768.
    pub rx_frames: u32,
    /// Transmit frames of AF_XDP, a power of two from 64 to 32,768.
    pub tx_frames: u32,
}

impl XdpPortConfig {
    /// Returns the defaults for an interface: one free queue, 4,096 receive frames, 1,024 transmit
    /// frames.
    pub fn new(interface: &str) -> Self {
        Self {
            packet: PacketConfig::new(interface),
            queues: Queues::Free(1),
            mode: None,
            rx_frames: 4096,
            tx_frames: 1024,
        }
    }
}

/// Frame port over AF_XDP. See the [module](self).
#[derive(Debug)]
pub struct XdpPort {
    binding: QueueBinding,
    packet: PacketPort,
    config: XdpPortConfig,
    /// Interface when the queues were bound; its MTU is limited by the frames of the umem.
    interface: Interface,
    /// Address in the table of the filter.
    mac: MacAddress,
    /// Any socket of the interface's network namespace.
    any: UnixDatagram,
    shape: Shape,
    loan: Frame,
    /// Current received frame.
    current: Option<Received>,
    /// AF_PACKET is polled first.
    is_packet_socket_first: bool,
    ports: Vec<u16>,
    descriptors: Vec<RawFd>,
    in_place: u64,
    received: u64,
    refused: u64,
    own_warnings: Vec<Warning>,
    warnings: Vec<Warning>,
}

fn bind_queues(
    config: &XdpPortConfig,
    interface: &Interface,
    shape: Shape,
    any: &UnixDatagram,
) -> Result<QueueBinding, TransportError> {
    let failed = |op| move |e| TransportError::new(op, format_args!("AF_XDP on {}", config.packet.interface), e);
    let name = CString::new(interface.name.as_str()).map_err(|e| failed("open")(e.into()))?;
    let parameters = BindingParameters {
        location: QueueLocation {
            ifindex: interface.index,
            name: &name,
            queues: &config.queues,
            mtu: interface.mtu,
            shape,
        },
        mode: config.mode,
        rtps_only: false,
        rx_frames: config.rx_frames,
        tx_frames: config.tx_frames,
    };
    QueueBinding::acquire(&parameters, any.as_fd()).map_err(|(op, e)| failed(op)(e))
}

impl XdpPort {
    /// Opens the sockets, and joins or attaches the filter. Needs CAP_NET_ADMIN, CAP_NET_RAW and
    /// CAP_BPF. Allocates; later only for ports, groups, and changes of the interface.
    ///
    /// # Errors
    /// Those of [`PacketPort::open`]; no queue is free, another program is attached to the
    /// interface, or the kernel has no AF_XDP.
    pub fn open(config: &XdpPortConfig) -> Result<Self, TransportError> {
        let failed = |op| move |e| TransportError::new(op, format_args!("AF_XDP on {}", config.packet.interface), e);
        for frames in [config.rx_frames, config.tx_frames] {
            if !frames.is_power_of_two() || !(64..=32_768).contains(&frames) {
                let why = format!("{frames} frames: expected a power of two from 64 to 32,768");
                return Err(failed("configure")(io::Error::new(io::ErrorKind::InvalidInput, why)));
            }
        }
        let packet = PacketPort::open(&config.packet)?;
        let any = UnixDatagram::unbound().map_err(failed("open"))?;
        let longest = packet.mtu() + EthernetHeader::LEN_MAX;
        let shape = Shape::for_frames(longest, FRAME_AT + longest);
        let mut binding = bind_queues(config, packet.interface(), shape, &any)?;
        let loan = binding.sockets_mut().take().expect("all frames are free");
        let mut port = Self {
            binding,
            config: config.clone(),
            interface: packet.interface().clone(),
            mac: packet.mac(),
            packet,
            any,
            shape,
            loan,
            current: None,
            is_packet_socket_first: false,
            ports: Vec::new(),
            descriptors: Vec::new(),
            in_place: 0,
            received: 0,
            refused: 0,
            own_warnings: Vec::new(),
            warnings: Vec::new(),
        };
        port.update_descriptors();
        Ok(port)
    }

    /// Returns the mode of the filter.
    pub fn mode(&self) -> Mode {
        self.binding.share().mode()
    }

    /// Returns the number of frames received by AF_XDP.
    pub fn received_by_xdp(&self) -> u64 {
        self.received
    }

    /// Updates the MTU and the descriptors.
    fn update_descriptors(&mut self) {
        self.interface.mtu = self.packet.mtu().min(self.binding.sockets().frame_len_max() - EthernetHeader::LEN_MAX);
        self.descriptors.clear();
        self.descriptors.extend(self.binding.sockets().numbered().map(|(_, socket)| socket.as_raw_fd()));
        self.descriptors.extend(self.packet.descriptors());
        self.warnings.clear();
        self.warnings.extend(self.packet.warnings().iter().chain(&self.own_warnings).cloned());
    }

    fn key(&self, port: u16) -> Key {
        Key::ethernet(self.mac, port, self.config.packet.vlan.unwrap_or(0))
    }

    /// Takes a frame for sending in addition to the loaned one, if one is free.
    fn spare(&mut self) -> Option<Frame> {
        let spare = self.binding.sockets_mut().take();
        if spare.is_some() {
            return spare;
        }
        self.flush_queues();
        self.binding.sockets_mut().take()
    }

    /// Sends the queued frames. Those that the interface refuses stay queued; the refusal is
    /// counted.
    fn flush_queues(&mut self) {
        if self.binding.sockets_mut().flush().is_err() {
            self.refused += 1;
        }
    }

    fn dispatch(&mut self, len: usize, keep: bool) -> bool {
        let sockets = self.binding.sockets_mut();
        let frame = sockets.umem().bytes(&self.loan, FRAME_AT..FRAME_AT + len);
        let Some(destination) = EthernetFrame::destination(frame) else { return false };
        if destination.is_group() || destination == self.mac {
            self.packet.loan()[..len].copy_from_slice(frame);
            return self.packet.send(len);
        }
        let Some(spare) = self.spare() else { return false };
        let sockets = self.binding.sockets_mut();
        let frame = if keep {
            sockets.umem_mut().copy(&self.loan, &spare, FRAME_AT..FRAME_AT + len);
            spare
        } else {
            self.in_place += 1;
            std::mem::replace(&mut self.loan, spare)
        };
        // Padding must not reveal earlier contents of the frame.
        let end = FRAME_AT + len.max(EthernetFrame::LEN_MIN);
        sockets.umem_mut().bytes_mut(&frame, FRAME_AT + len..end).fill(0);
        sockets.send(frame, FRAME_AT..end, 0);
        true
    }

    /// Receives a frame by AF_XDP; reports whether there was one.
    fn receive(&mut self) -> bool {
        let received = self.binding.sockets_mut().receive();
        self.current = received;
        self.received += u64::from(self.current.is_some());
        self.current.is_some()
    }

    /// Opens the resources again. Frames queued at the old interface are lost; the content of the
    /// loaned frame is kept.
    fn reopen(&mut self) -> Result<(), TransportError> {
        let mut binding = bind_queues(&self.config, self.packet.interface(), self.shape, &self.any)?;
        let loan = binding.sockets_mut().take().expect("all frames are free");
        let umem = self.binding.sockets().umem();
        let written = FRAME_AT..umem.frame_len();
        let octets = umem.bytes(&self.loan, written.clone());
        binding.sockets_mut().umem_mut().bytes_mut(&loan, written).copy_from_slice(octets);
        (self.binding, self.loan, self.current) = (binding, loan, None);
        self.interface = self.packet.interface().clone();
        self.mac = self.packet.mac();
        for at in 0..self.ports.len() {
            self.take_port(self.ports[at]);
        }
        Ok(())
    }

    fn take_port(&mut self, port: u16) {
        if let Err(why) = self.binding.open(self.key(port)) {
            self.own_warnings.push(Warning {
                what: format!("port {port} receives through AF_PACKET: {why}"),
                remedy: format!("open at most {} flows with ports of their own", PORTS_MAX - 4),
            });
        }
    }
}

impl FramePort for XdpPort {
    fn name(&self) -> &'static str {
        "xdp-ethernet"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn mac(&self) -> MacAddress {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.interface.mtu
    }

    fn vlan(&self) -> Option<u16> {
        self.packet.vlan()
    }

    fn loan(&mut self) -> &mut [u8] {
        let umem = self.binding.sockets_mut().umem_mut();
        let range = FRAME_AT..umem.frame_len();
        umem.bytes_mut(&self.loan, range)
    }

    fn send(&mut self, len: usize) -> bool {
        self.dispatch(len, false)
    }

    fn send_copy(&mut self, len: usize) -> bool {
        self.dispatch(len, true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_queues();
        self.packet.flush()
    }

    fn recv(&mut self, scan: Scan) -> io::Result<bool> {
        if let Some(received) = self.current.take() {
            self.binding.sockets_mut().return_to_kernel(received);
        }
        // Alternating, so that neither starves the other; polling only reads memory for both.
        self.is_packet_socket_first = !self.is_packet_socket_first;
        if self.is_packet_socket_first && self.packet.recv(Scan::Taken)? {
            return Ok(true);
        }
        if self.receive() {
            return Ok(true);
        }
        if scan == Scan::All {
            self.binding.sockets().wake_receivers();
        }
        self.packet.recv(scan)
    }

    fn received(&self) -> &[u8] {
        match &self.current {
            Some(received) => self.binding.sockets().bytes(received),
            None => self.packet.received(),
        }
    }

    fn loaned_frame(&self) -> Option<SharedFrame<'_>> {
        self.binding.sockets().loaned_frame(self.current.as_ref()?)
    }

    fn listen_at(&mut self, port: u16) -> io::Result<()> {
        self.packet.listen_at(port)?;
        if !self.ports.contains(&port) {
            self.ports.push(port);
            self.take_port(port);
            self.update_descriptors();
        }
        Ok(())
    }

    fn close(&mut self, port: u16) {
        self.packet.close(port);
        self.ports.retain(|open| *open != port);
        // Fails only for a port that was not open.
        drop(self.binding.close(self.key(port)));
    }

    fn join(&mut self, group: MacAddress) -> io::Result<()> {
        self.packet.join(group)
    }

    fn leave(&mut self, group: MacAddress) {
        self.packet.leave(group);
    }

    fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    fn scans_memory(&self) -> bool {
        true
    }

    fn may_have_changed(&self) -> bool {
        self.packet.may_have_changed()
    }

    fn refresh(&mut self) -> io::Result<()> {
        self.packet.refresh()?;
        let (index, mac) = (self.packet.interface().index, self.packet.mac());
        if index != 0 && index != self.interface.index {
            self.reopen().map_err(|e| e.source)?;
        } else if mac != self.mac {
            for at in 0..self.ports.len() {
                // The port is in the table, or was never accepted.
                drop(self.binding.close(self.key(self.ports[at])));
            }
            self.mac = mac;
            for at in 0..self.ports.len() {
                self.take_port(self.ports[at]);
            }
        }
        self.update_descriptors();
        Ok(())
    }

    fn stats(&self) -> FramePortStats {
        let packet = self.packet.stats();
        let sockets = || self.binding.sockets().sockets();
        // An AF_XDP socket always answers this query.
        let dropped: u64 = sockets().map(|socket| socket.kernel_drops().unwrap_or(0)).sum();
        FramePortStats {
            dropped_in: packet.dropped_in + dropped,
            malformed: packet.malformed + sockets().map(crate::sockets::socket::Socket::invalid_entries).sum::<u64>(),
            refused_out: packet.refused_out + self.refused,
            in_place_out: self.in_place,
            ..packet
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}
