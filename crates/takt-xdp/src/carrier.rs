//! The AF_XDP half of the transport: datagrams to neighbours at one interface, and from there to our ports.
//!
//! A datagram is written where it is sent from: the loaned frame is one of the umem, with room for the headers before it. A second
//! destination takes a copy. A received one is lent where the kernel put it, until the next call.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use takt_packet::MacAddress;
use takt_transport::{FlowId, Interface, RxFrame, RxMeta, TransportError};
use takt_wire::Locator;

use crate::attach::{self, Attached};
use crate::config::{XdpConfig, XdpCounters};
use crate::filter::{Filter, Rules};
use crate::neighbours::Neighbours;
use crate::socket::{Socket, Wanted};
use crate::syscall;
use crate::umem::{Frame, Umem};
use crate::wire::{self, End, HEADERS, PAYLOAD_AT, Refused};

/// The largest MTU for which frames of 2 KiB suffice: what the kernel leaves of one, less the header of Ethernet with a tag.
const SMALL_MTU: usize = 2048 - Umem::RX_RESERVE - 18;

/// The largest MTU at which any driver has a frame in one part: a page, less what the kernel keeps of it.
const ONE_PART_MTU: usize = 3400;

/// What gives outgoing datagrams their source port and priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) port: u16,
    pub(crate) traffic_class: u8,
}

/// A destination that can be sent to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    mac: MacAddress,
    ip: Ipv4Addr,
    port: u16,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Carrier {
    /// First, so that nothing is sent our way any more when the socket goes.
    attached: Attached,
    filter: Filter,
    socket: Socket,
    neighbours: Neighbours,
    ifindex: u32,
    mac: MacAddress,
    /// Ours at the interface, with the lengths of their prefixes. Empty when the interface is gone.
    addresses: Vec<(Ipv4Addr, u8)>,
    /// The ports that the filter takes, sorted, and the flow that each is of.
    ports: Vec<(u16, FlowId)>,
    /// Where the next datagram is written.
    loan: Frame,
    /// What was handed out by the last call.
    lent: Option<Frame>,
    counters: XdpCounters,
    max_message_len: usize,
}

impl Carrier {
    /// Loads and attaches the filter, and binds the socket.
    pub(crate) fn open(config: &XdpConfig, interface: &Interface) -> Result<Self, TransportError> {
        let failed = |op| move |e| TransportError::new(op, format_args!("AF_XDP on {}", config.interface), e);
        for frames in [config.rx_frames, config.tx_frames] {
            if !frames.is_power_of_two() || !(64..=32_768).contains(&frames) {
                let why = format!("{frames} frames: a power of two from 64 to 32,768 is possible");
                return Err(failed("open")(io::Error::new(io::ErrorKind::InvalidInput, why)));
            }
        }
        let frame_len = if interface.mtu <= SMALL_MTU { 2048 } else { 4096 };
        let frame_len_max = frame_len - Umem::RX_RESERVE;
        let several_parts = interface.mtu > ONE_PART_MTU;
        let rules = Rules { rtps_only: config.rtps_only, frame_len_max, several_parts };
        let filter = Filter::load(rules).map_err(failed("load the filter of"))?;
        let attached = attach::attach(&filter, interface.index, config.mode).map_err(failed("attach the filter of"))?;
        let wanted = Wanted {
            ifindex: interface.index,
            queue: config.queue,
            frame_len,
            rx_frames: config.rx_frames,
            tx_frames: config.tx_frames,
            copy: attached.mode == crate::Mode::Generic,
        };
        let mut socket = Socket::open(&wanted).map_err(failed("bind"))?;
        let neighbours = Neighbours::new(interface.index).map_err(failed("read the neighbours of"))?;
        let loan = socket.take().expect("no frame is in use yet");
        let mut carrier = Self {
            attached,
            filter,
            socket,
            neighbours,
            ifindex: interface.index,
            mac: MacAddress::default(),
            addresses: Vec::new(),
            ports: Vec::new(),
            loan,
            lent: None,
            counters: XdpCounters::default(),
            max_message_len: interface.mtu.min(frame_len_max - 14) + 14 - HEADERS,
        };
        carrier.follow(Some(interface)).map_err(failed("set up"))?;
        let queue = carrier.filter.connect(config.queue, carrier.socket.as_fd());
        queue.map_err(failed("connect a queue of"))?;
        Ok(carrier)
    }

    pub(crate) fn attached(&self) -> &Attached {
        &self.attached
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The largest datagram: what fits one packet of the interface, and a frame.
    pub(crate) fn max_message_len(&self) -> usize {
        self.max_message_len
    }

    /// Takes over the interface's addresses as they are now. Without the interface everything is left to the kernel, for good:
    /// the filter and the socket's queue went with it.
    pub(crate) fn follow(&mut self, interface: Option<&Interface>) -> io::Result<()> {
        let interface = interface.filter(|interface| interface.index == self.ifindex);
        let of_v4 = |(ip, prefix_len): &(IpAddr, u8)| match ip {
            IpAddr::V4(ip) => Some((*ip, *prefix_len)),
            IpAddr::V6(_) => None,
        };
        let now: Vec<_> = interface.iter().flat_map(|i| &i.addresses).filter_map(of_v4).collect();
        if let Some(interface) = interface {
            let name = std::ffi::CString::new(interface.name.as_str())?;
            self.mac = syscall::hardware_address(self.neighbours.socket(), &name)?;
        }
        for (port, _) in &self.ports {
            for (gone, _) in self.addresses.iter().filter(|address| !now.contains(address)) {
                self.filter.close(*gone, *port)?;
            }
            for (new, _) in now.iter().filter(|address| !self.addresses.contains(address)) {
                self.filter.open(*new, *port)?;
            }
        }
        self.addresses = now;
        Ok(())
    }

    /// Receives what comes to this port, for this flow, from now on.
    pub(crate) fn listen_at(&mut self, port: u16, flow: FlowId) -> io::Result<()> {
        if let Err(at) = self.ports.binary_search_by_key(&port, |known| known.0) {
            self.ports.insert(at, (port, flow));
        }
        let opened = self.addresses.iter().try_for_each(|(address, _)| self.filter.open(*address, port));
        opened.inspect_err(|_| self.close_port(port))
    }

    /// Leaves what comes to the port of this flow to the kernel from now on.
    pub(crate) fn close_flow(&mut self, flow: FlowId) {
        let of_flow: Vec<u16> = self.ports.iter().filter(|known| known.1 == flow).map(|known| known.0).collect();
        of_flow.into_iter().for_each(|port| self.close_port(port));
    }

    fn close_port(&mut self, port: u16) {
        self.ports.retain(|known| known.0 != port);
        for (address, _) in &self.addresses {
            // It can only fail for a port that was not open.
            drop(self.filter.close(*address, port));
        }
    }

    /// How to send to a destination; `None`: not by this way.
    pub(crate) fn way(&mut self, to: &Locator) -> Option<Way> {
        if to.kind != Locator::KIND_UDP_V4 || self.addresses.is_empty() {
            return None;
        }
        let [.., a, b, c, d] = to.address;
        let ip = Ipv4Addr::new(a, b, c, d);
        let port = u16::try_from(to.port).ok().filter(|port| *port != 0)?; // tidy-allow(dropped-cause): no such port.
        Some(Way { mac: self.neighbours.find(ip)?, ip, port })
    }

    /// Where the next datagram is written.
    pub(crate) fn loan(&mut self) -> &mut [u8] {
        let range = PAYLOAD_AT..PAYLOAD_AT + self.max_message_len;
        self.socket.umem_mut().bytes_mut(&self.loan, range)
    }

    /// A frame to be sent besides the loaned one, if one is free now.
    pub(crate) fn spare(&mut self) -> Option<Frame> {
        let spare = self.socket.take();
        if spare.is_some() {
            return spare;
        }
        self.flush();
        self.socket.take()
    }

    /// Queues the loaned datagram as it stands; `next` is loaned from now on. False: it is too long for a datagram.
    pub(crate) fn send_in_place(&mut self, next: Frame, len: usize, exit: Exit, way: Way) -> bool {
        let frame = std::mem::replace(&mut self.loan, next);
        self.counters.in_place_out += 1;
        self.send(frame, len, exit, way)
    }

    /// Queues a copy of the loaned datagram in `frame`.
    pub(crate) fn send_copy(&mut self, frame: Frame, len: usize, exit: Exit, way: Way) -> bool {
        let range = PAYLOAD_AT..PAYLOAD_AT + len;
        self.socket.umem_mut().copy(&self.loan, &frame, range);
        self.send(frame, len, exit, way)
    }

    fn send(&mut self, frame: Frame, len: usize, exit: Exit, way: Way) -> bool {
        let from = End { mac: self.mac, ip: self.source(way.ip), port: exit.port };
        let to = End { mac: way.mac, ip: way.ip, port: way.port };
        let umem = self.socket.umem_mut();
        let all = 0..umem.frame_len();
        let Some(range) = wire::enclose(umem.bytes_mut(&frame, all), len, from, to, exit.traffic_class) else {
            umem.put(frame);
            return false;
        };
        self.socket.send(frame, range);
        self.counters.datagrams_out += 1;
        self.counters.bytes_out += len as u64;
        true
    }

    /// Our address in the destination's network, or any.
    fn source(&self, to: Ipv4Addr) -> Ipv4Addr {
        let shares = |&&(own, len): &&(Ipv4Addr, u8)| {
            let differ = own.to_bits() ^ to.to_bits();
            differ.leading_zeros() >= u32::from(len)
        };
        let near = self.addresses.iter().find(shares).or(self.addresses.first());
        near.map_or(Ipv4Addr::UNSPECIFIED, |(own, _)| *own)
    }

    /// Sends what is queued. What the interface refuses now stays queued.
    pub(crate) fn flush(&mut self) {
        if self.socket.flush().is_err() {
            self.counters.refused_flushes += 1;
        }
    }

    /// What was handed out is not used any more.
    pub(crate) fn give_back(&mut self) {
        if let Some(frame) = self.lent.take() {
            self.socket.lend_to_receive(frame);
        }
    }

    /// Hears the news of neighbours, and wakes a driver that waits. A system call.
    pub(crate) fn look_around(&mut self) {
        self.neighbours.listen();
        if self.socket.receive_needs_wakeup() {
            self.socket.wake_receiver();
        }
    }

    /// The next datagram, lent until [`give_back`](Self::give_back). No system call.
    pub(crate) fn recv(&mut self) -> Option<RxFrame<'_>> {
        let (frame, range, meta) = self.next()?;
        self.counters.datagrams_in += 1;
        self.counters.bytes_in += range.len() as u64;
        let lent = self.lent.insert(frame);
        Some(RxFrame::new(self.socket.umem().bytes(lent, range), meta))
    }

    fn next(&mut self) -> Option<(Frame, Range<usize>, RxMeta)> {
        loop {
            let (frame, range) = self.socket.receive()?;
            let start = range.start;
            let refused = match wire::open(self.socket.umem().bytes(&frame, range)) {
                Ok(datagram) => match self.ports.binary_search_by_key(&datagram.to.1, |known| known.0) {
                    Ok(at) => {
                        let meta = RxMeta {
                            source: Locator::udp_v4(datagram.from.0, datagram.from.1),
                            local: Locator::udp_v4(datagram.to.0, datagram.to.1),
                            flow: self.ports[at].1,
                            multicast: false,
                        };
                        let payload = start + datagram.payload.start..start + datagram.payload.end;
                        return Some((frame, payload, meta));
                    }
                    Err(_) => &mut self.counters.closed,
                },
                Err(Refused::Malformed) => &mut self.counters.malformed,
                Err(Refused::Damaged) => &mut self.counters.damaged,
            };
            *refused += 1;
            self.socket.lend_to_receive(frame);
        }
    }

    pub(crate) fn counters(&self) -> XdpCounters {
        XdpCounters {
            // A socket of AF_XDP always answers this.
            kernel_drops: self.socket.kernel_drops().unwrap_or(0),
            strange_entries: self.socket.strange_entries(),
            ..self.counters
        }
    }

    /// To be counted by who leaves destinations to the kernel.
    pub(crate) fn counters_mut(&mut self) -> &mut XdpCounters {
        &mut self.counters
    }

    /// Readable when there is something to receive, or news of neighbours.
    pub(crate) fn descriptors(&self) -> [RawFd; 2] {
        [self.socket.as_fd().as_raw_fd(), self.neighbours.socket().as_raw_fd()]
    }
}
