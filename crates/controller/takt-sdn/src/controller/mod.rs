//! OpenFlow controller: one sans-IO state machine over the channels of all switches.
//!
//! The runtime provides connections, octets and time; the controller returns octets, events and its
//! next deadline. It discovers the topology and the hosts, and derives the tables of each switch
//! from them.
//!
//! **Resynchronization.** When a switch connects, its ports, rules, groups and meters are read.
//! Entries that differ from the wanted ones are changed: meters in a transaction, everything else
//! in one atomic bundle if the switch supports bundles. Foreign rules are deleted. After a refusal
//! the state is read again; a refused entry is omitted and reported.
//!
//! **Adoption.** A switch with rules of an earlier run keeps them for [`Config::adoption`], so that
//! traffic continues. Then hosts are adopted from the rules that let them send, links from the
//! groups that flood, and all other entries are corrected.
//!
//! **Order of changes of the tree.** A link leaves the tree at once. A link joins the tree after
//! every connected switch has acknowledged all earlier changes, so that no flood loops during the
//! change.
//!
//! A second connection with the datapath id of a connected switch is refused.

mod admission;
mod adoption;
mod cluster_role;
mod event;
mod host_rules;
mod interception;
mod isolation;
mod latency;
mod outgoing;
mod overload;
mod packets;
mod registration;
mod restore;
mod session;
mod sync;
mod tables;
mod traffic;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use takt_openflow::Message;
use takt_openflow::channel::{Event as ChannelEvent, Instant, SendError};
use takt_openflow::port::{Port, PortReason, PortStatus, port_config, port_state};
use takt_openflow::switch::Features;
use takt_wire::{Guid, GuidPrefix};

use self::admission::Installed;
pub use self::cluster_role::ClusterRole;
pub use self::event::{Config, Counters, Event, SlowStage};
use self::interception::SharedPort;
use self::outgoing::RateLimiters;
use self::overload::Overloads;
use self::registration::Registrations;
use self::restore::{HostRecord, Restoration};
use self::session::{Progress, Session};
use self::sync::Sync;
pub use self::sync::{Difference, FlowKey, Target};
use self::traffic::Polling;
use self::view::DecisionLog;
use crate::PortRef;
use crate::admission::Admission;
use crate::devices::{Devices, HostId};
use crate::discovery::Interceptor;
use crate::forwarding::Link;
use crate::forwarding::membership::Membership;
use crate::forwarding::rules::{COOKIE, COOKIE_MASK};
use crate::frame::membership::queries;
use crate::frame::{Frame, MacAddress};
use crate::isolation::Filter;
use crate::model::HostLimit;
use crate::rules::Selector;
use crate::topology::{Key, PortDescription, Topology};

/// Id of a connection of the runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(u64);

/// Lowest reserved port number of OpenFlow.
const RESERVED_PORTS: u32 = 0xffff_ff00;

/// State of a switch, with or without a connection.
#[derive(Default)]
struct Switch {
    connection: Option<ConnectionId>,
    sync: Sync,
    has_meters: bool,
    /// Limits of the hosts at its ports; empty without meters.
    limits: BTreeMap<u32, HostLimit>,
    /// Drops of its host meters.
    overloads: Overloads,
    /// Whether the entries of all admitted flows are wanted in the switch; changes are then applied
    /// incrementally.
    has_admitted: bool,
    /// Hosts that may send without the controller, with their ports.
    sources: BTreeMap<HostId, u32>,
    /// Hosts with a rule that leads to them, with the output ports.
    routes: BTreeMap<HostId, u32>,
    /// Time at which the rules of an earlier run are kept or deleted.
    adopted_at: Option<Instant>,
    /// Whether its tables have been read and not been corrected since.
    is_unchecked: bool,
}

/// The OpenFlow controller.
pub struct Controller {
    config: Config,
    topology: Topology,
    devices: Devices,
    membership: Membership,
    discovery: Interceptor,
    admission: Option<Admission>,
    /// Wanted entries, meters and groups of each admitted flow.
    installed: BTreeMap<Selector, Installed>,
    /// Whether switches, links or hosts have changed since the network model was built.
    is_network_stale: bool,
    /// Whether members of groups, edges or filters have changed since the flows to groups were
    /// updated.
    are_members_stale: bool,
    /// Time at which the next refused pair is tried again.
    retry_at: Option<Instant>,
    discovery_ports: BTreeSet<u16>,
    /// Addresses at which participants receive only discovery.
    metatraffic: BTreeMap<GuidPrefix, Vec<SocketAddr>>,
    /// Addresses at which participants receive discovery and user data.
    shared_ports: BTreeMap<SocketAddr, SharedPort>,
    /// Whether the frame that is being handled announces new discovery addresses.
    is_metatraffic_new: bool,
    /// Discovery frames that wait until switches divert the addresses that they announce.
    held_frames: VecDeque<(Instant, PortRef, Vec<u8>)>,
    sessions: BTreeMap<ConnectionId, Session>,
    switches: BTreeMap<u64, Switch>,
    /// Links of the spanning tree that floods use.
    active: BTreeSet<Link>,
    /// Version of the topology from which the tables were derived.
    generation: u64,
    next_connection: u64,
    next_ageing: Instant,
    events: VecDeque<Event>,
    decisions: DecisionLog,
    counters: Counters,
    cluster_role: ClusterRole,
    /// Filters of the isolation policy, the lowest rank first.
    filters: Vec<Filter>,
    /// Time of the present call.
    now: Instant,
    rate_limiters: RateLimiters,
    /// Counter that is incremented when [`Self::records`] may have changed.
    changes: u64,
    /// Pairs of an earlier run, until they are admitted again.
    restoration: Option<Restoration>,
    /// Hosts of an earlier run at switches that are not adopted yet.
    hosts_kept: Vec<HostRecord>,
    /// Whether entries of an earlier run are no longer wanted.
    is_restored: bool,
    /// Maximum latencies of readers that exceeded their proved bound, in nanoseconds.
    exceeded: BTreeMap<Guid, u64>,
    registrations: Registrations,
    polling: Polling,
}

impl Controller {
    /// Creates a controller without connections. The key must be random and secret: it
    /// authenticates LLDP.
    pub fn new(now: Instant, mut config: Config, key: Key) -> Self {
        config.forwarding.clear_dscp |= config.network.is_some();
        Self {
            topology: Topology::new(config.topology.clone(), key),
            devices: Devices::new(config.devices.clone()),
            membership: Membership::new(now, config.forwarding.membership.clone()),
            discovery: Interceptor::new(config.discovery.clone()),
            admission: config.network.clone().map(Admission::new),
            installed: BTreeMap::new(),
            is_network_stale: true,
            are_members_stale: true,
            retry_at: None,
            discovery_ports: config.forwarding.discovery_ports(),
            metatraffic: BTreeMap::new(),
            shared_ports: BTreeMap::new(),
            is_metatraffic_new: false,
            held_frames: VecDeque::new(),
            sessions: BTreeMap::new(),
            switches: BTreeMap::new(),
            active: BTreeSet::new(),
            generation: 0,
            next_connection: 0,
            next_ageing: now.after(config.devices.silence),
            events: VecDeque::new(),
            decisions: DecisionLog::default(),
            counters: Counters::default(),
            cluster_role: ClusterRole::Single,
            filters: config.discovery.isolation.filters(),
            now,
            rate_limiters: RateLimiters::default(),
            changes: 0,
            restoration: None,
            hosts_kept: Vec::new(),
            is_restored: false,
            exceeded: BTreeMap::new(),
            registrations: Registrations::default(),
            polling: Polling::default(),
            config,
        }
    }

    /// Registers a connection that a switch opened; `None` if there are [`Config::connections`]
    /// already.
    pub fn connect(&mut self, now: Instant) -> Option<ConnectionId> {
        if self.sessions.len() >= self.config.connections {
            return None;
        }
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.sessions.insert(id, Session::new(now, self.config.operation));
        Some(id)
    }

    /// Handles octets of a switch. Returns how many were consumed; the caller passes the rest again
    /// after [`Self::poll_transmit`].
    pub fn handle_bytes(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) -> usize {
        let consumed = self.take_bytes(now, id, bytes);
        self.process_pending(now);
        consumed
    }

    /// Like [`Self::handle_bytes`], but leaves the consequences to [`Self::process_pending`], which
    /// then runs once for several connections.
    pub fn take_bytes(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) -> usize {
        self.now = now;
        let mut consumed = 0;
        while let Some(session) = self.sessions.get_mut(&id) {
            let len = session.channel.handle_bytes(now, &bytes[consumed..]);
            consumed += len;
            let is_busy = self.handle_events(now, id);
            if len == 0 && !is_busy {
                break;
            }
        }
        if self.sessions.contains_key(&id) { consumed } else { bytes.len() }
    }

    /// Returns octets for a switch. [`Self::transmitted`] reports how many the connection accepted.
    pub fn poll_transmit(&self, id: ConnectionId) -> &[u8] {
        self.sessions.get(&id).map_or(&[], |session| session.channel.poll_transmit())
    }

    /// Removes the first `len` octets of [`Self::poll_transmit`], which the connection accepted.
    pub fn transmitted(&mut self, id: ConnectionId, len: usize) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.channel.transmitted(len);
        }
    }

    /// Handles the end of a connection by the switch or the network.
    pub fn handle_disconnect(&mut self, now: Instant, id: ConnectionId) {
        self.now = now;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.channel.handle_disconnect();
        }
        self.handle_events(now, id);
        self.process_pending(now);
    }

    /// Reports whether a connection must be kept open.
    pub fn is_open(&self, id: ConnectionId) -> bool {
        self.sessions.contains_key(&id)
    }

    /// Sets whether a connection has octets that were not passed to [`Self::handle_bytes`] yet.
    /// Meanwhile nothing of its switch counts as overdue, neither replies nor link probes.
    pub fn set_behind(&mut self, id: ConnectionId, is_behind: bool) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.is_behind = is_behind;
        if let Some(dpid) = session.dpid {
            self.topology.set_behind(dpid, is_behind);
        }
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let current = self.sessions.values().filter(|session| !session.is_behind);
        let channels = current.filter_map(|session| session.channel.poll_timeout());
        let adoption = self.switches.values().filter_map(|switch| switch.adopted_at);
        let discovery = self.discovery.poll_timeout();
        let others = [self.topology.poll_timeout(), self.membership.poll_timeout(), discovery, Some(self.next_ageing)];
        let restoration = self.restoration.as_ref().map(|restoration| restoration.until);
        let drained = self.admission.as_ref().and_then(Admission::deadline);
        let counted = [self.registrations.poll_timeout(), self.poll_due()];
        let others = others.into_iter().chain([self.retry_at, restoration, drained]).chain(counted);
        channels.chain(adoption).chain(others.flatten()).min()
    }

    /// Performs the due actions.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        let due: Vec<ConnectionId> = self.sessions.keys().copied().collect();
        for id in due {
            if let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.is_behind) {
                session.channel.handle_timeout(now);
            }
            self.handle_events(now, id);
        }
        self.topology.handle_timeout(now);
        self.discovery.handle_timeout(now);
        self.handle_discovery_events(now);
        if self.membership.handle_timeout(now) {
            self.want_groups();
        }
        if now >= self.next_ageing {
            self.next_ageing = now.after(self.config.devices.silence);
            let removed = self.devices.handle_timeout(now);
            removed.into_iter().for_each(|host| self.remove_host(host));
        }
        let due = self.switches.iter().filter(|(_, switch)| switch.adopted_at.is_some_and(|when| now >= when));
        let due: Vec<u64> = due.map(|(dpid, _)| *dpid).collect();
        // All hosts must be known before the rules that lead to them.
        due.iter().for_each(|dpid| self.adopt_sources(now, *dpid));
        due.iter().for_each(|dpid| self.restore_hosts(now, *dpid));
        due.iter().for_each(|dpid| self.adopt_rest(*dpid));
        self.end_restoration(now);
        self.poll_switches(now);
        self.process_pending(now);
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns switches, ports and links.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the hosts.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Returns participants, endpoints and pairs.
    pub fn discovery(&self) -> &Interceptor {
        &self.discovery
    }

    /// Returns the links of the spanning tree that floods use.
    pub fn tree(&self) -> &BTreeSet<Link> {
        &self.active
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Reports whether every connected switch has its wanted tables.
    pub fn is_settled(&self) -> bool {
        self.sessions.values().all(|session| {
            let switch = session.dpid.and_then(|dpid| self.switches.get(&dpid));
            session.is_idle() && switch.is_some_and(|switch| switch.sync.is_in_sync())
        })
    }

    fn push(&mut self, event: Event) {
        self.is_network_stale |= matches!(
            event,
            Event::HostFound { .. } | Event::HostMoved { .. } | Event::HostGone(_) | Event::AddressFound { .. }
        );
        self.changes += 1;
        if self.events.len() >= self.config.events {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Handles the events of a channel. Reports whether there was one.
    fn handle_events(&mut self, now: Instant, id: ConnectionId) -> bool {
        let mut is_busy = false;
        while let Some(event) = self.sessions.get_mut(&id).and_then(|session| session.channel.poll_event()) {
            is_busy = true;
            match event {
                ChannelEvent::Up { features, .. } => self.handle_up(now, id, &features),
                ChannelEvent::Message { message, .. } => self.handle_message(now, id, *message),
                ChannelEvent::Completed { operation, outcome } => {
                    let Some(session) = self.sessions.get_mut(&id) else { continue };
                    let switch = session.dpid.and_then(|dpid| self.switches.get_mut(&dpid));
                    let sync = switch.map(|switch| &mut switch.sync);
                    if let Some(progress) = session.completed(operation, outcome, sync) {
                        self.handle_progress(now, id, progress);
                    }
                }
                ChannelEvent::Error { .. } => self.counters.errors += 1,
                ChannelEvent::Malformed { .. } => self.counters.malformed += 1,
                ChannelEvent::Down(down) => self.end(id, down.to_string()),
            }
        }
        is_busy
    }

    fn handle_up(&mut self, now: Instant, id: ConnectionId, features: &Features) {
        let dpid = features.datapath;
        let is_double = self.sessions.values().any(|session| session.dpid == Some(dpid));
        let why = if is_double {
            Some(format!("a switch with the datapath id {dpid:016x} is connected already"))
        } else if features.auxiliary != 0 {
            Some("auxiliary connections are not used".to_owned())
        } else if features.n_tables < self.tables() {
            Some(format!("switch {dpid:016x} has {} tables; {} are needed", features.n_tables, self.tables()))
        } else {
            None
        };
        if let Some(why) = why {
            return self.end(id, why);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.dpid = Some(dpid);
        self.begin(now, id);
    }

    /// Ends and removes a connection.
    fn end(&mut self, id: ConnectionId, why: String) {
        let Some(mut session) = self.sessions.remove(&id) else { return };
        session.channel.close();
        match session.dpid {
            Some(dpid) => {
                if let Some(switch) = self.switches.get_mut(&dpid) {
                    switch.connection = None;
                }
                self.topology.disconnect_switch(dpid);
                self.push(Event::SwitchDown { dpid, why });
            }
            None => self.push(Event::ConnectionRefused { why }),
        }
    }

    fn handle_progress(&mut self, now: Instant, id: ConnectionId, progress: Progress) {
        let Some(dpid) = self.sessions.get(&id).and_then(|session| session.dpid) else { return };
        match progress {
            Progress::Changed => {}
            Progress::Polled(polled) => self.handle_polled(now, dpid, polled),
            Progress::Role(answer) => self.apply_role(now, id, answer),
            Progress::Failed(why) => self.end(id, why),
            Progress::Refused(entries) => {
                for (entry, error) in entries {
                    self.push(Event::EntryRefused { dpid, entry, error });
                }
                let reading = self.sessions.get_mut(&id).map(|session| session.read(now));
                if let Some(Err(error)) = reading {
                    self.end(id, error.to_string());
                }
            }
            Progress::Read { ports, tables } => {
                let has_meters = self.sessions.get(&id).is_some_and(|session| session.has_meters);
                let ports: Vec<PortDescription> = ports.iter().filter_map(describe).collect();
                let up = ports.iter().filter(|port| port.is_up).count();
                if !self.topology.connect_switch(now, dpid, ports) {
                    return self.end(id, format!("no capacity for switch {dpid:016x}"));
                }
                let is_known = self.switches.contains_key(&dpid);
                let switch = self.switches.entry(dpid).or_default();
                let is_again = switch.connection == Some(id);
                (switch.connection, switch.has_meters) = (Some(id), has_meters);
                if !is_known && tables.flows.values().any(|flow| flow.cookie & COOKIE_MASK == COOKIE) {
                    switch.adopted_at = Some(now.after(self.config.adoption));
                    switch.sync.is_held = true;
                }
                switch.sync.read(tables);
                switch.is_unchecked = true;
                if !is_again {
                    self.push(Event::SwitchUp { dpid, ports: up });
                }
                self.want_static(dpid);
            }
        }
    }

    fn handle_message(&mut self, now: Instant, id: ConnectionId, message: Message) {
        let Some(dpid) = self.sessions.get(&id).and_then(|session| session.dpid) else { return };
        if let ClusterRole::Standby { .. } = self.cluster_role {
            return;
        }
        match message {
            Message::PacketIn(packet) => self.handle_packet(now, dpid, &packet),
            Message::PortStatus(PortStatus { reason, port }) => {
                let Some(description) = describe(&port) else { return };
                match reason {
                    PortReason::Delete => self.topology.remove_port(now, PortRef::new(dpid, port.number.0)),
                    PortReason::Add | PortReason::Modify => self.topology.set_port(now, dpid, description),
                }
            }
            Message::FlowRemoved(removed) => self.handle_removed(now, dpid, &removed),
            _ => {}
        }
    }

    /// Processes the consequences of received messages, until no further action is possible now:
    /// follows the topology, sends probes, decides and changes switches.
    pub fn process_pending(&mut self, now: Instant) {
        self.send_probes();
        while self.generation != self.topology.generation() {
            self.generation = self.topology.generation();
            self.is_network_stale = true;
            self.follow_topology();
            let edges = self.topology.edges().collect();
            self.membership.set_edges(now, &edges);
            self.want_groups();
        }
        self.send_queries();
        while let Some(event) = self.topology.poll_event() {
            self.push(Event::Topology(event));
        }
        self.extend_tree();
        self.update_registrations(now);
        self.advance_admission(now);
        let dpids: Vec<u64> = self.switches.keys().copied().collect();
        for dpid in dpids {
            self.change_switch(now, dpid);
        }
        self.forward_held(now);
    }

    fn send_probes(&mut self) {
        while let Some((at, frame)) = self.topology.poll_probe() {
            self.send_frame(at, &frame);
        }
    }

    /// Sends a frame of the controller itself.
    fn send_frame(&mut self, at: PortRef, octets: &[u8]) {
        if let Ok(frame) = Frame::parse(octets) {
            self.send_packet(at.dpid, &[at.port], &frame);
        }
    }

    /// Sends membership queries to edges.
    fn send_queries(&mut self) {
        while let Some(at) = self.membership.poll_query() {
            let address = self.topology.ports(at.dpid).find(|(port, _)| port.number == at.port);
            let Some(address) = address.map(|(port, _)| port.address) else { continue };
            for query in queries(address) {
                self.send_frame(at, &query);
            }
        }
    }

    fn change_switch(&mut self, now: Instant, dpid: u64) {
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let Some(id) = switch.connection else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match session.change(now, &mut switch.sync) {
            Ok(None) => switch.is_unchecked &= !session.is_idle(),
            Ok(Some(difference)) if switch.is_unchecked => self.push(Event::Resynchronized { dpid, difference }),
            Ok(Some(_)) => {}
            Err(SendError::NotConnected) => {}
            Err(error) => self.end(id, format!("a change cannot be sent: {error}")),
        }
    }

    fn links(&self) -> BTreeSet<Link> {
        self.topology.links().collect()
    }
}

/// Describes a port of a switch; `None` for a reserved port, such as the local port.
fn describe(port: &Port) -> Option<PortDescription> {
    let is_up = port.config & port_config::PORT_DOWN == 0 && port.state & port_state::LINK_DOWN == 0;
    (port.number.0 < RESERVED_PORTS).then(|| PortDescription {
        number: port.number.0,
        name: port.name.to_text().into_owned(),
        address: MacAddress(port.address.0),
        is_up,
    })
}
