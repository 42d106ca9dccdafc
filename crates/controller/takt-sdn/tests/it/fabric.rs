//! Deterministic simulation of switches with tables, cables and hosts, connected to a controller.
//! Frames take no time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use takt_openflow::channel::Instant;
use takt_sdn::PortRef;
use takt_sdn::controller::{Config, ConnectionId, Controller, Event};
use takt_sdn::frame::{ArpOperation, ArpPacket, MacAddress, UdpFrame, VlanTag, arp_frame};
use takt_sdn::store::Records;
use takt_sdn::topology::Key;

use crate::switch::SimulatedSwitch;

/// Maximum number of frames that one event may cause; more indicate a loop.
const FRAMES_MAX: usize = 20_000;

/// A host at an edge port, with its received frames.
pub struct Host {
    pub at: PortRef,
    pub mac: MacAddress,
    pub address: Ipv4Addr,
    pub inbox: Vec<Vec<u8>>,
}

pub struct Fabric {
    pub now: Instant,
    pub controller: Controller,
    pub switches: BTreeMap<u64, SimulatedSwitch>,
    connections: BTreeMap<u64, ConnectionId>,
    cables: BTreeMap<PortRef, PortRef>,
    pub hosts: Vec<Host>,
    /// Frames that leave a port.
    queue: VecDeque<(PortRef, Vec<u8>)>,
    pub events: Vec<Event>,
    /// Switches that do not read octets of the controller.
    pub stalled: BTreeSet<u64>,
    /// Number of frames that crossed a cable between switches.
    pub crossings: usize,
}

pub fn port(dpid: u64, port: u32) -> PortRef {
    PortRef::new(dpid, port)
}

/// Number of ports of a switch: 1 to 4 are for cables, 5 to 8 for hosts.
const PORTS: u32 = 8;

impl Fabric {
    /// Creates switches 1 to `count`, joined by cables, each connected to the controller.
    pub fn new(count: u64, cables: &[(PortRef, PortRef)]) -> Self {
        Self::with(Config::default(), count, cables)
    }

    pub fn with(config: Config, count: u64, cables: &[(PortRef, PortRef)]) -> Self {
        let mut fabric = Self {
            now: Instant(0),
            controller: Controller::new(Instant(0), config, Key([3; 16])),
            switches: (1..=count).map(|dpid| (dpid, SimulatedSwitch::new(dpid, PORTS))).collect(),
            connections: BTreeMap::new(),
            cables: cables.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect(),
            hosts: Vec::new(),
            queue: VecDeque::new(),
            events: Vec::new(),
            stalled: BTreeSet::new(),
            crossings: 0,
        };
        for dpid in 1..=count {
            fabric.connect(dpid);
        }
        fabric
    }

    pub fn connect(&mut self, dpid: u64) {
        let id = self.controller.connect(self.now).expect("the controller accepts the connection");
        self.connections.insert(dpid, id);
        let now = self.now;
        self.switch(dpid).connect(now);
        self.run();
    }

    pub fn disconnect(&mut self, dpid: u64) {
        if let Some(id) = self.connections.remove(&dpid) {
            self.controller.handle_disconnect(self.now, id);
        }
        self.switch(dpid).disconnect();
        self.run();
    }

    /// Replaces the controller by another one with another key.
    pub fn restart_controller(&mut self) {
        self.restart_with(Config::default(), &Records::new());
    }

    /// Replaces the controller by another one with the records of an earlier run.
    pub fn restart_with(&mut self, config: Config, records: &Records) {
        self.controller = Controller::new(self.now, config, Key([9; 16]));
        self.controller.restore(self.now, records);
        self.connect_all();
    }

    /// Replaces the controller by a standby of a cluster, or by a leader of this generation.
    pub fn restart_as(&mut self, generation: Option<u64>, records: &Records) {
        self.controller = Controller::new(self.now, Config::default(), Key([9; 16]));
        self.controller.become_standby();
        if let Some(generation) = generation {
            self.controller.become_leader(self.now, generation, records);
        }
        self.connect_all();
    }

    fn connect_all(&mut self) {
        self.connections.clear();
        self.events.clear();
        let dpids: Vec<u64> = self.switches.keys().copied().collect();
        for dpid in dpids {
            self.switch(dpid).disconnect();
            self.connect(dpid);
        }
    }

    pub fn switch(&mut self, dpid: u64) -> &mut SimulatedSwitch {
        self.switches.get_mut(&dpid).expect("the switch exists")
    }

    /// Adds a host, whose addresses depend on its index.
    pub fn host(&mut self, at: PortRef) -> usize {
        let n = u8::try_from(self.hosts.len() + 1).expect("few hosts");
        let mac = MacAddress([2, 0, 0, 0, 0, n]);
        self.hosts.push(Host { at, mac, address: Ipv4Addr::new(10, 0, 0, n), inbox: Vec::new() });
        self.hosts.len() - 1
    }

    /// Sends a frame into a switch.
    pub fn send(&mut self, at: PortRef, frame: Vec<u8>) {
        let now = self.now;
        let out = self.switch(at.dpid).receive(now, at.port, &frame);
        self.queue.extend(out);
        self.run();
    }

    pub fn send_from(&mut self, host: usize, frame: Vec<u8>) {
        self.send(self.hosts[host].at, frame);
    }

    /// Builds a UDP datagram of one host to another.
    pub fn udp(&self, from: usize, to: usize, port: u16, payload: &[u8]) -> Vec<u8> {
        let (from, to) = (&self.hosts[from], &self.hosts[to]);
        self.udp_to(from, to.mac, to.address, port, &[], payload)
    }

    pub fn udp_to(
        &self,
        from: &Host,
        mac: MacAddress,
        to: Ipv4Addr,
        port: u16,
        tags: &[VlanTag],
        payload: &[u8],
    ) -> Vec<u8> {
        let frame = UdpFrame {
            destination_mac: mac,
            source_mac: from.mac,
            tags,
            source: (from.address, 5000).into(),
            destination: (to, port).into(),
            hop_limit: 64,
            traffic_class: 0,
            payload,
        };
        frame.build().expect("short")
    }

    pub fn broadcast(&self, from: usize, payload: &[u8]) -> Vec<u8> {
        self.udp_to(&self.hosts[from], MacAddress::BROADCAST, Ipv4Addr::BROADCAST, 9, &[], payload)
    }

    /// Builds an ARP frame between hosts: a broadcast request, or a unicast reply.
    pub fn arp(&self, operation: ArpOperation, from: usize, to: usize) -> Vec<u8> {
        let (from, to) = (&self.hosts[from], &self.hosts[to]);
        let (destination, target) = match operation {
            ArpOperation::Request => (MacAddress::BROADCAST, MacAddress::default()),
            ArpOperation::Reply => (to.mac, to.mac),
        };
        let packet = ArpPacket { operation, sender: (from.mac, from.address), target: (target, to.address) };
        arp_frame(destination, from.mac, &[], &packet)
    }

    /// Returns how often each host got a frame since the last call.
    pub fn received(&mut self, frame: &[u8]) -> Vec<usize> {
        let count = |host: &mut Host| host.inbox.drain(..).filter(|got| got == frame).count();
        self.hosts.iter_mut().map(count).collect()
    }

    /// Cuts or repairs a cable, with PORT_STATUS of both ends.
    pub fn set_cable(&mut self, a: PortRef, b: PortRef, is_up: bool) {
        if is_up {
            self.cables.extend([(a, b), (b, a)]);
        } else {
            self.cables.remove(&a);
            self.cables.remove(&b);
        }
        for end in [a, b] {
            self.switch(end.dpid).set_port(end.port, is_up);
        }
        self.run();
    }

    pub fn set_port(&mut self, at: PortRef, is_up: bool) {
        self.switch(at.dpid).set_port(at.port, is_up);
        self.run();
    }

    /// Breaks a cable without any effect on the state of its ports.
    pub fn break_silently(&mut self, a: PortRef, b: PortRef) {
        self.cables.remove(&a);
        self.cables.remove(&b);
    }

    /// Moves octets and frames until none are left.
    pub fn run(&mut self) {
        let mut frames = 0;
        loop {
            let mut is_busy = self.exchange();
            while let Some((from, frame)) = self.queue.pop_front() {
                is_busy = true;
                frames += 1;
                assert!(frames < FRAMES_MAX, "frames circle");
                self.carry(from, frame);
            }
            self.events.extend(std::iter::from_fn(|| self.controller.poll_event()));
            if !is_busy {
                return;
            }
        }
    }

    fn carry(&mut self, from: PortRef, frame: Vec<u8>) {
        if let Some(to) = self.cables.get(&from).copied() {
            self.crossings += 1;
            let now = self.now;
            let out = self.switch(to.dpid).receive(now, to.port, &frame);
            self.queue.extend(out);
        }
        for host in self.hosts.iter_mut().filter(|host| host.at == from) {
            host.inbox.push(frame.clone());
        }
    }

    /// Exchanges octets between the controller and the switches. Reports whether there were any.
    fn exchange(&mut self) -> bool {
        let mut is_busy = false;
        for (dpid, id) in self.connections.clone() {
            let is_stalled = self.stalled.contains(&dpid);
            let to_switch = if is_stalled { Vec::new() } else { self.controller.poll_transmit(id).to_vec() };
            let switch = self.switches.get_mut(&dpid).expect("the switch is connected");
            let (consumed, frames) = switch.handle_bytes(self.now, &to_switch);
            self.controller.transmitted(id, consumed);
            self.queue.extend(frames);
            let to_controller = switch.poll_transmit().to_vec();
            if !to_controller.is_empty() {
                let consumed = self.controller.handle_bytes(self.now, id, &to_controller);
                self.switch(dpid).transmitted(consumed);
            }
            is_busy |= !to_switch.is_empty() || !to_controller.is_empty();
            if !self.controller.is_open(id) {
                self.connections.remove(&dpid);
                self.switch(dpid).disconnect();
            }
        }
        is_busy
    }

    /// Advances the time.
    pub fn pass(&mut self, span: Duration) {
        let end = self.now.after(span);
        loop {
            let next = self.controller.poll_timeout().filter(|next| *next <= end).unwrap_or(end);
            self.now = next.max(self.now);
            self.controller.handle_timeout(self.now);
            let now = self.now;
            self.switches.values_mut().for_each(|switch| switch.handle_timeout(now));
            self.run();
            let is_done = self.controller.poll_timeout().is_none_or(|next| next > end);
            if self.now == end && is_done {
                return;
            }
        }
    }

    /// Runs until the controller has discovered everything.
    pub fn settle(&mut self) {
        self.pass(Duration::from_secs(2));
        assert!(self.controller.is_settled(), "{:?}", self.events);
    }

    pub fn links(&self) -> BTreeSet<(PortRef, PortRef)> {
        self.controller.topology().links().collect()
    }
}

/// Returns the cables of a ring of three switches.
pub fn ring() -> Vec<(PortRef, PortRef)> {
    vec![(port(1, 1), port(2, 2)), (port(2, 1), port(3, 2)), (port(1, 2), port(3, 1))]
}

/// Returns the cables of switches in a line.
pub fn line(count: u64) -> Vec<(PortRef, PortRef)> {
    (1..count).map(|dpid| (port(dpid, 1), port(dpid + 1, 2))).collect()
}
