//! UDPv4 and UDPv6 transport: the platform specific model of RTPS 2.5 §9.6.
//!
//! A [`UdpTransport`] has these sockets for its participant:
//!
//! | socket | bound to | shared |
//! |---|---|---|
//! | metatraffic unicast | port of the participant index, or any | no |
//! | user unicast | port of the participant index, or any | no |
//! | metatraffic multicast | group, port of the domain | with every process |
//! | user multicast | group, port of the domain | with every process |
//! | flow with `own_port` | any port, announced for its endpoint | no |
//! | flow with priority only | any port; sends, never receives | no |
//! | fragments of a flow without `own_port` | any port; sends, never receives | no |
//!
//! Each socket exists once per address family in use. The default flow sends from the user unicast
//! socket, and to frequent destinations from connected sockets ([`connected_sockets`]).
//!
//! Cost: `recv` makes one system call when spinning. `commit` and `flush` of one datagram, or of up
//! to 32 of one size to one address ([`gso`]), make one. Buffers hold 32 datagrams in each
//! direction (2 MiB of address space each, of which only touched pages are resident).
//!
//! Changes of interfaces are detected ([`watch`]), and applied ([`refresh`]) when the owner
//! requests it.
//!
//! Deliberately not here: path MTU discovery (the core fragments to the MTU of the interfaces).

pub(crate) mod address;
mod config;
mod connected_sockets;
mod flows;
mod fragments;
mod gso;
pub(crate) mod interfaces;
mod ports;
mod priority;
mod receiver;
mod refresh;
mod sender;
mod socket;
pub(crate) mod syscall;
pub(crate) mod watch;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use takt_wire::Locator;

pub use config::{InterfaceSelection, ParticipantIndex, UdpConfig};
use flows::Flows;
use fragments::FragmentLimits;
use gso::Gso;
use interfaces::{BindAddresses, addresses_v4, addresses_v6};
pub use interfaces::{Ipv6Alone, ipv6_alone};
use receiver::{Receiver, Role};
use sender::{MAX_MESSAGE_LEN, Sender};
use socket::{Socket, Warnings, socket_error};

use crate::interface::nearest;
use crate::{
    Capabilities, Commit, Control, FlowId, FlowSpec, Interface, Locators, Payload, Reach, Receive, RxFrame, Status,
    Transport, TransportError, TransportEvent, TransportStats, Warning,
};

/// UDP transport of a participant. See the [module](self).
#[derive(Debug)]
pub struct UdpTransport {
    config: UdpConfig,
    interfaces: Vec<Interface>,
    /// Addresses that unicast sockets are bound to, one per family in use.
    bind: Vec<IpAddr>,
    index: Option<u16>,
    locators: Locators,
    receiver: Receiver,
    sender: Sender,
    flows: Flows,
    fragment_limits: FragmentLimits,
    groups: Vec<Group>,
    stats: TransportStats,
    warnings: Warnings,
}

/// Multicast group that is received at every interface.
#[derive(Debug, Clone, Copy)]
struct Group {
    address: IpAddr,
    port: u16,
    /// Whether the group is for discovery, as opposed to user data.
    is_metatraffic: bool,
}

impl UdpTransport {
    /// Opens the sockets of a participant. Allocates; later, only opening and closing flows and
    /// changes of the interfaces allocate.
    ///
    /// # Errors
    /// There is no usable interface, a named one is unknown, the [`ParticipantIndex::Fixed`] is
    /// taken, another process holds a multicast port without sharing it, the domain has no
    /// multicast port, or the machine refuses.
    pub fn open(config: &UdpConfig) -> Result<Self, TransportError> {
        let interfaces = interfaces::select(config)?;
        let bind = bind_addresses(config, &interfaces);
        let unicast = ports::take(config, &bind)?;
        let receiver = Receiver::new(&interfaces, config.segmentation)
            .map_err(|e| TransportError::new("create", "an epoll instance", e))?;
        let mut udp = Self {
            config: config.clone(),
            sender: Sender::new(),
            interfaces,
            bind,
            index: unicast.index,
            locators: Locators::default(),
            receiver,
            flows: Flows::default(),
            fragment_limits: FragmentLimits::default(),
            groups: Vec::new(),
            stats: TransportStats::default(),
            warnings: Warnings::default(),
        };
        if config.segmentation {
            udp.probe_gso(&unicast.user);
        }
        // User data first, so that these sockets are polled first.
        for socket in unicast.user {
            udp.locators.default_unicast.extend(udp.unicast_locators_of(&socket));
            udp.flows.add_send_socket(FlowId::DEFAULT, &socket);
            udp.receive_from(socket, Role::User(FlowId::DEFAULT))?;
        }
        for socket in unicast.metatraffic {
            udp.locators.metatraffic_unicast.extend(udp.unicast_locators_of(&socket));
            udp.receive_from(socket, Role::Metatraffic)?;
        }
        udp.open_fragment_sockets(FlowId::DEFAULT)?;
        if config.multicast {
            udp.open_multicast()?;
        }
        if config.participant_index == ParticipantIndex::Auto && udp.index.is_none() {
            udp.warnings.add(ports::all_taken(config.domain_id));
        }
        if let Some(warning) = interfaces::ipv6_off(config, &udp.interfaces) {
            udp.warnings.add(warning);
        }
        udp.watch_interfaces();
        Ok(udp)
    }

    /// Returns the participant index of the well-known ports in use; `None` if the kernel chose the
    /// ports.
    pub fn participant_index(&self) -> Option<u16> {
        self.index
    }

    /// Opens the sockets for fragments of a flow, if these are limited.
    fn open_fragment_sockets(&mut self, flow: FlowId) -> Result<(), TransportError> {
        if self.config.fragment_queue_bytes == 0 {
            return Ok(());
        }
        for address in &self.bind {
            let priority = self.flows.priority(flow);
            let socket = fragments::open_socket(*address, priority, &self.config, &mut self.warnings)?;
            self.receiver
                .add_fragment_socket(&socket, flow)
                .map_err(|e| TransportError::new("watch socket", socket.local, e))?;
            self.flows.add_fragment_socket(flow, socket);
        }
        Ok(())
    }

    fn open_multicast(&mut self) -> Result<(), TransportError> {
        let domain = self.config.domain_id;
        let metatraffic = self.config.ports.discovery_multicast(domain);
        let user = self.config.ports.user_multicast(domain);
        let (Some(metatraffic), Some(user)) = (metatraffic, user) else {
            return Err(TransportError::no_ports(domain, &self.config.ports));
        };
        for address in self.bind.clone() {
            let group = match address {
                IpAddr::V4(_) => self.config.multicast_group_v4.into(),
                IpAddr::V6(_) => self.config.multicast_group_v6.into(),
            };
            self.groups.push(Group { address: group, port: metatraffic, is_metatraffic: true });
            self.groups.push(Group { address: group, port: user, is_metatraffic: false });
            if let Some(locator) = self.join(group, metatraffic, |_| true)? {
                self.locators.metatraffic_multicast.push(locator);
            }
            if let Some(locator) = self.join(group, user, |_| true)? {
                self.locators.default_multicast.push(locator);
            }
        }
        Ok(())
    }

    /// Receives datagrams to `group` at `port` through all interfaces. Returns `None` with a
    /// warning if no interface could join. Existing memberships are renewed at interfaces for whose
    /// index `may_have_changed` is true.
    fn join(
        &mut self,
        group: IpAddr,
        port: u16,
        may_have_changed: impl Fn(u32) -> bool,
    ) -> Result<Option<Locator>, TransportError> {
        let opened = match self.receiver.group_socket(group, port) {
            Some(_) => None,
            None => Some(Socket::multicast(group, port, &self.config).map_err(socket_error(
                "bind multicast socket",
                group,
                port,
            ))?),
        };
        let mut joined = false;
        for interface in self.interfaces.iter().filter(|i| i.multicast) {
            let of_family = |a: &&(IpAddr, u8)| a.0.is_ipv4() == group.is_ipv4();
            let Some((address, _)) = interface.addresses.iter().find(of_family) else {
                continue;
            };
            let Some(socket) = opened.as_ref().or_else(|| self.receiver.group_socket(group, port)) else {
                break;
            };
            if opened.is_none() && may_have_changed(interface.index) {
                socket.leave(group, interface.index);
            }
            let route = Socket::probe_route(group, interface, &self.config);
            match route.and_then(|()| socket.join(group, interface)) {
                Ok(()) => {
                    joined = true;
                    self.sender.add_multicast(interface.index, *address);
                }
                Err(e) => self.warnings.add(no_multicast(&interface.name, interface.loopback, group, &e)),
            }
        }
        if !joined {
            return Ok(None);
        }
        if let Some(socket) = opened {
            self.receive_from(socket, Role::Group(group))?;
        }
        Ok(Some(SocketAddr::new(group, port).into()))
    }

    /// Without the watch, everything works except interfaces that appear later.
    fn watch_interfaces(&mut self) {
        if let Err(e) = watch::Watch::new().and_then(|watch| self.receiver.watch(watch)) {
            self.warnings.add(Warning {
                what: format!("changes of network interfaces are not detected: {e}"),
                remedy: "allow netlink sockets (NETLINK_ROUTE)".into(),
            });
        }
    }

    /// Enables segmentation offload if the kernel supports it.
    fn probe_gso(&mut self, sockets: &[Socket]) {
        match sockets.iter().try_for_each(|socket| syscall::check_gso(socket.as_fd())) {
            Ok(()) => self.sender.set_gso(Gso::ANY.beyond_packets(&self.interfaces)),
            Err(e) => self.warnings.add(Warning {
                what: format!("datagrams are sent one by one: the kernel has no UDP segmentation offload ({e})"),
                remedy: "use Linux 4.18 or later".into(),
            }),
        }
    }

    fn receive_from(&mut self, socket: Socket, role: Role) -> Result<(), TransportError> {
        socket.size_buffers(&self.config, &mut self.warnings);
        let local = socket.local;
        let urgency = match role {
            Role::User(flow) => i32::from(self.flows.priority(flow).dscp),
            Role::Metatraffic | Role::Group(_) => 0,
        };
        self.receiver.add(socket, role, urgency).map_err(|e| TransportError::new("watch socket", local, e))
    }

    /// Returns the unicast locators of a socket: its port at each selected address.
    fn unicast_locators_of(&self, socket: &Socket) -> Vec<Locator> {
        let port = socket.port();
        match socket.family {
            address::Family::V4 => addresses_v4(&self.interfaces).map(|ip| Locator::udp_v4(ip, port)).collect(),
            address::Family::V6 => addresses_v6(&self.interfaces).map(|ip| Locator::udp_v6(ip, port)).collect(),
        }
    }

    /// Reports whether datagrams to a locator stay on this host, so that they pass no queue.
    fn is_on_this_host(&self, to: &Locator) -> bool {
        let Some(ip) = to.ip() else { return false };
        let mut own = self.interfaces.iter().flat_map(|interface| &interface.addresses);
        ip.is_loopback() || own.any(|(address, _)| *address == ip)
    }

    /// Returns the probable source address of a datagram to `destination`: the bound one, or one of
    /// the same network.
    fn source_address(&self, destination: IpAddr) -> Option<IpAddr> {
        let same_family = |ip: &&IpAddr| ip.is_ipv4() == destination.is_ipv4();
        let bound = self.bind.iter().find(same_family)?;
        if !bound.is_unspecified() {
            return Some(*bound);
        }
        let addresses = self.interfaces.iter().flat_map(|i| i.addresses.clone());
        nearest(&addresses.collect::<Vec<_>>(), destination)
    }
}

fn no_multicast(name: &str, loopback: bool, group: IpAddr, why: &io::Error) -> Warning {
    Warning {
        what: format!("no multicast to {group} through {name}: {why}"),
        remedy: if group.is_ipv6() && loopback {
            format!("configure unicast peers, or run as root: ip -6 route add local ff00::/8 dev {name} table local")
        } else {
            "configure unicast peers, or select other interfaces".into()
        },
    }
}

fn bind_addresses(config: &UdpConfig, interfaces: &[Interface]) -> Vec<IpAddr> {
    let bind = BindAddresses::new(&config.interfaces, interfaces);
    let mut addresses = Vec::new();
    if addresses_v4(interfaces).next().is_some() {
        addresses.push(bind.v4.into());
    }
    if addresses_v6(interfaces).next().is_some() {
        addresses.push(bind.v6.into());
    }
    addresses
}

impl Transport for UdpTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "udp", max_message_len: MAX_MESSAGE_LEN, scans_memory: false }
    }

    fn status(&self) -> Status<'_> {
        Status {
            interfaces: &self.interfaces,
            locators: &self.locators,
            descriptors: self.receiver.descriptors(),
            warnings: self.warnings.as_slice(),
            stats: TransportStats { kernel_drops: self.receiver.kernel_drops(), ..self.stats },
        }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        let Some(address) = locator.socket_addr() else {
            return Reach::Unserved;
        };
        if locator.is_multicast() {
            let family = address::Family::of_kind(locator.kind);
            return family.is_some_and(|family| self.sender.has_multicast(family)).into();
        }
        let in_use = |ip: &IpAddr| ip.is_ipv4() == address.is_ipv4();
        (self.bind.iter().any(in_use) && !address.ip().is_unspecified()).into()
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        if let Some(flow) = self.flows.share(spec) {
            return Ok((flow, Vec::new()));
        }
        let mut sockets = Vec::with_capacity(self.bind.len());
        for address in &self.bind {
            let failed = socket_error("open a flow at", *address, 0);
            let socket = Socket::unicast(*address, 0, &self.config).map_err(&failed)?;
            socket.size_buffers(&self.config, &mut self.warnings);
            let priority = priority::Priority::of(spec.transport_priority);
            socket.set_priority(priority, &mut self.warnings).map_err(&failed)?;
            sockets.push(socket);
        }
        let flow = self.flows.open(spec)?;
        if !spec.own_port
            && let Err(error) = self.open_fragment_sockets(flow)
        {
            self.close_flow(flow)?;
            return Err(error);
        }
        let mut locators = Vec::new();
        for socket in sockets {
            self.flows.add_send_socket(flow, &socket);
            if !spec.own_port {
                self.flows.keep(flow, socket);
                continue;
            }
            locators.extend(self.unicast_locators_of(&socket));
            if let Err(error) = self.receive_from(socket, Role::User(flow)) {
                self.close_flow(flow)?;
                return Err(error);
            }
        }
        Ok((flow, locators))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.sender.flush(&mut self.stats);
        if self.flows.close(flow)? {
            self.fragment_limits.close(flow);
            self.receiver.remove(flow);
        }
        Ok(())
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        Ok(self.sender.loan())
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        let Commit { len, flow, destinations, payload, is_fragment } = datagram;
        let is_limited = is_fragment && !destinations.iter().all(|to| self.is_on_this_host(to));
        let sockets = self.flows.send_sockets(flow, is_limited)?;
        if is_limited {
            self.fragment_limits.record(flow);
        }
        match payload {
            Payload::InFrame => self.sender.commit(len, sockets, destinations, &mut self.stats),
            Payload::Gathered(rest) => self.sender.commit_gathered(len, rest, sockets, destinations, &mut self.stats),
            Payload::Loaned(_) => Err(io::ErrorKind::Unsupported.into()),
        }
        .map_err(|e| TransportError::new("commit", "a datagram", e))
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.sender.flush(&mut self.stats);
        self.fragment_limits.check(&self.flows, &self.receiver);
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        let Self { receiver, stats, .. } = self;
        let received = match request {
            Receive::Any(scan) => receiver.recv(scan, stats),
            Receive::Urgent { above } => receiver.recv_urgent(above, stats),
            Receive::NotUrgent(scan) => receiver.recv_not_urgent(scan, stats),
        };
        Ok(received.map(|(bytes, meta)| RxFrame::new(bytes, meta)))
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        let event = self.fragment_limits.poll_event(&mut self.receiver);
        event.or_else(|| self.receiver.poll_change().then_some(TransportEvent::InterfacesChanged))
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        match request {
            Control::Connect(to) => self.reach(to).or_unserved(to),
            Control::Refresh => match self.receiver.take_changes() {
                Some(changes) => self.apply_interface_changes(&changes),
                None => Ok(()),
            },
            Control::ReportSources => {
                self.receiver.report_sources();
                Ok(())
            }
        }
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        let to = destination.ip()?;
        let port = self.flows.port(flow, to)?;
        Some(SocketAddr::new(self.source_address(to)?, port).into())
    }
}
