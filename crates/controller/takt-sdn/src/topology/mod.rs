//! Topology discovery: switches, ports and links, by authenticated LLDP (IEEE 802.1AB).
//!
//! The controller sends a probe from each port that is up every [`Config::interval`]. Probes are
//! more frequent after the port came up and after probes of a link were lost, because an overload
//! of the link drops probes, too. A probe that arrives at another switch proves one direction of a
//! link; a link needs both directions. A link is lost when PORT_STATUS reports a port as down, or
//! when probes of one direction have not arrived for [`Config::silence`]. Silence counts only after
//! several probes were sent during it and all octets of the receiving switch were read. A
//! controller that was suspended, or reads too slowly, therefore loses no link.
//!
//! A port that came up is [`Role::Probing`] for [`Config::probing`]: nothing is forwarded from or
//! to it, as in the listening state of a spanning tree (IEEE 802.1D), so that an undiscovered link
//! carries no floods. Afterwards it is [`Role::Edge`], until a probe shows that it is a
//! [`Role::Link`].
//!
//! Forged, repeated or late probes are refused, counted and reported. Not detected: a relay faster
//! than [`Config::transit`], and links with more than two ends.
//!
//! Sans-IO and deterministic: time and the key are arguments. The cost of a call is bounded by the
//! ports of a switch.

mod probe;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use takt_openflow::channel::Instant;

pub use self::probe::Key;
use self::probe::{NoProbe, Probe};
use crate::PortRef;
use crate::frame::{Frame, MacAddress, Network};

/// Limits and timing of a [`Topology`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Interval between two probes of a port.
    pub interval: Duration,
    /// Interval between the probes of a port that came up recently, or of a link whose probes have
    /// not arrived for one and a half intervals.
    pub fast_interval: Duration,
    /// Time for which a port that came up carries only probes.
    pub probing: Duration,
    /// Time for which a port carries only probes after a link fell silent, or after a probe proved
    /// a loop or one direction of a link.
    pub hold: Duration,
    /// Silence after which a link is lost.
    pub silence: Duration,
    /// Maximum transit time of a probe.
    pub transit: Duration,
    /// Maximum number of switches.
    pub switches: usize,
    /// Maximum number of ports per switch; further ones are not used.
    pub ports: usize,
    /// Maximum number of waiting events; the oldest are dropped and counted.
    pub events: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            fast_interval: Duration::from_millis(100),
            probing: Duration::from_millis(500),
            hold: Duration::from_secs(30),
            silence: Duration::from_millis(3500),
            transit: Duration::from_millis(500),
            switches: 256,
            ports: 512,
            events: 4096,
        }
    }
}

/// Role of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The port has no link, or is unknown.
    Down,
    /// The port came up; it is not known yet whether it leads to another switch.
    Probing,
    /// The port leads to no switch of this controller.
    Edge,
    /// The port leads to this port of another switch.
    Link(PortRef),
}

/// Reason of the loss of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkLoss {
    /// A port of the link went down or was removed.
    PortDown,
    /// Probes no longer pass the link.
    Silent,
    /// A port of the link leads to another port now.
    Moved,
}

/// Reason of the refusal of a probe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// The frame has the form of a probe, but not the authentication code of this run.
    Forged,
    /// The probe is not one of the last probes of its port, or was accepted before.
    Repeated,
    /// The transit time exceeded [`Config::transit`].
    Late,
    /// The probe returned to the switch that sent it.
    Loop,
}

/// An event of the topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The role of a port has changed.
    Role(PortRef, Role),
    /// A link was found; the lower port is first.
    LinkFound(PortRef, PortRef),
    /// A link was lost; the lower port is first.
    LinkLost(PortRef, PortRef, LinkLoss),
    /// A probe was refused.
    ProbeRefused {
        /// Port at which the probe arrived.
        at: PortRef,
        /// Port that the probe names.
        from: Option<PortRef>,
        /// Reason.
        why: Refusal,
    },
}

/// Counters of the topology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Probes sent.
    pub sent: u64,
    /// Probes accepted.
    pub accepted: u64,
    /// LLDP frames of other senders, and malformed ones.
    pub foreign: u64,
    /// Probes with a wrong authentication code.
    pub forged: u64,
    /// Probes that were accepted before, or are too old.
    pub repeated: u64,
    /// Probes whose transit time was too long.
    pub late: u64,
    /// Probes that returned to their own switch.
    pub looped: u64,
    /// Ports beyond [`Config::ports`].
    pub ports_refused: u64,
    /// Events that were dropped.
    pub events_dropped: u64,
}

/// Description of a port by PORT_DESC or PORT_STATUS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortDescription {
    /// Port number.
    pub number: u32,
    /// Name of the port.
    pub name: String,
    /// Ethernet address.
    pub address: MacAddress,
    /// Whether the port is up, by configuration and by its link state.
    pub is_up: bool,
}

/// Maximum number of probes of a port in transit: those sent at the fast interval within the
/// transit time.
const IN_TRANSIT_MAX: usize = 6;

/// Number of consecutive probes that must be missing before a link is lost by silence: a suspended
/// controller sends none.
const MISSED_PROBES_MAX: u32 = 4;

/// A probe in transit.
#[derive(Clone, Copy)]
struct Sent {
    sequence: u64,
    at: Instant,
}

struct Port {
    description: PortDescription,
    role: Role,
    /// End of the probing state.
    quiet_until: Instant,
    next_probe: Instant,
    /// Last probes that no switch has received yet.
    in_transit: [Option<Sent>; IN_TRANSIT_MAX],
    /// Port at which its probes arrive, and the time of the last arrival.
    seen_by: Option<(PortRef, Instant)>,
    /// Number of probes sent since that arrival.
    unanswered: u32,
}

struct Switch {
    is_connected: bool,
    /// Whether the switch has sent octets that have not been read yet.
    is_behind: bool,
    ports: BTreeMap<u32, Port>,
}

/// Switches, ports and links.
pub struct Topology {
    /// Version that is incremented by changes of switches, roles and links.
    generation: u64,
    config: Config,
    key: Key,
    switches: BTreeMap<u64, Switch>,
    next_sequence: u64,
    probes: VecDeque<(PortRef, Vec<u8>)>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Topology {
    /// Creates an empty topology. The key must be random and secret.
    pub fn new(config: Config, key: Key) -> Self {
        Self {
            config,
            key,
            generation: 0,
            switches: BTreeMap::new(),
            next_sequence: 0,
            probes: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Handles the first or a repeated connection of a switch; `ports` are all its ports. Reports
    /// whether there is room for it.
    pub fn connect_switch(&mut self, now: Instant, dpid: u64, ports: Vec<PortDescription>) -> bool {
        if !self.switches.contains_key(&dpid) && self.switches.len() >= self.config.switches {
            return false;
        }
        let switch = self.switches.entry(dpid).or_insert(Switch {
            is_connected: true,
            is_behind: false,
            ports: BTreeMap::new(),
        });
        (switch.is_connected, switch.is_behind) = (true, false);
        self.generation += 1;
        let removed: Vec<u32> =
            switch.ports.keys().filter(|known| ports.iter().all(|port| port.number != **known)).copied().collect();
        for port in removed {
            self.remove_port(now, PortRef::new(dpid, port));
        }
        for port in ports {
            self.set_port(now, dpid, port);
        }
        self.renew_links(now, dpid);
        true
    }

    /// Restarts the silence of the links of a switch: no probes could pass while it was not
    /// connected.
    fn renew_links(&mut self, now: Instant, dpid: u64) {
        let links: Vec<[PortRef; 2]> = self
            .ports(dpid)
            .filter_map(|(port, role)| match role {
                Role::Link(peer) => Some([PortRef::new(dpid, port.number), peer]),
                _ => None,
            })
            .collect();
        for end in links.into_iter().flatten() {
            let Some(port) = self.port_mut(end) else { continue };
            if let Some((_, when)) = &mut port.seen_by {
                (*when, port.unanswered) = (now, 0);
            }
        }
    }

    /// Handles the loss of a switch's connection. Its links are kept while their ports are up,
    /// because the switch continues to forward.
    pub fn disconnect_switch(&mut self, dpid: u64) {
        if let Some(switch) = self.switches.get_mut(&dpid) {
            switch.is_connected = false;
            self.generation += 1;
            self.probes.retain(|(from, _)| from.dpid != dpid);
            self.remove_if_isolated(dpid);
        }
    }

    /// Sets whether a switch has sent octets that have not been read yet. Meanwhile no link is lost
    /// by the silence of its ports, because the unread octets may contain probes.
    pub fn set_behind(&mut self, dpid: u64, is_behind: bool) {
        if let Some(switch) = self.switches.get_mut(&dpid) {
            switch.is_behind = is_behind;
        }
    }

    /// Removes a switch that is not connected and has no link.
    fn remove_if_isolated(&mut self, dpid: u64) {
        let Some(switch) = self.switches.get(&dpid) else { return };
        let has_link = switch.ports.values().any(|port| matches!(port.role, Role::Link(_)));
        if !switch.is_connected && !has_link {
            let ports: Vec<u32> = switch.ports.keys().copied().collect();
            for port in ports {
                self.set_role(PortRef::new(dpid, port), Role::Down);
            }
            self.switches.remove(&dpid);
            self.generation += 1;
        }
    }

    /// Handles the addition or change of a port.
    pub fn set_port(&mut self, now: Instant, dpid: u64, description: PortDescription) {
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let at = PortRef::new(dpid, description.number);
        let is_up = description.is_up;
        if !switch.ports.contains_key(&at.port) && switch.ports.len() >= self.config.ports {
            self.counters.ports_refused += 1;
            return;
        }
        let port = switch.ports.entry(at.port).or_insert_with(|| Port {
            description: description.clone(),
            role: Role::Down,
            quiet_until: now,
            next_probe: now,
            in_transit: [None; IN_TRANSIT_MAX],
            seen_by: None,
            unanswered: 0,
        });
        port.description = description;
        let was_up = port.role != Role::Down;
        if is_up && !was_up {
            self.probe(now, at, self.config.probing);
        } else if was_up && !is_up {
            self.take_down(now, at);
        }
    }

    /// Handles the removal of a port.
    pub fn remove_port(&mut self, now: Instant, at: PortRef) {
        self.take_down(now, at);
        if let Some(switch) = self.switches.get_mut(&at.dpid) {
            switch.ports.remove(&at.port);
        }
    }

    fn take_down(&mut self, now: Instant, at: PortRef) {
        self.lose_link(now, at, LinkLoss::PortDown);
        self.set_role(at, Role::Down);
        if let Some(port) = self.port_mut(at) {
            port.in_transit = [None; IN_TRANSIT_MAX];
            port.seen_by = None;
        }
    }

    /// Puts a port into the probing state for a time.
    fn probe(&mut self, now: Instant, at: PortRef, span: Duration) {
        if let Some(port) = self.port_mut(at) {
            port.quiet_until = now.after(span);
            if port.role != Role::Probing {
                port.next_probe = port.next_probe.min(now);
            }
        }
        self.set_role(at, Role::Probing);
    }

    fn port(&self, at: PortRef) -> Option<&Port> {
        self.switches.get(&at.dpid)?.ports.get(&at.port)
    }

    fn port_mut(&mut self, at: PortRef) -> Option<&mut Port> {
        self.switches.get_mut(&at.dpid)?.ports.get_mut(&at.port)
    }

    fn set_role(&mut self, at: PortRef, role: Role) {
        let Some(port) = self.port_mut(at) else { return };
        if port.role != role {
            port.role = role;
            self.generation += 1;
            self.push(Event::Role(at, role));
        }
    }

    fn push(&mut self, event: Event) {
        if self.events.len() >= self.config.events {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Ends a link: both ports are probed again. A silent link may still carry frames, so its ports
    /// wait longer before they count as edges.
    fn lose_link(&mut self, now: Instant, at: PortRef, why: LinkLoss) {
        let Role::Link(peer) = self.role(at) else { return };
        let span = if why == LinkLoss::Silent { self.config.hold } else { self.config.probing };
        for end in [at, peer] {
            if let Some(port) = self.port_mut(end) {
                port.seen_by = None;
            }
            self.probe(now, end, span);
        }
        self.push(Event::LinkLost(at.min(peer), at.max(peer), why));
        for dpid in [at.dpid, peer.dpid] {
            self.remove_if_isolated(dpid);
        }
    }

    /// Handles an LLDP frame that arrived at a port.
    pub fn handle_lldp(&mut self, now: Instant, at: PortRef, frame: &Frame<'_>) {
        let Ok(Network::Lldp(unit)) = frame.network() else {
            self.counters.foreign += 1;
            return;
        };
        let probe = match Probe::read(&self.key, &unit) {
            Ok(probe) => probe,
            Err(NoProbe::Foreign) => {
                self.counters.foreign += 1;
                return;
            }
            Err(NoProbe::Forged) => return self.refuse(at, None, Refusal::Forged),
        };
        match self.accept(now, at, probe) {
            Ok(()) => {
                self.counters.accepted += 1;
                self.record_direction(now, probe.from, at);
            }
            Err(why) => {
                if why == Refusal::Loop {
                    // Two ports of one switch are joined. Neither may carry floods meanwhile.
                    for end in [at, probe.from] {
                        self.probe(now, end, self.config.hold);
                    }
                }
                self.refuse(at, Some(probe.from), why);
            }
        }
    }

    fn refuse(&mut self, at: PortRef, from: Option<PortRef>, why: Refusal) {
        let counter = match why {
            Refusal::Forged => &mut self.counters.forged,
            Refusal::Repeated => &mut self.counters.repeated,
            Refusal::Late => &mut self.counters.late,
            Refusal::Loop => &mut self.counters.looped,
        };
        *counter += 1;
        self.push(Event::ProbeRefused { at, from, why });
    }

    /// Accepts a probe once, within its transit time.
    fn accept(&mut self, now: Instant, at: PortRef, probe: Probe) -> Result<(), Refusal> {
        let transit = self.config.transit;
        if self.port(at).is_none_or(|port| port.role == Role::Down) {
            return Err(Refusal::Late);
        }
        let port = self.port_mut(probe.from).ok_or(Refusal::Repeated)?;
        let is_it = |sent: &&mut Option<Sent>| sent.is_some_and(|sent| sent.sequence == probe.sequence);
        let sent = port.in_transit.iter_mut().find(is_it).ok_or(Refusal::Repeated)?;
        let sent = sent.take().ok_or(Refusal::Repeated)?;
        if now > sent.at.after(transit) {
            return Err(Refusal::Late);
        }
        if at.dpid == probe.from.dpid {
            return Err(Refusal::Loop);
        }
        Ok(())
    }

    /// Records that a probe passed from one port to the other.
    fn record_direction(&mut self, now: Instant, from: PortRef, at: PortRef) {
        for (end, other) in [(from, at), (at, from)] {
            if let Role::Link(peer) = self.role(end)
                && peer != other
            {
                self.lose_link(now, end, LinkLoss::Moved);
            }
        }
        let Some(port) = self.port_mut(from) else { return };
        (port.seen_by, port.unanswered) = (Some((at, now)), 0);
        if self.role(from) == Role::Link(at) {
            return;
        }
        if self.port(at).and_then(|port| port.seen_by).is_some_and(|(by, _)| by == from) {
            self.set_role(from, Role::Link(at));
            self.set_role(at, Role::Link(from));
            self.push(Event::LinkFound(from.min(at), from.max(at)));
        } else {
            // One direction proves that both ports lead to switches: they are no edges while the
            // other direction is awaited.
            for end in [from, at] {
                self.probe(now, end, self.config.hold);
            }
        }
    }

    /// Sends due probes, ends the probing state of ports, and removes silent links.
    pub fn handle_timeout(&mut self, now: Instant) {
        let ports: Vec<PortRef> = self
            .switches
            .iter()
            .flat_map(|(dpid, switch)| switch.ports.keys().map(|number| PortRef::new(*dpid, *number)))
            .collect();
        for at in ports {
            match self.role(at) {
                Role::Probing if self.port(at).is_some_and(|port| now >= port.quiet_until) => {
                    self.set_role(at, Role::Edge);
                }
                Role::Link(peer) if self.silent_at(at, peer).is_some_and(|when| now >= when) => {
                    self.lose_link(now, at, LinkLoss::Silent);
                }
                _ => {}
            }
            if self.probe_at(at).is_some_and(|when| now >= when) {
                self.send_probe(now, at);
            }
        }
    }

    /// Returns the time of the next probe of a port.
    fn probe_at(&self, at: PortRef) -> Option<Instant> {
        let port = self.port(at).filter(|port| port.role != Role::Down)?;
        self.is_connected(at.dpid).then_some(port.next_probe)
    }

    /// Returns the time when a link is lost because its probes from `at` do not arrive at `peer`. A
    /// disconnected switch neither sends nor reports probes.
    fn silent_at(&self, at: PortRef, peer: PortRef) -> Option<Instant> {
        let port = self.port(at)?;
        let (_, when) = port.seen_by?;
        let receiver = self.switches.get(&peer.dpid)?;
        let is_watched = self.is_connected(at.dpid) && receiver.is_connected && !receiver.is_behind;
        (is_watched && port.unanswered >= MISSED_PROBES_MAX).then(|| when.after(self.config.silence))
    }

    fn send_probe(&mut self, now: Instant, at: PortRef) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let (interval, fast) = (self.config.interval, self.config.fast_interval);
        let ttl = u16::try_from(self.config.silence.as_secs() + 1).unwrap_or(u16::MAX);
        let Some(port) = self.port_mut(at) else { return };
        // An overload of the link may drop most probes, so a silent direction is probed more often.
        let is_silent = port.seen_by.is_some_and(|(_, when)| now > when.after(interval + interval / 2));
        let is_urgent = port.role == Role::Probing || matches!(port.role, Role::Link(_)) && is_silent;
        port.next_probe = now.after(if is_urgent { fast } else { interval });
        port.unanswered = port.unanswered.saturating_add(1);
        port.in_transit.rotate_left(1);
        port.in_transit[IN_TRANSIT_MAX - 1] = Some(Sent { sequence, at: now });
        let address = port.description.address;
        let frame = Probe { from: at, sequence }.frame(&self.key, address, ttl);
        self.counters.sent += 1;
        self.probes.push_back((at, frame));
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = self.switches.iter().flat_map(|(dpid, switch)| {
            switch.ports.iter().flat_map(|(number, port)| {
                let at = PortRef::new(*dpid, *number);
                let of_role = match port.role {
                    Role::Probing => Some(port.quiet_until),
                    Role::Link(peer) => self.silent_at(at, peer),
                    Role::Down | Role::Edge => None,
                };
                [of_role, self.probe_at(at)].into_iter().flatten()
            })
        });
        deadlines.min()
    }

    /// Returns the next probe to send: its output port and the frame.
    pub fn poll_probe(&mut self) -> Option<(PortRef, Vec<u8>)> {
        self.probes.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns a version that changes with every switch, role or link.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the role of a port.
    pub fn role(&self, at: PortRef) -> Role {
        self.port(at).map_or(Role::Down, |port| port.role)
    }

    /// Reports whether a switch is known and connected.
    pub fn is_connected(&self, dpid: u64) -> bool {
        self.switches.get(&dpid).is_some_and(|switch| switch.is_connected)
    }

    /// Iterates over the switches.
    pub fn switches(&self) -> impl Iterator<Item = u64> {
        self.switches.keys().copied()
    }

    /// Iterates over the ports of a switch with their roles.
    pub fn ports(&self, dpid: u64) -> impl Iterator<Item = (&PortDescription, Role)> {
        let ports = self.switches.get(&dpid).into_iter().flat_map(|switch| switch.ports.values());
        ports.map(|port| (&port.description, port.role))
    }

    /// Iterates over all ports that lead to no switch.
    pub fn edges(&self) -> impl Iterator<Item = PortRef> {
        self.switches.iter().flat_map(|(dpid, switch)| {
            let edges = switch.ports.iter().filter(|(_, port)| port.role == Role::Edge);
            edges.map(|(number, _)| PortRef::new(*dpid, *number))
        })
    }

    /// Iterates over all links, each once, the lower port first.
    pub fn links(&self) -> impl Iterator<Item = (PortRef, PortRef)> {
        self.switches.iter().flat_map(|(dpid, switch)| {
            switch.ports.iter().filter_map(|(number, port)| match port.role {
                Role::Link(peer) => Some((PortRef::new(*dpid, *number), peer)).filter(|(at, peer)| at < peer),
                _ => None,
            })
        })
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(at, Role::Down) => write!(f, "port {at} is down"),
            Self::Role(at, Role::Probing) => write!(f, "port {at} is probed"),
            Self::Role(at, Role::Edge) => write!(f, "port {at} leads to no switch"),
            Self::Role(at, Role::Link(peer)) => write!(f, "port {at} leads to {peer}"),
            Self::LinkFound(a, b) => write!(f, "link {a} - {b} found"),
            Self::LinkLost(a, b, why) => {
                let why = match why {
                    LinkLoss::PortDown => "a port is down",
                    LinkLoss::Silent => "no probe passes",
                    LinkLoss::Moved => "a port leads elsewhere",
                };
                write!(f, "link {a} - {b} lost: {why}")
            }
            Self::ProbeRefused { at, from, why } => {
                let why = match why {
                    Refusal::Forged => "its authentication code is wrong",
                    Refusal::Repeated => "it was received before, or is too old",
                    Refusal::Late => "it was in transit for too long",
                    Refusal::Loop => "it returned to its own switch",
                };
                match from {
                    Some(from) => write!(f, "LLDP of {from} refused at {at}: {why}"),
                    None => write!(f, "LLDP refused at {at}: {why}"),
                }
            }
        }
    }
}
