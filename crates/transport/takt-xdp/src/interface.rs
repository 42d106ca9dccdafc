//! AF_XDP half of the transport: datagrams to and from neighbors at one interface.
//!
//! A datagram is written directly into a frame of the umem, with room for the headers before it.
//! Each further destination takes a copy. A received datagram stays where the kernel put it; it is
//! loaned until the next call, or longer if it is held.
//!
//! A ring returns frames in arrival order. While a flow with its own port is urgent, received
//! frames are sorted by urgency first, so that an urgent one is returned before earlier ones
//! ([`urgency_queue`](crate::urgency_queue)).
//!
//! With several queues, a datagram is sent by the one for its priority: the 64 values are divided
//! evenly among them, the lowest to the first. Datagrams of one flow therefore never overtake each
//! other.

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, RawFd};

use takt_packet::{DatagramHeader, EthernetHeader, MacAddress};
use takt_transport::urgency_buffer::Wanted;
use takt_transport::{FlowId, Interface, RxFrame, RxMeta, TransportError, address_towards};
use takt_wire::Locator;

use crate::config::{XdpConfig, XdpCounters};
use crate::neighbors::Neighbors;
use crate::program::filter::Key;
use crate::sockets::queue_binding::{BindingParameters, QueueBinding};
use crate::sockets::socket_set::{QueueLocation, Received};
use crate::sockets::umem::{Frame, Shape};
use crate::syscall;
use crate::urgency_queue::{Arrival, UrgencyQueue};
use crate::wire::{self, End, Marking, PAYLOAD_AT, Refused};

/// Maximum number of datagrams that one call examines for urgent ones.
const EXAMINED_MAX: usize = 256;

/// Port that the filter accepts.
#[derive(Debug, Clone, Copy)]
struct Port {
    number: u16,
    flow: FlowId,
    /// Urgency of its datagrams; higher ones are returned first.
    urgency: i32,
}

/// Maximum length of a UDP datagram over IPv4.
const DATAGRAM_MAX: usize = 65_507;

/// Source ports and priority of outgoing datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowHeader {
    pub(crate) port_v4: Option<u16>,
    pub(crate) port_v6: Option<u16>,
    /// Priority, 0 to 63.
    pub(crate) priority: u8,
}

/// Reachable destination, with the addresses to send from and to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    to: End,
    source_port: u16,
    priority: u8,
}

/// AF_XDP half of the transport. See the [module](self).
#[derive(Debug)]
pub(crate) struct XdpInterface {
    binding: QueueBinding,
    neighbors: Neighbors,
    config: XdpConfig,
    ifindex: u32,
    mac: MacAddress,
    /// Own addresses at the interface, with the lengths of their prefixes. Empty when the interface
    /// is down or gone.
    addresses: Vec<(IpAddr, u8)>,
    /// Ports that the filter accepts, sorted.
    ports: Vec<Port>,
    /// Datagrams taken from a ring and not returned yet; empty unless a port is urgent.
    queue: UrgencyQueue,
    /// Frame of the next datagram.
    loan: Frame,
    /// Frame that the last call returned.
    current: Option<Received>,
    counters: XdpCounters,
    max_message_len: usize,
    /// Maximum length at the current MTU, if that is smaller.
    max_len_at_mtu: usize,
}

/// Resources at one interface, until that is created again.
struct Opened {
    binding: QueueBinding,
    neighbors: Neighbors,
    max_len_at_mtu: usize,
}

/// Binds queues of the interface, with frames that have room for datagrams of at least this length.
fn open(config: &XdpConfig, interface: &Interface, room: usize) -> Result<Opened, TransportError> {
    let failed = |op| move |e| TransportError::new(op, format_args!("AF_XDP on {}", config.interface), e);
    let neighbors = Neighbors::new(interface.index).map_err(failed("read the neighbors of"))?;
    let shape = Shape::for_frames(
        interface.mtu + EthernetHeader::LEN + EthernetHeader::TAG_LEN,
        PAYLOAD_AT + room.max(interface.mtu),
    );
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
        rtps_only: config.rtps_only,
        rx_frames: config.rx_frames,
        tx_frames: config.tx_frames,
    };
    let binding = QueueBinding::acquire(&parameters, neighbors.socket()).map_err(|(op, e)| failed(op)(e))?;
    let tag_len = config.vlan.map_or(0, |_| EthernetHeader::TAG_LEN);
    let packet = interface.mtu.min(binding.sockets().frame_len_max() - EthernetHeader::LEN - tag_len);
    let headers = if config.udp.ipv6 { DatagramHeader::V6_LEN } else { DatagramHeader::V4_LEN };
    Ok(Opened { binding, neighbors, max_len_at_mtu: (packet - headers).min(DATAGRAM_MAX) })
}

impl XdpInterface {
    /// Binds queues of the interface.
    pub(crate) fn open(config: &XdpConfig, interface: &Interface) -> Result<Self, TransportError> {
        let failed = |op| move |e| TransportError::new(op, format_args!("AF_XDP on {}", config.interface), e);
        config.check().map_err(failed("open"))?;
        let Opened { mut binding, neighbors, max_len_at_mtu } = open(config, interface, 0)?;
        let loan = binding.sockets_mut().take().expect("all frames are free");
        let mut xdp = Self {
            binding,
            neighbors,
            config: config.clone(),
            ifindex: interface.index,
            mac: MacAddress::default(),
            addresses: Vec::new(),
            ports: Vec::new(),
            queue: UrgencyQueue::default(),
            loan,
            current: None,
            counters: XdpCounters::default(),
            max_message_len: max_len_at_mtu,
            max_len_at_mtu,
        };
        xdp.update_addresses(Some(interface)).map_err(failed("set up"))?;
        Ok(xdp)
    }

    pub(crate) fn binding(&self) -> &QueueBinding {
        &self.binding
    }

    /// Returns the maximum length of a datagram: it fits one packet of the interface and a frame,
    /// as they were at first.
    pub(crate) fn max_message_len(&self) -> usize {
        self.max_message_len
    }

    /// Applies the current state of the interface. While it is missing or down, the kernel's
    /// sockets carry everything. If it was created again, opens it again; reports whether that was
    /// done.
    pub(crate) fn apply_changes(&mut self, interface: Option<&Interface>) -> Result<bool, TransportError> {
        let is_new = interface.is_some_and(|interface| interface.index != self.ifindex);
        if let Some(interface) = interface.filter(|_| is_new) {
            self.addresses.clear();
            self.reopen(interface)?;
        }
        let followed = self.update_addresses(interface);
        followed.map_err(|e| TransportError::new("follow", &self.config.interface, e))?;
        Ok(is_new)
    }

    /// Opens the resources again. Datagrams queued at the old interface are lost; the content of
    /// the loaned frame is kept.
    fn reopen(&mut self, interface: &Interface) -> Result<(), TransportError> {
        let mut opened = open(&self.config, interface, self.max_message_len)?;
        let loan = opened.binding.sockets_mut().take().expect("all frames are free");
        let range = PAYLOAD_AT..PAYLOAD_AT + self.max_message_len;
        let written = self.binding.sockets().umem().bytes(&self.loan, range.clone());
        opened.binding.sockets_mut().umem_mut().bytes_mut(&loan, range).copy_from_slice(written);
        // The counters of the old sockets are lost with them.
        self.counters = self.counters();
        (self.current, self.queue) = (None, UrgencyQueue::default());
        self.sort_if_urgent();
        self.loan = loan;
        self.ifindex = interface.index;
        Opened { binding: self.binding, neighbors: self.neighbors, max_len_at_mtu: self.max_len_at_mtu } = opened;
        Ok(())
    }

    fn update_addresses(&mut self, interface: Option<&Interface>) -> io::Result<()> {
        let now: Vec<_> = interface.map(|i| i.addresses.clone()).unwrap_or_default();
        if let Some(interface) = interface {
            let name = CString::new(interface.name.as_str())?;
            self.mac = syscall::hardware_address(self.neighbors.socket(), &name)?;
        }
        for Port { number, .. } in &self.ports {
            for (removed, _) in self.addresses.iter().filter(|address| !now.contains(address)) {
                self.binding.close(self.key(*removed, *number))?;
            }
            for (new, _) in now.iter().filter(|address| !self.addresses.contains(address)) {
                self.binding.open(self.key(*new, *number))?;
            }
        }
        self.addresses = now;
        Ok(())
    }

    fn key(&self, address: IpAddr, port: u16) -> Key {
        Key::udp(address, port, self.config.vlan.unwrap_or(0))
    }

    /// Receives datagrams to this port, for this flow, from now on; before others if `urgency` is
    /// above 0. May allocate.
    pub(crate) fn listen_at(&mut self, port: u16, flow: FlowId, urgency: i32) -> io::Result<()> {
        if let Err(at) = self.ports.binary_search_by_key(&port, |entry| entry.number) {
            self.ports.insert(at, Port { number: port, flow, urgency });
        }
        self.sort_if_urgent();
        let opened = self.addresses.iter().try_for_each(|(address, _)| self.binding.open(self.key(*address, port)));
        opened.inspect_err(|_| self.close_port(port))
    }

    /// Leaves datagrams to the ports of this flow to the kernel from now on.
    pub(crate) fn close_flow(&mut self, flow: FlowId) {
        let of_flow: Vec<u16> =
            self.ports.iter().filter(|entry| entry.flow == flow).map(|entry| entry.number).collect();
        of_flow.into_iter().for_each(|port| self.close_port(port));
        for arrival in self.queue.remove_flow(flow) {
            self.binding.sockets_mut().return_to_kernel(arrival.received);
        }
    }

    fn close_port(&mut self, port: u16) {
        self.ports.retain(|entry| entry.number != port);
        for (address, _) in &self.addresses {
            // Fails only for a port that was not open.
            drop(self.binding.close(self.key(*address, port)));
        }
    }

    /// Returns how to send a datagram of this length to a destination; `None` if AF_XDP cannot.
    pub(crate) fn route(&mut self, to: &Locator, len: usize, header: FlowHeader) -> Option<Route> {
        if len > self.max_len_at_mtu || self.addresses.is_empty() {
            return None;
        }
        let to = to.socket_addr().filter(|to| to.port() != 0)?;
        let source_port = if to.is_ipv4() { header.port_v4? } else { header.port_v6? };
        let end = End { mac: self.neighbors.find(to.ip())?, address: to };
        Some(Route { to: end, source_port, priority: header.priority })
    }

    /// Returns the room for the next datagram.
    pub(crate) fn loan(&mut self) -> &mut [u8] {
        let range = PAYLOAD_AT..PAYLOAD_AT + self.max_message_len;
        self.binding.sockets_mut().umem_mut().bytes_mut(&self.loan, range)
    }

    /// Takes a frame for sending in addition to the loaned one, if one is free.
    pub(crate) fn spare(&mut self) -> Option<Frame> {
        let spare = self.binding.sockets_mut().take();
        if spare.is_some() {
            return spare;
        }
        self.flush();
        self.binding.sockets_mut().take()
    }

    /// Queues the loaned datagram without a copy, and loans `next`. Returns false if the headers
    /// cannot be written.
    pub(crate) fn send_in_place(&mut self, next: Frame, len: usize, route: Route) -> bool {
        let frame = std::mem::replace(&mut self.loan, next);
        self.counters.in_place_out += 1;
        self.send(frame, len, route)
    }

    /// Queues a copy of the loaned datagram in `frame`.
    pub(crate) fn send_copy(&mut self, frame: Frame, len: usize, route: Route) -> bool {
        let range = PAYLOAD_AT..PAYLOAD_AT + len;
        self.binding.sockets_mut().umem_mut().copy(&self.loan, &frame, range);
        self.send(frame, len, route)
    }

    fn send(&mut self, frame: Frame, len: usize, route: Route) -> bool {
        let source = address_towards(&self.addresses, route.to.address.ip());
        let from = source.map(|ip| End { mac: self.mac, address: SocketAddr::new(ip, route.source_port) });
        let marking = Marking { priority: route.priority, vid: self.config.vlan };
        let sockets = self.binding.sockets_mut();
        let umem = sockets.umem_mut();
        let all = 0..umem.frame_len();
        let encapsulated =
            from.and_then(|from| wire::encapsulate(umem.bytes_mut(&frame, all), len, from, route.to, marking));
        let Some(range) = encapsulated else {
            umem.put(frame);
            return false;
        };
        let queue = usize::from(route.priority) * sockets.count() / 64;
        sockets.send(frame, range, queue);
        self.counters.datagrams_out += 1;
        self.counters.bytes_out += len as u64;
        true
    }

    /// Sends the queued frames. Those that the interface refuses stay queued.
    pub(crate) fn flush(&mut self) {
        if self.binding.sockets_mut().flush().is_err() {
            self.counters.refused_flushes += 1;
        }
    }

    /// Returns the last received frame to the kernel.
    pub(crate) fn return_to_kernel(&mut self) {
        if let Some(received) = self.current.take() {
            self.binding.sockets_mut().return_to_kernel(received);
        }
    }

    /// Reads changes of neighbors, and wakes drivers that wait. A system call.
    pub(crate) fn read_neighbor_events(&mut self) {
        self.neighbors.listen();
        self.binding.sockets().wake_receivers();
    }

    /// Starts to sort datagrams if a port is urgent.
    fn sort_if_urgent(&mut self) {
        for port in self.ports.iter().filter(|port| port.urgency > 0) {
            self.queue.enable_sorting(port.urgency, self.config.rx_frames as usize);
        }
    }

    /// Receives the wanted datagram, loaned until [`return_to_kernel`](Self::return_to_kernel).
    /// Makes no system call.
    pub(crate) fn recv(&mut self, wanted: Wanted) -> Option<RxFrame<'_>> {
        let next = if self.queue.is_sorting() {
            self.fill_queue();
            match wanted {
                Wanted::Above(above) => self.queue.pop_above(above)?,
                Wanted::NotUrgent => self.queue.pop_not_urgent()?,
            }
        } else if matches!(wanted, Wanted::Above(0..)) {
            return None;
        } else {
            self.next()?
        };
        Some(self.make_frame(next))
    }

    /// Takes arrived frames from the rings, up to the limit of one call.
    fn fill_queue(&mut self) {
        for _ in 0..EXAMINED_MAX {
            if self.queue.is_blocked() {
                return;
            }
            let Some(arrival) = self.next() else { return };
            let urgency = self.ports.iter().find(|port| port.flow == arrival.meta.flow).map_or(0, |port| port.urgency);
            self.queue.push(urgency, arrival);
        }
    }

    fn make_frame(&mut self, Arrival { received, range, meta }: Arrival) -> RxFrame<'_> {
        self.counters.datagrams_in += 1;
        self.counters.bytes_in += range.len() as u64;
        self.counters.in_place_in += u64::from(received.is_in_place());
        let received = self.current.insert(received);
        let sockets = self.binding.sockets();
        RxFrame::new(&sockets.bytes(received)[range], meta).with_frame(sockets.loaned_frame(received))
    }

    /// Takes the next frame with a valid datagram, and the range of the datagram in it.
    fn next(&mut self) -> Option<Arrival> {
        loop {
            let received = self.binding.sockets_mut().receive()?;
            let refused = match wire::decapsulate(self.binding.sockets().bytes(&received)) {
                Ok(datagram) => match self.ports.binary_search_by_key(&datagram.to.port(), |entry| entry.number) {
                    Ok(at) => {
                        let meta = RxMeta {
                            source: datagram.from.into(),
                            local: datagram.to.into(),
                            flow: self.ports[at].flow,
                            multicast: false,
                        };
                        return Some(Arrival { received, range: datagram.payload, meta });
                    }
                    Err(_) => &mut self.counters.closed,
                },
                Err(Refused::Malformed) => &mut self.counters.malformed,
                Err(Refused::Damaged) => &mut self.counters.damaged,
            };
            *refused += 1;
            self.binding.sockets_mut().return_to_kernel(received);
        }
    }

    pub(crate) fn counters(&self) -> XdpCounters {
        let sockets = || self.binding.sockets().sockets();
        // An AF_XDP socket always answers this query.
        let drops: u64 = sockets().map(|socket| socket.kernel_drops().unwrap_or(0)).sum();
        let invalid: u64 = sockets().map(crate::sockets::socket::Socket::invalid_entries).sum();
        XdpCounters {
            kernel_drops: self.counters.kernel_drops + drops,
            invalid_entries: self.counters.invalid_entries + invalid,
            held_in: self.counters.held_in + self.binding.sockets().held_total(),
            ..self.counters
        }
    }

    /// Returns the counters for the owner, which counts destinations left to the kernel.
    pub(crate) fn counters_mut(&mut self) -> &mut XdpCounters {
        &mut self.counters
    }

    /// Returns descriptors that are readable when a datagram or a change of neighbors is pending.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let sockets = self.binding.sockets().sockets().map(|socket| socket.as_fd().as_raw_fd());
        sockets.chain([self.neighbors.socket().as_raw_fd()])
    }
}
