//! [`XdpTransport`]: the kernel's UDP sockets, and AF_XDP for the traffic that it supports.
//!
//! The sockets own ports, groups and locators, so that peers see no difference. Outgoing datagrams:
//!
//! | destination | sent by |
//! |---|---|
//! | a neighbor at the interface whose hardware address the kernel knows | AF_XDP |
//! | a neighbor that the kernel does not know yet: sending makes the kernel resolve it | the sockets |
//! | this host, another interface or network, a multicast group | the sockets |
//!
//! The filter redirects datagrams that arrive for the own unicast ports at the interface and at the
//! own queues. Fragments, IP options, other VLANs, other queues, multicast, and datagrams from this
//! host arrive at the sockets. The kernel handles multicast in both directions, since other
//! participants of the host receive it too.
//!
//! Bounds: a datagram must fit into one packet of the interface, by AF_XDP and by the sockets.
//! `commit` does one lookup and one checksum for each destination, and a copy for each but one.
//! `recv` polls the ring, which is memory, and in every [`KERNEL_INTERVAL`]-th call the sockets
//! first.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;

use takt_transport::udp::UdpTransport;
use takt_transport::urgency_buffer::{BELOW_ALL, Wanted};
use takt_transport::{
    Capabilities, Commit, Control, FlowId, FlowSpec, Reach, Receive, RxFrame, Scan, Status, Transport, TransportError,
    TransportEvent, Warning,
};
use takt_wire::Locator;

use crate::config::{Mode, XdpConfig, XdpCounters, XdpReport};
use crate::interface::{FlowHeader, XdpInterface};
use crate::sockets::socket::Socket;

/// Interval, in calls of `recv`, in which the kernel's sockets are polled first. Polling the ring
/// takes some 10 ns, polling the sockets a microsecond.
const KERNEL_INTERVAL: u32 = 128;

/// Maximum number of destinations that one call leaves to the kernel.
const DEFERRED_MAX: usize = 64;

/// UDP transport with AF_XDP at one interface. See the [crate](crate).
#[derive(Debug)]
pub struct XdpTransport {
    /// Declared first, so that the filter stops accepting datagrams before the ports are free for
    /// others.
    interface: XdpInterface,
    udp: UdpTransport,
    report: XdpReport,
    /// Source ports and priority of each flow.
    flow_headers: Vec<Option<FlowHeader>>,
    loaned: bool,
    /// Destinations of the current datagram that are left to the kernel.
    deferred: Vec<Locator>,
    calls: u32,
    /// The last call for datagrams that are not urgent was a full scan, so the caller may sleep
    /// after it.
    scans_all: bool,
    /// The kernel had an urgent datagram at the last poll.
    kernel_has_urgent: bool,
    descriptors: Vec<RawFd>,
    own_warnings: Vec<Warning>,
    /// Reason why a changed interface is left to the kernel.
    refresh_failure: Option<Warning>,
    warnings: Vec<Warning>,
}

impl XdpTransport {
    /// Opens the sockets, attaches or joins the filter, and binds to queues. Needs CAP_NET_ADMIN,
    /// CAP_NET_RAW and CAP_BPF; to join, only the last two. Allocates; later, only flows and
    /// changes of interfaces do.
    ///
    /// # Errors
    /// Those of [`UdpTransport::open`]; the interface does not exist, is not Ethernet, or has no
    /// address; a foreign program or a filter of another user is attached to it; no queue is free;
    /// the kernel has no AF_XDP; a permission is missing.
    pub fn open(config: &XdpConfig) -> Result<Self, TransportError> {
        let udp = UdpTransport::open(&config.udp)?;
        let chosen = udp.status().interfaces.iter().find(|interface| interface.name == config.interface);
        let interface = chosen.filter(|interface| !interface.addresses.is_empty()).ok_or_else(|| {
            let why = "it is not an interface of the UDP transport, or has no address";
            TransportError::new("use interface", &config.interface, io::Error::new(io::ErrorKind::NotFound, why))
        })?;
        let xdp_interface = XdpInterface::open(config, interface)?;
        let report = report(&config.interface, &xdp_interface)?;
        let mut xdp = Self {
            own_warnings: not_native(&report).into_iter().collect(),
            interface: xdp_interface,
            udp,
            report,
            flow_headers: Vec::new(),
            loaned: false,
            deferred: Vec::with_capacity(DEFERRED_MAX),
            calls: 0,
            scans_all: false,
            kernel_has_urgent: false,
            descriptors: Vec::new(),
            refresh_failure: None,
            warnings: Vec::new(),
        };
        xdp.record_flow_header(FlowId::DEFAULT, 0);
        let announced = xdp.udp.status().locators.clone();
        for locator in announced.default_unicast.iter().chain(&announced.metatraffic_unicast) {
            xdp.listen_at(locator, FlowId::DEFAULT, 0);
        }
        xdp.update_descriptors();
        Ok(xdp)
    }

    /// Returns the actual properties of the transport.
    pub fn report(&self) -> &XdpReport {
        &self.report
    }

    /// Returns the counters of the AF_XDP half. A system call.
    pub fn counters(&self) -> XdpCounters {
        self.interface.counters()
    }

    /// Records the source ports and priority of a flow. Allocates.
    fn record_flow_header(&mut self, flow: FlowId, transport_priority: i32) {
        let at = usize::from(flow.0);
        if self.flow_headers.len() <= at {
            self.flow_headers.resize(at + 1, None);
        }
        let [port_v4, port_v6] = self.ports_of(flow);
        // The value is the DSCP, as in the UDP transport.
        let priority = transport_priority.clamp(0, 63) as u8;
        let is_open = port_v4.is_some() || port_v6.is_some();
        self.flow_headers[at] = is_open.then_some(FlowHeader { port_v4, port_v6, priority });
    }

    /// Returns the source ports of an open flow.
    fn ports_of(&self, flow: FlowId) -> [Option<u16>; 2] {
        let anywhere = [Locator::udp_v4(Ipv4Addr::BROADCAST, 1), Locator::udp_v6(Ipv6Addr::LOCALHOST, 1)];
        // tidy-allow(dropped-cause): ports have 16 bits.
        anywhere.map(|to| self.udp.source_of(flow, &to).and_then(|source| u16::try_from(source.port).ok()))
    }

    fn listen_at(&mut self, locator: &Locator, flow: FlowId, urgency: i32) {
        let Some(port) = locator.socket_addr().map(|address| address.port()) else {
            return;
        };
        if let Err(why) = self.interface.listen_at(port, flow, urgency) {
            self.own_warnings.push(Warning {
                what: format!("port {port} receives through kernel sockets: {why}"),
                remedy: format!("open at most {} flows with ports of their own", crate::program::filter::PORTS_MAX - 2),
            });
        }
    }

    /// Updates the descriptors and warnings.
    fn update_descriptors(&mut self) {
        self.descriptors.clear();
        self.descriptors.extend(self.interface.descriptors());
        self.descriptors.extend(self.udp.status().descriptors);
        self.warnings.clear();
        self.warnings
            .extend(self.udp.status().warnings.iter().chain(&self.own_warnings).chain(&self.refresh_failure).cloned());
    }

    /// Leaves a destination of the loaned datagram to the kernel.
    fn defer_to_kernel(&mut self, to: Locator, len: usize, flow: FlowId) -> Result<(), TransportError> {
        if self.deferred.len() == DEFERRED_MAX {
            self.commit_deferred(len, flow)?;
        }
        self.deferred.push(to);
        self.interface.counters_mut().by_kernel_out += 1;
        Ok(())
    }

    /// Commits the loaned datagram to the kernel's sockets for all destinations left to them.
    fn commit_deferred(&mut self, len: usize, flow: FlowId) -> Result<(), TransportError> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        let copy = self.udp.loan()?.get_mut(..len);
        copy.expect("UDP carries whatever one packet does").copy_from_slice(&self.interface.loan()[..len]);
        let committed = self.udp.commit(Commit::new(len, flow, &self.deferred));
        self.deferred.clear();
        committed
    }

    /// Queues the loaned datagram for all destinations.
    fn distribute(
        &mut self,
        len: usize,
        flow: FlowId,
        flow_header: Option<FlowHeader>,
        destinations: &[Locator],
    ) -> Result<(), TransportError> {
        // The last destination by AF_XDP gets the frame itself, after the copies for the others.
        let mut last = None;
        for (at, to) in destinations.iter().enumerate() {
            let Some(route) = flow_header.and_then(|flow_header| self.interface.route(to, len, flow_header)) else {
                self.defer_to_kernel(*to, len, flow)?;
                continue;
            };
            if let Some((before, route)) = last.replace((at, route)) {
                let sent = match self.interface.spare() {
                    Some(frame) => self.interface.send_copy(frame, len, route),
                    None => false,
                };
                if !sent {
                    self.interface.counters_mut().no_frame_out += 1;
                    self.defer_to_kernel(destinations[before], len, flow)?;
                }
            }
        }
        let Some((at, route)) = last else {
            return self.commit_deferred(len, flow);
        };
        match self.interface.spare() {
            Some(next) => {
                self.commit_deferred(len, flow)?;
                self.interface.send_in_place(next, len, route);
                Ok(())
            }
            None => {
                self.interface.counters_mut().no_frame_out += 1;
                self.defer_to_kernel(destinations[at], len, flow)?;
                self.commit_deferred(len, flow)
            }
        }
    }
}

fn report(interface: &str, xdp_interface: &XdpInterface) -> Result<XdpReport, TransportError> {
    let (socket_set, share) = (xdp_interface.binding().sockets(), xdp_interface.binding().share());
    let zero_copy = socket_set.sockets().map(Socket::is_zero_copy).find(|result| !matches!(result, Ok(true)));
    Ok(XdpReport {
        interface: interface.to_owned(),
        queues: socket_set.numbers().collect(),
        is_joined: share.is_joined(),
        mode: share.mode(),
        not_native: share.not_native().map(str::to_owned),
        zero_copy: zero_copy.unwrap_or(Ok(true)).map_err(|e| TransportError::new("ask", "an AF_XDP socket", e))?,
        frame_len: socket_set.umem().shape().chunk_len,
        parts: socket_set.parts(),
        max_message_len: xdp_interface.max_message_len(),
    })
}

fn not_native(report: &XdpReport) -> Option<Warning> {
    let why = report.not_native.as_ref()?;
    Some(Warning {
        what: format!("the filter of {} runs in {} mode: {why}", report.interface, Mode::Generic),
        remedy: "use an interface whose driver has native XDP, or select generic mode".into(),
    })
}

fn refresh_failure(interface: &str, why: &TransportError) -> Warning {
    Warning {
        what: format!("traffic of {interface} uses kernel sockets: {why}"),
        remedy: "remove the cause; AF_XDP is retried at the next change of the interface".into(),
    }
}

fn misuse(why: &'static str) -> TransportError {
    TransportError::new("commit", "a datagram", io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Receives the wanted datagram from the kernel's sockets.
fn receive_from_kernel(
    udp: &mut UdpTransport,
    scan: Scan,
    wanted: Wanted,
) -> Result<Option<RxFrame<'_>>, TransportError> {
    match wanted {
        Wanted::Above(_) => udp.recv(Receive::Any(scan)),
        Wanted::NotUrgent => udp.recv(Receive::NotUrgent(scan)),
    }
}

/// Receives an urgent datagram from the kernel's sockets, and records whether there was one.
fn receive_urgent_from_kernel<'a>(
    udp: &'a mut UdpTransport,
    above: i32,
    has_urgent: &mut bool,
) -> Result<Option<RxFrame<'a>>, TransportError> {
    let found = udp.recv(Receive::Urgent { above })?;
    *has_urgent = found.is_some();
    Ok(found)
}

impl XdpTransport {
    /// Receives the wanted datagram from the rings or the kernel's sockets.
    fn recv_wanted(&mut self, scan: Scan, wanted: Wanted) -> Result<Option<RxFrame<'_>>, TransportError> {
        let Self { udp, interface, calls, scans_all, .. } = self;
        interface.return_to_kernel();
        *calls = calls.wrapping_add(1);
        *scans_all = scan == Scan::All;
        let kernel_first = calls.is_multiple_of(KERNEL_INTERVAL) && scan != Scan::Taken;
        if kernel_first || scan == Scan::All {
            interface.read_neighbor_events();
        }
        if kernel_first {
            if let Some(frame) = receive_from_kernel(udp, Scan::All, wanted)? {
                return Ok(Some(frame));
            }
            return Ok(interface.recv(wanted));
        }
        if let Some(frame) = interface.recv(wanted) {
            return Ok(Some(frame));
        }
        match scan {
            Scan::Hot => Ok(None),
            Scan::Taken | Scan::All => receive_from_kernel(udp, scan, wanted),
        }
    }

    /// Returns the next urgent datagram above this priority from the rings or the kernel's sockets.
    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        let Self { udp, interface, calls, scans_all, kernel_has_urgent, .. } = self;
        interface.return_to_kernel();
        *calls = calls.wrapping_add(1);
        // Urgent datagrams may arrive by the kernel too, but polling it is a system call. It must
        // be polled before a sleep.
        if calls.is_multiple_of(KERNEL_INTERVAL) {
            if let Some(frame) = receive_urgent_from_kernel(udp, above, kernel_has_urgent)? {
                return Ok(Some(frame));
            }
            return Ok(interface.recv(Wanted::Above(above)));
        }
        if let Some(frame) = interface.recv(Wanted::Above(above)) {
            return Ok(Some(frame));
        }
        match *scans_all || *kernel_has_urgent {
            true => receive_urgent_from_kernel(udp, above, kernel_has_urgent),
            false => Ok(None),
        }
    }

    /// Applies changes of the interfaces. Allocates.
    fn refresh(&mut self) -> Result<(), TransportError> {
        self.udp.control(Control::Refresh)?;
        let interface = self.udp.status().interfaces.iter().find(|interface| interface.name == self.report.interface);
        let followed = self.interface.apply_changes(interface).and_then(|is_new| match is_new {
            true => report(&self.report.interface, &self.interface).map(Some),
            false => Ok(None),
        });
        self.refresh_failure = None;
        match followed {
            Ok(None) => {}
            Ok(Some(report)) => self.report = report,
            // The transport continues with the kernel's sockets.
            Err(why) => self.refresh_failure = Some(refresh_failure(&self.report.interface, &why)),
        }
        self.update_descriptors();
        Ok(())
    }
}

impl Transport for XdpTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "xdp", max_message_len: self.report.max_message_len, scans_memory: true }
    }

    fn status(&self) -> Status<'_> {
        let (udp, own) = (self.udp.status(), self.counters());
        let mut stats = udp.stats;
        stats.datagrams_in += own.datagrams_in;
        stats.bytes_in += own.bytes_in;
        stats.datagrams_out += own.datagrams_out;
        stats.bytes_out += own.bytes_out;
        stats.bypassed_in += own.datagrams_in;
        stats.bypassed_out += own.datagrams_out;
        stats.kernel_drops += own.kernel_drops;
        Status { descriptors: &self.descriptors, warnings: &self.warnings, stats, ..udp }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        self.udp.reach(locator)
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let (flow, locators) = self.udp.open_flow(spec)?;
        if flow != FlowId::DEFAULT {
            self.record_flow_header(flow, spec.transport_priority);
        }
        for locator in &locators {
            self.listen_at(locator, flow, spec.transport_priority);
        }
        self.update_descriptors();
        Ok((flow, locators))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.interface.flush();
        // First, because the port may belong to another process afterwards. Only a flow with its
        // own port is in the filter.
        if flow != FlowId::DEFAULT {
            self.interface.close_flow(flow);
        }
        self.udp.close_flow(flow)?;
        if self.ports_of(flow) == [None; 2] {
            self.flow_headers[usize::from(flow.0)] = None;
        }
        self.update_descriptors();
        Ok(())
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.loaned = true;
        Ok(self.interface.loan())
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        if !self.loaned {
            return Err(misuse("commit without a loaned frame"));
        }
        let Commit { flow, destinations, .. } = datagram;
        let len = datagram.assemble(self.interface.loan())?;
        // The sockets do not know a closed flow either, and report the error.
        let flow_header = self.flow_headers.get(usize::from(flow.0)).copied().flatten();
        self.distribute(len, flow, flow_header, destinations)?;
        self.loaned = false;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.interface.flush();
        self.udp.flush()
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        match request {
            Receive::Any(scan) => self.recv_wanted(scan, Wanted::Above(BELOW_ALL)),
            Receive::NotUrgent(scan) => self.recv_wanted(scan, Wanted::NotUrgent),
            Receive::Urgent { above } => self.recv_urgent(above),
        }
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        self.udp.poll_event()
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        match request {
            Control::Refresh => self.refresh(),
            Control::Connect(_) | Control::ReportSources => self.udp.control(request),
        }
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.udp.source_of(flow, destination)
    }
}
