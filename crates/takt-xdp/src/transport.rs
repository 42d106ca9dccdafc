//! [`XdpTransport`]: the kernel's UDP sockets, and AF_XDP for what it can carry.
//!
//! The sockets own ports, groups and locators, so that a peer cannot tell the difference. What goes which way:
//!
//! | to | by |
//! |---|---|
//! | a neighbour at the interface whose hardware address the kernel knows | AF_XDP |
//! | one that the kernel does not know yet: sending to it makes the kernel ask | the sockets |
//! | this host, another interface or network, a multicast group | the sockets |
//!
//! What comes in to our unicast ports by the interface and our queues of it is taken by the filter; fragments, options, other
//! VLANs, other queues, multicast and what comes from this host arrive at the sockets. Multicast is left to the kernel both
//! ways, since other participants of the host want it too.
//!
//! Bounds: a datagram has at most what one packet of the interface carries, whatever way it goes. `commit` does one
//! look-up and one checksum for each destination, and a copy for each but one; `recv` looks at the ring, which is memory,
//! and every [`KERNEL_INTERVAL`] calls at the sockets first.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::RawFd;

use takt_transport::ahead::{ANY, Wanted};
use takt_transport::udp::UdpTransport;
use takt_transport::{
    FlowId, FlowSpec, Interface, Locators, RxFrame, Scan, Transport, TransportError, TransportStats, Warning,
};
use takt_wire::Locator;

use crate::carrier::{Carrier, Exit};
use crate::config::{Mode, XdpConfig, XdpCounters, XdpReport};
use crate::socket::Socket;

/// Every how many calls of `recv` the kernel's sockets come first. A look at the ring takes some 10 ns, one at the sockets
/// a microsecond.
const KERNEL_INTERVAL: u32 = 128;

/// Destinations that are left to the kernel by one call at most.
const BY_KERNEL: usize = 64;

/// A participant's UDP sockets, with AF_XDP at one interface. See the [crate](crate).
#[derive(Debug)]
pub struct XdpTransport {
    /// First: what goes is not taken by the filter any more when its port is free for others.
    carrier: Carrier,
    udp: UdpTransport,
    report: XdpReport,
    /// Of each flow.
    exits: Vec<Option<Exit>>,
    loaned: bool,
    /// Destinations of the datagram at hand that are left to the kernel.
    by_kernel: Vec<Locator>,
    calls: u32,
    /// The last call that asked for what is not urgent was to look everywhere, so that the caller may sleep after it.
    looks_everywhere: bool,
    /// The kernel had an urgent datagram when it was asked last.
    kernel_has_urgent: bool,
    descriptors: Vec<RawFd>,
    own_warnings: Vec<Warning>,
    /// Why an interface that has changed is left to the kernel.
    not_followed: Option<Warning>,
    warnings: Vec<Warning>,
}

impl XdpTransport {
    /// Opens the sockets, attaches the filter or joins those who have, and binds to queues. Takes CAP_NET_ADMIN, CAP_NET_RAW and
    /// CAP_BPF, to join others but the last two. Allocates; everything later but flows and changes of interfaces does not.
    ///
    /// Errors: those of [`UdpTransport::open`]; an interface that is not there, not Ethernet, or without an address; another
    /// program on it, or another user's participants; no queue that is free; a kernel without AF_XDP; no permission.
    pub fn open(config: &XdpConfig) -> Result<Self, TransportError> {
        let udp = UdpTransport::open(&config.udp)?;
        let chosen = udp.interfaces().iter().find(|interface| interface.name == config.interface);
        let interface = chosen.filter(|interface| !interface.addresses.is_empty()).ok_or_else(|| {
            let why = "it is not among the UDP transport's, or has no address";
            TransportError::new("use interface", &config.interface, io::Error::new(io::ErrorKind::NotFound, why))
        })?;
        let carrier = Carrier::open(config, interface)?;
        let report = report(&config.interface, &carrier)?;
        let mut xdp = Self {
            own_warnings: not_native(&report).into_iter().collect(),
            carrier,
            udp,
            report,
            exits: Vec::new(),
            loaned: false,
            by_kernel: Vec::with_capacity(BY_KERNEL),
            calls: 0,
            looks_everywhere: false,
            kernel_has_urgent: false,
            descriptors: Vec::new(),
            not_followed: None,
            warnings: Vec::new(),
        };
        xdp.learn_exit(FlowId::DEFAULT, 0);
        let announced = xdp.udp.locators().clone();
        for locator in announced.default_unicast.iter().chain(&announced.metatraffic_unicast) {
            xdp.listen_at(locator, FlowId::DEFAULT, 0);
        }
        xdp.tell();
        Ok(xdp)
    }

    /// What was chosen.
    pub fn report(&self) -> &XdpReport {
        &self.report
    }

    /// What AF_XDP has carried and refused. A system call.
    pub fn counters(&self) -> XdpCounters {
        self.carrier.counters()
    }

    /// Remembers where datagrams of a flow come from. Allocates.
    fn learn_exit(&mut self, flow: FlowId, transport_priority: i32) {
        let at = usize::from(flow.0);
        if self.exits.len() <= at {
            self.exits.resize(at + 1, None);
        }
        let [port_v4, port_v6] = self.ports_of(flow);
        // The value is the DSCP, as of the UDP transport.
        let priority = transport_priority.clamp(0, 63) as u8;
        let is_open = port_v4.is_some() || port_v6.is_some();
        self.exits[at] = is_open.then_some(Exit { port_v4, port_v6, priority });
    }

    /// The source ports of a flow that is open.
    fn ports_of(&self, flow: FlowId) -> [Option<u16>; 2] {
        let anywhere = [Locator::udp_v4(Ipv4Addr::BROADCAST, 1), Locator::udp_v6(Ipv6Addr::LOCALHOST, 1)];
        // tidy-allow(dropped-cause): ports have 16 bits.
        anywhere.map(|to| self.udp.source_of(flow, &to).and_then(|source| u16::try_from(source.port).ok()))
    }

    fn listen_at(&mut self, locator: &Locator, flow: FlowId, urgency: i32) {
        let Some(port) = locator.socket_addr().map(|address| address.port()) else {
            return;
        };
        if let Err(why) = self.carrier.listen_at(port, flow, urgency) {
            self.own_warnings.push(Warning {
                what: format!("what comes to port {port} comes through the kernel's sockets: {why}"),
                remedy: format!("open at most {} flows with ports of their own", crate::filter::PORTS_MAX - 2),
            });
        }
    }

    /// Brings what others are told up to date.
    fn tell(&mut self) {
        self.descriptors.clear();
        self.descriptors.extend(self.carrier.descriptors());
        self.descriptors.extend(self.udp.descriptors());
        self.warnings.clear();
        self.warnings.extend(self.udp.warnings().iter().chain(&self.own_warnings).chain(&self.not_followed).cloned());
    }

    /// Leaves a destination of the loaned datagram to the kernel.
    fn leave(&mut self, to: Locator, len: usize, flow: FlowId) -> Result<(), TransportError> {
        if self.by_kernel.len() == BY_KERNEL {
            self.pass_on(len, flow)?;
        }
        self.by_kernel.push(to);
        self.carrier.counters_mut().by_kernel_out += 1;
        Ok(())
    }

    /// Commits the loaned datagram to the kernel's sockets for all destinations that were left to them.
    fn pass_on(&mut self, len: usize, flow: FlowId) -> Result<(), TransportError> {
        if self.by_kernel.is_empty() {
            return Ok(());
        }
        let copy = self.udp.loan()?.get_mut(..len);
        copy.expect("UDP carries whatever one packet does").copy_from_slice(&self.carrier.loan()[..len]);
        let committed = self.udp.commit(len, flow, &self.by_kernel);
        self.by_kernel.clear();
        committed
    }

    /// Queues the loaned datagram for all destinations.
    fn distribute(
        &mut self,
        len: usize,
        flow: FlowId,
        exit: Option<Exit>,
        destinations: &[Locator],
    ) -> Result<(), TransportError> {
        // The last one that can be sent to gets the frame itself, once all others have what they need of it.
        let mut last = None;
        for (at, to) in destinations.iter().enumerate() {
            let Some(way) = exit.and_then(|exit| self.carrier.way(to, len, exit)) else {
                self.leave(*to, len, flow)?;
                continue;
            };
            if let Some((before, way)) = last.replace((at, way)) {
                let sent = match self.carrier.spare() {
                    Some(frame) => self.carrier.send_copy(frame, len, way),
                    None => false,
                };
                if !sent {
                    self.carrier.counters_mut().no_frame_out += 1;
                    self.leave(destinations[before], len, flow)?;
                }
            }
        }
        let Some((at, way)) = last else {
            return self.pass_on(len, flow);
        };
        match self.carrier.spare() {
            Some(next) => {
                self.pass_on(len, flow)?;
                self.carrier.send_in_place(next, len, way);
                Ok(())
            }
            None => {
                self.carrier.counters_mut().no_frame_out += 1;
                self.leave(destinations[at], len, flow)?;
                self.pass_on(len, flow)
            }
        }
    }
}

fn report(interface: &str, carrier: &Carrier) -> Result<XdpReport, TransportError> {
    let (bank, share) = (carrier.seat().bank(), carrier.seat().share());
    let zero_copy = bank.sockets().map(Socket::is_zero_copy).find(|answer| !matches!(answer, Ok(true)));
    Ok(XdpReport {
        interface: interface.to_owned(),
        queues: bank.numbers().collect(),
        is_joined: share.is_joined(),
        mode: share.mode(),
        not_native: share.not_native().map(str::to_owned),
        zero_copy: zero_copy.unwrap_or(Ok(true)).map_err(|e| TransportError::new("ask", "an AF_XDP socket", e))?,
        frame_len: bank.umem().shape().chunk_len,
        parts: bank.parts(),
        max_message_len: carrier.max_message_len(),
    })
}

fn not_native(report: &XdpReport) -> Option<Warning> {
    let why = report.not_native.as_ref()?;
    Some(Warning {
        what: format!("the filter of {} runs in {} mode: {why}", report.interface, Mode::Generic),
        remedy: "use an interface whose driver has native XDP, or ask for generic mode".into(),
    })
}

fn not_followed(interface: &str, why: &TransportError) -> Warning {
    Warning {
        what: format!("what goes by {interface} goes by the kernel: {why}"),
        remedy: "when the cause is removed, the interface's next change is an occasion to try again".into(),
    }
}

fn misuse(why: &'static str) -> TransportError {
    TransportError::new("commit", "a datagram", io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// The datagram that is wanted, from the kernel's sockets.
fn by_kernel(udp: &mut UdpTransport, scan: Scan, wanted: Wanted) -> Result<Option<RxFrame<'_>>, TransportError> {
    match wanted {
        Wanted::Above(_) => udp.recv(scan),
        Wanted::Common => udp.recv_common(scan),
    }
}

/// An urgent datagram from the kernel's sockets; notes whether there was one.
fn urgent_by_kernel<'a>(
    udp: &'a mut UdpTransport,
    above: i32,
    has_urgent: &mut bool,
) -> Result<Option<RxFrame<'a>>, TransportError> {
    let found = udp.recv_urgent(above)?;
    *has_urgent = found.is_some();
    Ok(found)
}

impl XdpTransport {
    /// The datagram that is wanted, from the rings or the kernel's sockets.
    fn recv_wanted(&mut self, scan: Scan, wanted: Wanted) -> Result<Option<RxFrame<'_>>, TransportError> {
        let Self { udp, carrier, calls, looks_everywhere, .. } = self;
        carrier.give_back();
        *calls = calls.wrapping_add(1);
        *looks_everywhere = scan == Scan::All;
        let kernel_first = calls.is_multiple_of(KERNEL_INTERVAL) && scan != Scan::Taken;
        if kernel_first || scan == Scan::All {
            carrier.look_around();
        }
        if kernel_first {
            if let Some(frame) = by_kernel(udp, Scan::All, wanted)? {
                return Ok(Some(frame));
            }
            return Ok(carrier.recv(wanted));
        }
        if let Some(frame) = carrier.recv(wanted) {
            return Ok(Some(frame));
        }
        match scan {
            Scan::Hot => Ok(None),
            Scan::Taken | Scan::All => by_kernel(udp, scan, wanted),
        }
    }
}

impl Transport for XdpTransport {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn serves(&self, locator: &Locator) -> bool {
        self.udp.serves(locator)
    }

    fn interfaces(&self) -> &[Interface] {
        self.udp.interfaces()
    }

    fn locators(&self) -> &Locators {
        self.udp.locators()
    }

    fn may_have_moved(&self) -> bool {
        self.udp.may_have_moved()
    }

    fn refresh(&mut self) -> Result<(), TransportError> {
        self.udp.refresh()?;
        let interface = self.udp.interfaces().iter().find(|interface| interface.name == self.report.interface);
        let followed = self.carrier.follow(interface).and_then(|is_new| match is_new {
            true => report(&self.report.interface, &self.carrier).map(Some),
            false => Ok(None),
        });
        self.not_followed = None;
        match followed {
            Ok(None) => {}
            Ok(Some(report)) => self.report = report,
            // It works on, by the kernel.
            Err(why) => self.not_followed = Some(not_followed(&self.report.interface, &why)),
        }
        self.tell();
        Ok(())
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let (flow, reached_by) = self.udp.open_flow(spec)?;
        if flow != FlowId::DEFAULT {
            self.learn_exit(flow, spec.transport_priority);
        }
        for locator in &reached_by {
            self.listen_at(locator, flow, spec.transport_priority);
        }
        self.tell();
        Ok((flow, reached_by))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.carrier.flush();
        // First: afterwards its port may be somebody else's. Only a flow that is not shared has one that is listened at.
        if flow != FlowId::DEFAULT {
            self.carrier.close_flow(flow);
        }
        self.udp.close_flow(flow)?;
        if self.ports_of(flow) == [None; 2] {
            self.exits[usize::from(flow.0)] = None;
        }
        self.tell();
        Ok(())
    }

    fn scans_memory(&self) -> bool {
        true
    }

    fn max_message_len(&self) -> usize {
        self.report.max_message_len
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.loaned = true;
        Ok(self.carrier.loan())
    }

    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        if !self.loaned {
            return Err(misuse("commit without a loaned frame"));
        }
        if len > self.report.max_message_len {
            return Err(misuse("longer than the frame"));
        }
        // Of a flow that is not open the sockets know nothing either, and say so.
        let exit = self.exits.get(usize::from(flow.0)).copied().flatten();
        self.distribute(len, flow, exit, destinations)?;
        self.loaned = false;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.carrier.flush();
        self.udp.flush()
    }

    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        let Self { udp, carrier, calls, looks_everywhere, kernel_has_urgent, .. } = self;
        carrier.give_back();
        *calls = calls.wrapping_add(1);
        // What is urgent may come by the kernel, too, and asking it is a system call. Before a sleep it has to be asked.
        if calls.is_multiple_of(KERNEL_INTERVAL) {
            if let Some(frame) = urgent_by_kernel(udp, above, kernel_has_urgent)? {
                return Ok(Some(frame));
            }
            return Ok(carrier.recv(Wanted::Above(above)));
        }
        if let Some(frame) = carrier.recv(Wanted::Above(above)) {
            return Ok(Some(frame));
        }
        match *looks_everywhere || *kernel_has_urgent {
            true => urgent_by_kernel(udp, above, kernel_has_urgent),
            false => Ok(None),
        }
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.recv_wanted(scan, Wanted::Above(ANY))
    }

    fn recv_common(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.recv_wanted(scan, Wanted::Common)
    }

    fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    fn stats(&self) -> TransportStats {
        let (mut stats, own) = (self.udp.stats(), self.counters());
        stats.datagrams_in += own.datagrams_in;
        stats.bytes_in += own.bytes_in;
        stats.datagrams_out += own.datagrams_out;
        stats.bytes_out += own.bytes_out;
        stats.bypassed_in += own.datagrams_in;
        stats.bypassed_out += own.datagrams_out;
        stats.kernel_drops += own.kernel_drops;
        stats
    }

    fn name_sources(&mut self) {
        self.udp.name_sources();
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.udp.source_of(flow, destination)
    }
}
