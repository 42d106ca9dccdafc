//! RTPS directly on Ethernet, without IP, UDP and address resolution; the layer-2 transport that
//! all backends share.
//!
//! [`EthernetTransport`] encodes and decodes frames; a [`FramePort`] sends and receives the frames
//! of one interface. [`PacketPort`] is the port over AF_PACKET; other crates provide ports over
//! AF_XDP and DPDK. All of them interoperate.
//!
//! ```text
//! | destination 6 | source 6 | [802.1Q tag 4] | 0x88b5 | version, flags, length, ports: 8 | RTPS message | padding |
//! ```
//!
//! [`takt_packet::TaktHeader`] is the header of eight octets. A locator has the kind
//! [`Locator::KIND_TAKT_ETHERNET`]: a hardware address and a port of 16 bits. Ports are those of
//! UDP (RTPS 2.5 §9.6.2.3). Groups have the hardware address that IPv4 assigns (RFC 1112 §6.4). A
//! port belongs to one participant of an interface at a time ([`ports`]).
//!
//! Cost: the message is written directly into the frame that is sent; every destination but the
//! last takes a copy. `commit` and `recv` make no system calls, `flush` makes one.
//!
//! Every received frame is validated. A frame that is not for an open port at this address is
//! counted and dropped ([`EthernetCounters`]).
//!
//! Deliberately not here: fragments (RTPS has them), routers, several interfaces in one transport,
//! and checksums, which the frame has.

mod config;
mod flows;
mod frame_port;
mod packet;
mod ports;

use std::io;
use std::net::IpAddr;

use takt_packet::{EtherType, EthernetFrame, EthernetHeader, MacAddress, TaktDatagram, TaktHeader, VlanTag};
use takt_wire::Locator;

pub use config::{EthernetConfig, EthernetCounters};
use flows::{FlowHeader, Flows};
pub use frame_port::{FramePort, FramePortStats};
pub use packet::{PacketConfig, PacketPort};
use ports::{PortNames, Taken};

use crate::urgency_buffer::{BELOW_ALL, Slot, UrgencyBuffer, Wanted};
use crate::{
    Capabilities, Commit, Control, FlowId, FlowSpec, Interface, Locators, Reach, Receive, RxFrame, RxMeta, Scan,
    Status, Transport, TransportError, TransportEvent, TransportStats,
};

/// Maximum number of frames that one call examines.
const FRAMES_PER_CALL: usize = UrgencyBuffer::SLOTS;

/// Minimum MTU: RTPS messages of 512 octets fit.
const MTU_MIN: usize = 576;

/// Maximum length of a message, limited by the length field.
const MESSAGE_MAX: usize = 65_535;

/// Transport of a participant on an Ethernet interface. See the [module](self).
#[derive(Debug)]
pub struct EthernetTransport<P: FramePort> {
    port: P,
    config: EthernetConfig,
    index: Option<u16>,
    /// Group of discovery and user data.
    group: MacAddress,
    /// Flows and their open ports.
    flows: Flows,
    names: PortNames,
    /// Unicast ports of this participant: metatraffic and user data.
    own: [Taken; 2],
    /// Ports of the domain's groups: metatraffic and user data; `None` without multicast.
    group_ports: Option<[u16; 2]>,
    interfaces: Vec<Interface>,
    locators: Locators,
    max_message_len: usize,
    is_loaned: bool,
    /// A change of the interface was returned as an event, and not yet applied.
    is_change_reported: bool,
    urgency_buffer: UrgencyBuffer,
    counters: EthernetCounters,
    stats: TransportStats,
}

impl<P: FramePort> EthernetTransport<P> {
    /// Takes the ports of a participant on this interface. Allocates; later, only opening and
    /// closing flows allocates.
    ///
    /// # Errors
    /// The [`Fixed`](crate::udp::ParticipantIndex::Fixed) index is taken, the domain has no
    /// multicast port, the interface has an MTU below 576, or the machine refuses.
    pub fn open(port: P, config: &EthernetConfig) -> Result<Self, TransportError> {
        let interface = port.interface().clone();
        if port.mtu() < MTU_MIN {
            let why = format!("the MTU is {}; expected at least {MTU_MIN}", port.mtu());
            let why = io::Error::new(io::ErrorKind::Unsupported, why);
            return Err(TransportError::new("use interface", interface.name, why));
        }
        let mut names = PortNames::new(&interface.name);
        let (index, own) = names.take_participant(config)?;
        let group = MacAddress::of_group(IpAddr::V4(config.multicast_group)).ok_or_else(|| {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "not a multicast group");
            TransportError::new("use", config.multicast_group, why)
        })?;
        let mut transport = Self {
            max_message_len: (port.mtu() - TaktHeader::LEN).min(MESSAGE_MAX),
            flows: Flows::new(own[1].number()),
            port,
            config: config.clone(),
            index,
            group,
            names,
            own,
            group_ports: None,
            interfaces: vec![interface],
            locators: Locators::default(),
            is_loaned: false,
            is_change_reported: false,
            urgency_buffer: UrgencyBuffer::default(),
            counters: EthernetCounters::default(),
            stats: TransportStats::default(),
        };
        transport.listen()?;
        transport.announce();
        Ok(transport)
    }

    /// Returns the participant index of the well-known ports in use; `None` for other ports.
    pub fn participant_index(&self) -> Option<u16> {
        self.index
    }

    /// Returns the frame port.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// Returns the counters of dropped frames. See [`FramePort::stats`] for those dropped before.
    pub fn counters(&self) -> EthernetCounters {
        self.counters
    }

    fn listen(&mut self) -> Result<(), TransportError> {
        let failed = |op| move |e| TransportError::new(op, "an Ethernet interface", e);
        for taken in &self.own {
            self.port.listen_at(taken.number()).map_err(failed("listen at"))?;
        }
        if !self.config.multicast {
            return Ok(());
        }
        let domain = self.config.domain_id;
        let ports = (self.config.ports.discovery_multicast(domain), self.config.ports.user_multicast(domain));
        let (Some(metatraffic), Some(user)) = ports else {
            return Err(TransportError::no_ports(domain, &self.config.ports));
        };
        for port in [metatraffic, user] {
            self.port.listen_at(port).map_err(failed("listen at"))?;
        }
        self.port.join(self.group).map_err(failed("join a group at"))?;
        self.group_ports = Some([metatraffic, user]);
        Ok(())
    }

    /// Applies changes of the interface.
    fn refresh(&mut self) -> Result<(), TransportError> {
        self.is_change_reported = false;
        let refreshed = self.port.refresh();
        self.interfaces = vec![self.port.interface().clone()];
        self.announce();
        refreshed.map_err(|e| TransportError::new("follow", &self.interfaces[0].name, e))
    }

    /// Updates the locators.
    fn announce(&mut self) {
        let [metatraffic, user] =
            [0, 1].map(|at| vec![Locator::takt_ethernet(self.port.mac().0, self.own[at].number())]);
        let group = |at: usize| {
            let ports = self.group_ports.iter().map(|ports| ports[at]);
            ports.map(|port| Locator::takt_ethernet(self.group.0, port)).collect()
        };
        self.locators = Locators {
            metatraffic_unicast: metatraffic,
            metatraffic_multicast: group(0),
            default_unicast: user,
            default_multicast: group(1),
        };
    }

    /// Writes the headers around the message of `len` octets in the loaned frame, and queues the
    /// frame or a copy.
    fn send(&mut self, (to, port): ([u8; 6], u16), len: usize, flow_header: FlowHeader, is_copy: bool) {
        let vlan = self.port.vlan();
        let header = EthernetHeader {
            destination: MacAddress(to),
            source: self.port.mac(),
            tag: vlan.map(|vid| VlanTag { pcp: flow_header.pcp, dei: false, vid }),
            ether_type: EtherType::TAKT,
        };
        let before = header.header_len();
        let frame_len = before + TaktHeader::LEN + len;
        let frame = &mut self.port.loan()[..frame_len];
        let (ethernet, rest) = frame.split_at_mut(before);
        let takt = TaktHeader { destination_port: port, source_port: flow_header.port };
        let written = header.emit(ethernet).and_then(|_| takt.emit(rest));
        debug_assert!(written.is_ok(), "the length was checked");
        let sent = if is_copy { self.port.send_copy(frame_len) } else { self.port.send(frame_len) };
        if sent {
            self.stats.datagrams_out += 1;
            self.stats.bytes_out += len as u64;
        } else {
            self.stats.send_errors.would_block += 1;
        }
    }

    /// Parses the current frame, if it is for this participant.
    fn parse_current(&mut self) -> Option<RxMeta> {
        let Ok(frame) = EthernetFrame::parse(self.port.received()) else {
            self.counters.malformed += 1;
            return None;
        };
        let header = frame.header();
        let is_group = header.destination.is_group();
        let is_ours = if is_group { header.destination == self.group } else { header.destination == self.port.mac() };
        let vlan = header.tag.map_or(0, |tag| tag.vid);
        if header.ether_type != EtherType::TAKT || !is_ours || vlan != self.port.vlan().unwrap_or(0) {
            self.counters.not_addressed += 1;
            return None;
        }
        let Ok(datagram) = TaktDatagram::parse(frame.payload()) else {
            self.counters.malformed += 1;
            return None;
        };
        let TaktHeader { destination_port, source_port } = *datagram.header();
        if header.source.is_group() || source_port == 0 {
            self.counters.malformed += 1;
            return None;
        }
        let flow = if is_group {
            self.group_ports.filter(|ports| ports.contains(&destination_port)).map(|_| FlowId::DEFAULT)
        } else if self.own.iter().any(|own| own.number() == destination_port) {
            Some(FlowId::DEFAULT)
        } else {
            self.flows.at(destination_port)
        };
        let Some(flow) = flow else {
            self.counters.port_closed += 1;
            return None;
        };
        Some(RxMeta {
            source: Locator::takt_ethernet(header.source.0, source_port),
            local: Locator::takt_ethernet(header.destination.0, destination_port),
            flow,
            multicast: is_group,
        })
    }

    /// Returns the next wanted datagram among the waiting and the arriving ones: in the current
    /// frame, or copied.
    fn receive_wanted(&mut self, scan: Scan, wanted: Wanted) -> Result<Option<(Option<Slot>, RxMeta)>, TransportError> {
        self.urgency_buffer.release();
        for _ in 0..FRAMES_PER_CALL {
            if !self.urgency_buffer.has_room() {
                break;
            }
            let found = self.port.recv(scan).map_err(|e| TransportError::new("receive from", self.port.name(), e))?;
            if !found {
                break;
            }
            let Some(meta) = self.parse_current() else { continue };
            let urgency = self.flows.urgency(meta.flow);
            if self.urgency_buffer.is_wanted(urgency, wanted) {
                return Ok(Some((None, meta)));
            }
            let is_taken = self.urgency_buffer.push(urgency, meta, message(self.port.received()));
            self.counters.malformed += u64::from(!is_taken);
        }
        Ok(self.urgency_buffer.pop(wanted).map(|(slot, meta)| (Some(slot), meta)))
    }

    /// Counts the datagram and returns its frame.
    fn make_frame(&mut self, (slot, meta): (Option<Slot>, RxMeta)) -> RxFrame<'_> {
        let frame = match &slot {
            Some(slot) => RxFrame::new(self.urgency_buffer.bytes(slot), meta),
            None => RxFrame::new(message(self.port.received()), meta).with_frame(self.port.loaned_frame()),
        };
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += frame.len() as u64;
        frame
    }

    /// Returns the number of header octets before a message.
    fn headroom(&self) -> usize {
        let tag = if self.port.vlan().is_some() { EthernetHeader::TAG_LEN } else { 0 };
        EthernetHeader::LEN + tag + TaktHeader::LEN
    }
}

/// Returns the message in a frame that was parsed before.
fn message(frame: &[u8]) -> &[u8] {
    let frame = EthernetFrame::parse(frame);
    frame.ok().and_then(|frame| Some(TaktDatagram::parse(frame.payload()).ok()?.payload())).unwrap_or_default()
}

fn misuse(why: &'static str) -> TransportError {
    TransportError::new("commit", "a datagram", io::Error::new(io::ErrorKind::InvalidInput, why))
}

impl<P: FramePort> Transport for EthernetTransport<P> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: self.port.name(),
            max_message_len: self.max_message_len,
            scans_memory: self.port.scans_memory(),
        }
    }

    fn status(&self) -> Status<'_> {
        let port = self.port.stats();
        let mut stats = self.stats;
        stats.kernel_drops = port.dropped_in;
        stats.truncated = port.truncated;
        stats.send_errors.network_unreachable = port.refused_out;
        Status {
            interfaces: &self.interfaces,
            descriptors: self.port.descriptors(),
            warnings: self.port.warnings(),
            ..Status::new(&self.locators, stats)
        }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        Reach::from(locator.mac_and_port().is_some() && (self.config.multicast || !locator.is_multicast()))
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        if !spec.own_port {
            return Ok((self.flows.share(spec.transport_priority)?, Vec::new()));
        }
        let port = self.names.take_any()?;
        let number = port.number();
        self.port.listen_at(number).map_err(|e| TransportError::new("listen at port", number, e))?;
        let opened = self.flows.open(spec.transport_priority, port);
        if opened.is_err() {
            self.port.close(number);
        }
        let opened = opened?;
        self.urgency_buffer.await_urgency(self.flows.most_urgent(), self.max_message_len);
        Ok((opened, vec![Locator::takt_ethernet(self.port.mac().0, number)]))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.flush()?;
        if let Some(port) = self.flows.close(flow)? {
            self.port.close(port.number());
            self.urgency_buffer.remove_flow(flow);
            self.urgency_buffer.await_urgency(self.flows.most_urgent(), self.max_message_len);
        }
        Ok(())
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.is_loaned = true;
        let (from, len) = (self.headroom(), self.max_message_len);
        Ok(&mut self.port.loan()[from..from + len])
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        let flow_header = self.flows.header(datagram.flow)?;
        if !self.is_loaned {
            return Err(misuse("no frame is loaned"));
        }
        let (from, room) = (self.headroom(), self.max_message_len);
        let len = datagram.assemble(&mut self.port.loan()[from..from + room])?;
        self.is_loaned = false;
        // The last destination gets the frame itself, after the copies for the others.
        let mut last = None;
        for to in datagram.destinations {
            match to.mac_and_port() {
                Some(target) if self.config.multicast || !to.is_multicast() => {
                    if let Some(before) = last.replace(target) {
                        self.send(before, len, flow_header, true);
                    }
                }
                _ => self.stats.send_errors.unserved += 1,
            }
        }
        if let Some(target) = last {
            self.send(target, len, flow_header, false);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        // The port has counted the lost frames.
        if self.port.flush().is_err() {
            self.counters.refused_flushes += 1;
        }
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        let (scan, wanted) = match request {
            Receive::Any(scan) => (scan, Wanted::Above(BELOW_ALL)),
            Receive::NotUrgent(scan) => (scan, Wanted::NotUrgent),
            Receive::Urgent { .. } if !self.urgency_buffer.awaits() => return Ok(None),
            Receive::Urgent { above } => (Scan::Hot, Wanted::Above(above)),
        };
        let found = self.receive_wanted(scan, wanted)?;
        Ok(found.map(|found| self.make_frame(found)))
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        let is_new = self.port.may_have_changed() && !std::mem::replace(&mut self.is_change_reported, true);
        is_new.then_some(TransportEvent::InterfacesChanged)
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        match request {
            Control::Connect(to) => self.reach(to).or_unserved(to),
            Control::Refresh => self.refresh(),
            Control::ReportSources => Ok(()),
        }
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        destination.mac()?;
        let header = self.flows.header(flow).ok()?; // tidy-allow(dropped-cause): such a flow has no source.
        Some(Locator::takt_ethernet(self.port.mac().0, header.port))
    }
}
