//! [`PacketPort`]: frames over AF_PACKET with mapped rings, on any Ethernet interface.
//!
//! The port has two sockets. The socket at the interface receives frames of [`EtherType::TAKT`]
//! into a ring and sends from a ring. The socket at `lo` carries frames for group members on this
//! host and for the interface's own hardware address, which no interface returns. It receives into
//! a ring, but sends each frame by a system call: `lo` releases a slot of a transmit ring before it
//! has copied the frame. Other traffic is unaffected, since both sockets receive copies of frames
//! of one EtherType.
//!
//! A [filter](filter) in the kernel rejects frames for other addresses, VLANs and ports.
//!
//! # Tags
//! The kernel strips tags before it looks for sockets of an EtherType. With a VLAN, the socket
//! therefore receives all frames of the interface, and the filter selects. This costs a few
//! instructions for every packet of the interface. At `lo`, another EtherType replaces that of the
//! tag ([`LOCAL_TAG_TYPE`]), so that the tag arrives.
//!
//! # Requirements
//! CAP_NET_RAW to open the port; no privilege afterwards, not even to follow an interface that is
//! deleted and created again. The rings are kernel memory that does not count as locked
//! (`RLIMIT_MEMLOCK`).
//!
//! # Loss of the interface
//! While an interface is down, frames sent to it are refused and counted; when it is up again,
//! traffic continues. When it was deleted, a new interface of the same name takes its place
//! ([`refresh`](FramePort::refresh)).

mod filter;
mod slots;
mod socket;
mod syscall;

use std::cell::Cell;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixDatagram;

use takt_packet::{EtherType, MacAddress};

use super::{FramePort, FramePortStats};
use crate::udp::syscall::interface_mtu;
use crate::udp::watch::Watch;
use crate::{Interface, Scan, TransportError, Warning};
use filter::Direction;
use slots::Slots;
use socket::PacketSocket;

/// Replaces [`EtherType::VLAN`] in frames at `lo`, so that the kernel leaves the tag in place: the
/// second EtherType that IEEE 802 reserves for local experiments. Such frames never leave the host.
const LOCAL_TAG_TYPE: EtherType = EtherType(0x88b6);

/// Offset of the EtherType.
const ETHER_TYPE_AT: usize = 12;

/// Number of empty hot scans between two reads of the netlink socket, which are system calls.
const SCANS_PER_POLL: u32 = 1024;

/// Configuration of a [`PacketPort`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketConfig {
    /// Name of the interface.
    pub interface: String,
    /// VLAN ID of the frames' tag, 1 to 4,094; 0 for a priority tag, `None` for untagged frames.
    pub vlan: Option<u16>,
    /// Receive slots, a power of two from 64 to 32,768. The size of a slot is the smallest power of
    /// two that is at least 2 KiB and at least the MTU plus 128 octets. The ring for frames from
    /// this host has a quarter as many slots.
    pub rx_frames: u32,
    /// Transmit slots of the same size, a power of two from 64 to 32,768.
    pub tx_frames: u32,
    /// Whether frames bypass the queueing discipline of the interface: lower latency, but no
    /// shaping.
    pub bypass_qdisc: bool,
}

impl PacketConfig {
    /// Returns the defaults for an interface: no VLAN, 2,048 receive slots, 512 transmit slots,
    /// with its queueing discipline.
    pub fn new(interface: &str) -> Self {
        Self { interface: interface.to_owned(), vlan: None, rx_frames: 2048, tx_frames: 512, bypass_qdisc: false }
    }

    fn check(&self) -> Result<(), String> {
        for frames in [self.rx_frames, self.tx_frames] {
            if !frames.is_power_of_two() || !(64..=32_768).contains(&frames) {
                return Err(format!("{frames} frames: expected a power of two from 64 to 32,768"));
            }
        }
        match self.vlan {
            Some(vid) if vid > 4094 => Err(format!("VLAN {vid}: expected 0 to 4,094")),
            _ => Ok(()),
        }
    }

    /// Returns the VLAN ID, except that of a priority tag, which the kernel strips and does not
    /// report.
    fn true_vlan(&self) -> Option<u16> {
        self.vlan.filter(|vid| *vid != 0)
    }
}

/// Frame port over AF_PACKET. See the [module](self).
#[derive(Debug)]
pub struct PacketPort {
    config: PacketConfig,
    interface: Interface,
    mac: MacAddress,
    wire: PacketSocket,
    local: PacketSocket,
    /// Index of `lo`.
    loopback: u32,
    /// Socket that received the current frame.
    current: Option<Direction>,
    /// Socket that is polled first.
    next_socket: Direction,
    /// Open ports, ascending.
    ports: Vec<u16>,
    groups: Vec<MacAddress>,
    watch: Option<Watch>,
    has_changed: bool,
    /// Hot scans since the last read of the netlink socket.
    scans: u32,
    descriptors: Vec<RawFd>,
    /// Frames for this host that were lost for lack of kernel memory.
    refused: u64,
    dropped: Cell<u64>,
    warnings: Vec<Warning>,
}

impl PacketPort {
    /// Opens both sockets. Needs CAP_NET_RAW. Allocates; later only for ports, groups, and changes
    /// of the interface.
    ///
    /// # Errors
    /// There is no such interface, it is not Ethernet, the configuration is invalid, CAP_NET_RAW is
    /// missing, or the machine refuses.
    pub fn open(config: &PacketConfig) -> Result<Self, TransportError> {
        let failed = |op| move |e| TransportError::new(op, format_args!("AF_PACKET on {}", config.interface), e);
        config.check().map_err(|why| failed("configure")(io::Error::new(io::ErrorKind::InvalidInput, why)))?;
        let any = UnixDatagram::unbound().map_err(failed("get an interface for"))?;
        let (interface, mac) = query_interface(any.as_fd(), &config.interface).map_err(failed("use"))?;
        let loopback = syscall::interface_index(any.as_fd(), c"lo");
        let loopback = loopback.map_err(failed("find the loopback interface for"))?;
        let slot_len = Slots::len_for(interface.mtu);
        let (received, sent) = (config.rx_frames as usize, config.tx_frames as usize);
        let wire = PacketSocket::open(slot_len, received, sent).map_err(failed("open"))?;
        let local = PacketSocket::open(slot_len, received / 4, 0).map_err(failed("open"))?;
        if config.bypass_qdisc {
            wire.bypass_qdisc().map_err(failed("bypass the queueing discipline of"))?;
        }
        let watch = Watch::new();
        let warnings = watch.as_ref().err().map(|e| Warning {
            what: format!("changes of interface {} are not detected: {e}", config.interface),
            remedy: "allow netlink sockets (NETLINK_ROUTE)".into(),
        });
        let mut port = Self {
            config: config.clone(),
            interface,
            mac,
            wire,
            local,
            loopback,
            current: None,
            next_socket: Direction::Wire,
            ports: Vec::new(),
            groups: Vec::new(),
            watch: watch.ok(), // tidy-allow(dropped-cause): the warning contains the cause.
            has_changed: false,
            scans: 0,
            descriptors: Vec::new(),
            refused: 0,
            dropped: Cell::new(0),
            warnings: warnings.into_iter().collect(),
        };
        port.attach().map_err(failed("bind"))?;
        let sockets = [port.wire.as_raw_fd(), port.local.as_raw_fd()];
        port.descriptors =
            sockets.into_iter().chain(port.watch.as_ref().map(|watch| watch.as_fd().as_raw_fd())).collect();
        Ok(port)
    }

    /// Binds both sockets, so that they receive from the current interface.
    fn attach(&mut self) -> io::Result<()> {
        self.renew_filters()?;
        let (of_wire, of_local) = match self.config.true_vlan() {
            Some(_) => (None, LOCAL_TAG_TYPE),
            None => (Some(EtherType::TAKT.0), EtherType::TAKT),
        };
        self.wire.bind(self.interface.index, of_wire)?;
        self.local.bind(self.loopback, Some(of_local.0))
    }

    fn renew_filters(&self) -> io::Result<()> {
        let vlan = self.config.true_vlan();
        for (direction, socket) in [(Direction::Wire, &self.wire), (Direction::Local, &self.local)] {
            syscall::attach_filter(socket.as_fd(), &filter::program(direction, self.mac, vlan, &self.ports))?;
        }
        Ok(())
    }

    /// Sends the loaned frame to this host.
    fn send_here(&mut self, len: usize) {
        let frame = &mut self.wire.loan()[..len];
        let disguised = self.config.true_vlan().is_some();
        if disguised {
            frame[ETHER_TYPE_AT..ETHER_TYPE_AT + 2].copy_from_slice(&LOCAL_TAG_TYPE.0.to_be_bytes());
        }
        if syscall::send(self.local.as_fd(), frame).is_err() {
            self.refused += 1;
        }
        if disguised {
            frame[ETHER_TYPE_AT..ETHER_TYPE_AT + 2].copy_from_slice(&EtherType::VLAN.0.to_be_bytes());
        }
    }

    /// Queues or sends the loaned frame, on the sockets that its destination requires.
    fn dispatch(&mut self, len: usize, keep: bool) -> bool {
        let Some(destination) = self.wire.loan()[..len].first_chunk().copied().map(MacAddress) else { return false };
        if destination == self.mac {
            self.send_here(len);
            return true;
        }
        if destination.is_group() {
            self.send_here(len);
        }
        self.wire.queue(len, keep)
    }

    /// Finds the next frame of either socket. The sockets alternate, so that neither starves the
    /// other.
    fn next(&mut self) -> bool {
        self.wire.release_current();
        self.local.release_current();
        let (first, second) = match self.next_socket {
            Direction::Wire => (Direction::Wire, Direction::Local),
            Direction::Local => (Direction::Local, Direction::Wire),
        };
        self.current = [first, second].into_iter().find(|direction| match direction {
            Direction::Wire => self.wire.recv(),
            Direction::Local => self.local.recv(),
        });
        match self.current {
            Some(Direction::Wire) => self.next_socket = Direction::Local,
            Some(Direction::Local) => {
                self.next_socket = Direction::Wire;
                let frame = self.local.received_mut();
                if self.config.true_vlan().is_some() && frame.len() > ETHER_TYPE_AT + 2 {
                    frame[ETHER_TYPE_AT..ETHER_TYPE_AT + 2].copy_from_slice(&EtherType::VLAN.0.to_be_bytes());
                }
            }
            None => {}
        }
        self.current.is_some()
    }

    /// Reads interface events from the kernel. A system call.
    fn read_interface_events(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        watch.listen();
        // A deleted interface has no index.
        let ifindex = Some(self.interface.index).filter(|index| *index != 0);
        if watch.is_affected(ifindex) {
            self.has_changed = true;
            // An interface that goes down keeps the socket readable until its error is read.
            drop((self.wire.take_error(), self.local.take_error()));
        }
    }
}

/// Looks up the current state of an Ethernet interface in the network namespace of any socket. IP
/// addresses are not queried.
fn query_interface(any: BorrowedFd<'_>, name: &str) -> io::Result<(Interface, MacAddress)> {
    let label = CString::new(name)?;
    let interface = Interface {
        name: name.to_owned(),
        index: syscall::interface_index(any, &label)?,
        addresses: Vec::new(),
        mtu: interface_mtu(any, &label)?,
        loopback: false,
        multicast: true,
    };
    Ok((interface, syscall::hardware_address(any, &label)?))
}

impl FramePort for PacketPort {
    fn name(&self) -> &'static str {
        "packet"
    }

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn mac(&self) -> MacAddress {
        self.mac
    }

    fn mtu(&self) -> usize {
        // The MTU can grow, but the slots cannot.
        self.interface.mtu.min(self.wire.room() - 18)
    }

    fn vlan(&self) -> Option<u16> {
        self.config.vlan
    }

    fn loan(&mut self) -> &mut [u8] {
        self.wire.loan()
    }

    fn send(&mut self, len: usize) -> bool {
        self.dispatch(len, false)
    }

    fn send_copy(&mut self, len: usize) -> bool {
        self.dispatch(len, true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.wire.flush()
    }

    fn recv(&mut self, scan: Scan) -> io::Result<bool> {
        if self.next() {
            return Ok(true);
        }
        match scan {
            Scan::Taken => return Ok(false),
            Scan::Hot => {
                self.scans += 1;
                if self.scans < SCANS_PER_POLL {
                    return Ok(false);
                }
                self.scans = 0;
            }
            Scan::All => {}
        }
        self.read_interface_events();
        // Retries frames that wait for kernel memory; refused frames are counted.
        drop(self.wire.flush());
        Ok(self.next())
    }

    fn received(&self) -> &[u8] {
        match self.current {
            Some(Direction::Wire) => self.wire.received(),
            Some(Direction::Local) => self.local.received(),
            None => &[],
        }
    }

    fn listen_at(&mut self, port: u16) -> io::Result<()> {
        if let Err(at) = self.ports.binary_search(&port) {
            self.ports.insert(at, port);
            self.renew_filters()?;
        }
        Ok(())
    }

    fn close(&mut self, port: u16) {
        self.ports.retain(|open| *open != port);
        // If this fails, the former filter accepts more than necessary, which is harmless.
        drop(self.renew_filters());
    }

    fn join(&mut self, group: MacAddress) -> io::Result<()> {
        self.wire.set_membership(self.interface.index, group, true)?;
        self.groups.push(group);
        Ok(())
    }

    fn leave(&mut self, group: MacAddress) {
        if let Some(at) = self.groups.iter().position(|joined| *joined == group) {
            self.groups.swap_remove(at);
            // Fails only if the interface, and with it the membership, is gone.
            drop(self.wire.set_membership(self.interface.index, group, false));
        }
    }

    fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    fn scans_memory(&self) -> bool {
        true
    }

    fn may_have_changed(&self) -> bool {
        self.has_changed
    }

    fn refresh(&mut self) -> io::Result<()> {
        self.has_changed = false;
        let former = (self.interface.index, self.mac);
        match query_interface(self.wire.as_fd(), &self.interface.name) {
            Ok((interface, mac)) => (self.interface, self.mac) = (interface, mac),
            // The interface may be created again.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => self.interface.index = 0,
            Err(e) => return Err(e),
        }
        if self.interface.index == 0 || former == (self.interface.index, self.mac) {
            return Ok(());
        }
        self.attach()?;
        if former.0 != self.interface.index {
            self.groups.iter().try_for_each(|group| self.wire.set_membership(self.interface.index, *group, true))?;
        }
        Ok(())
    }

    fn stats(&self) -> FramePortStats {
        let dropped = self.dropped.get() + self.wire.take_drops() + self.local.take_drops();
        self.dropped.set(dropped);
        FramePortStats {
            dropped_in: dropped,
            truncated: self.wire.truncated + self.local.truncated,
            malformed: self.wire.malformed + self.local.malformed,
            refused_out: self.refused + self.wire.refused,
            in_place_out: self.wire.in_place,
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}
