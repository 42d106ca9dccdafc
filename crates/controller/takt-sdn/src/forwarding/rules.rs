//! Rules that make switches forward like plain Ethernet.
//!
//! Table 0 decides which frames may enter. Table 1 clears the DSCP if classes are reserved for
//! admitted flows. Table 2 decides the output ports. Table 3 limits packets to the controller: each
//! port has a meter of its own, so that a flood of one host delays no frames of other ports. Frames
//! that match no rule of table 2 share one meter for all ports of a switch. Table 4 limits the
//! copies of multicast frames to hosts with a [`HostLimit`]: OpenFlow 1.3 has no meter in a bucket,
//! so such a frame first leaves by all other ports, and a frame that the meter in table 4 drops
//! reaches none of these hosts. Priorities between [`RESERVED_PRIORITY`] and [`LINK_PRIORITY`] of
//! table 0 are reserved for admitted flows. Every rule has a cookie of [`COOKIE`]; its kind is in
//! the next octet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use takt_openflow::action::Action;
use takt_openflow::flow::{FlowMod, flow_flags};
use takt_openflow::group::{Bucket, GroupMod, GroupType};
use takt_openflow::instruction::Instruction;
use takt_openflow::meter::{Band, MeterCommand, MeterMod, meter_flags};
use takt_openflow::oxm::{Masked, Oxm};
use takt_openflow::value::{MacAddress, NO_BUFFER_LEN, PortNo};

use super::Config;
use crate::devices::HostId;
use crate::frame::lldp::NEAREST_BRIDGE;
use crate::isolation::Filter;
use crate::model::{HostLimit, Share};
use crate::topology::Role;

/// Upper 16 bits of every cookie.
pub const COOKIE: u64 = 0x544b_0000_0000_0000;
/// Mask of the cookie bits that identify rules of this controller.
pub const COOKIE_MASK: u64 = 0xffff_0000_0000_0000;

/// Purpose of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Independent of links and hosts.
    Base = 1,
    /// Derived from the roles of ports.
    Topology = 2,
    /// Lets a host send.
    Source = 3,
    /// Leads to a host.
    Route = 4,
    /// Leads to the members of a multicast group.
    Multicast = 5,
    /// Carries an admitted flow.
    Admitted = 6,
    /// Derived from the isolation policy.
    Isolation = 7,
}

impl Kind {
    /// Returns the cookie of rules of this kind.
    pub const fn cookie(self) -> u64 {
        COOKIE | (self as u64) << 40
    }
}

/// Table that decides which frames may enter.
pub const ADMISSION: u8 = 0;
/// Table that removes the class from frames without admission.
pub const MARKING: u8 = 1;
/// Table that decides the output ports.
pub const FORWARDING: u8 = 2;
/// Table that limits packets of hosts to the controller, per port.
pub const CONTROL: u8 = 3;
/// Table that limits multicast frames to hosts.
pub const DELIVERY: u8 = 4;
/// Number of tables that a switch needs; one more if hosts have limits.
pub const TABLES: u8 = 4;

/// Priority of LLDP and of addresses that bridges do not forward (table 0).
pub const RESERVED_PRIORITY: u16 = 60_000;
/// Priority of frames of admitted flows (table 0).
pub const ADMITTED_PRIORITY: u16 = 55_000;
/// Priority of frames that arrive from another switch (table 0).
pub const LINK_PRIORITY: u16 = 50_000;
const CLEARING_PRIORITY: u16 = 10_000;
const FRAGMENT_PRIORITY: u16 = 40_000;
const DISCOVERY_PRIORITY: u16 = 39_000;
const LEARNING_PRIORITY: u16 = 38_000;
const SOURCE_PRIORITY: u16 = 30_000;
const BLOCKED_PRIORITY: u16 = 30_000;
const ROUTE_PRIORITY: u16 = 20_000;
const MULTICAST_PRIORITY: u16 = 15_000;
const FLOOD_PRIORITY: u16 = 10_000;
const PORT_PRIORITY: u16 = 10_000;

/// Group of each switch that floods along the tree.
pub const FLOOD_GROUP: u32 = 0x544b_0001;
/// Group of each switch that floods to hosts with limits.
pub const LIMITED_GROUP: u32 = 0x544b_0002;

/// Meters of packets to the controller, and of packets to hosts with limits.
pub mod meter {
    /// Meter of LLDP from ports that lead to switches.
    pub const LLDP_OF_LINKS: u32 = 1;
    /// Meter of frames that match no rule of table 2.
    pub const MISS: u32 = 2;
    /// Meter of copies of multicast frames to all hosts with limits at the switch.
    pub const GROUPS: u32 = 3;
    /// First meter of frames to the hosts of a port, above all meters of admitted flows. Open
    /// vSwitch has 0x40000 meters.
    pub const HOSTS: u32 = 0x3_0000;
    const HOST_PORT_MAX: u32 = 0xffff;
    /// First meter of packets from a port to the controller.
    const PORTS: u32 = 16;

    /// Returns the meter of packets from a port. Ports with large numbers share [`MISS`]; the
    /// meters of admitted flows have higher ids.
    pub fn of_port(port: u32) -> u32 {
        if port < crate::admission::FIRST_METER - PORTS { PORTS + port } else { MISS }
    }

    /// Returns the meter of frames to the hosts of a port. Ports with numbers of 65,535 and above
    /// share one.
    pub fn of_hosts(port: u32) -> u32 {
        HOSTS + port.min(HOST_PORT_MAX)
    }
}

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const LLDP: u16 = 0x88cc;
const IGMP: u8 = 2;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
/// Multicast listener query, reports and done (RFC 2710, RFC 3810), neighbor solicitation and
/// advertisement (RFC 4861).
const LEARNING_ICMPV6: [u8; 6] = [130, 131, 132, 143, 135, 136];

/// Multicast bit of an Ethernet address.
const GROUP_BIT: MacAddress = MacAddress([1, 0, 0, 0, 0, 0]);
/// All but the last four bits: mask of the 16 addresses that bridges do not forward (IEEE 802.1Q).
const RESERVED_MASK: MacAddress = MacAddress([0xff, 0xff, 0xff, 0xff, 0xff, 0xf0]);

/// Builder of the rules of one switch.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Timeouts and rates.
    pub config: &'a Config,
    /// Whether the switch has meters.
    pub has_meters: bool,
    /// Limits of the hosts at ports. Limits of ports that lead to switches are ignored.
    pub limits: &'a BTreeMap<u32, HostLimit>,
}

fn base(kind: Kind, table: u8, priority: u16, matching: Vec<Oxm>, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod { cookie: kind.cookie(), table, priority, matching: matching.into(), instructions, ..FlowMod::default() }
}

fn apply(actions: Vec<Action>) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(actions)]
}

/// Matches IP fragments by the field IP_FRAG of Open vSwitch (its bit "any"); OpenFlow has no such
/// field.
fn is_fragment() -> Oxm {
    Oxm::Other { class: 0x0001, field: 26, has_mask: true, body: vec![1, 1] }
}

fn group_addresses() -> Oxm {
    Oxm::EthDst(Masked::new(GROUP_BIT, GROUP_BIT))
}

impl Rules<'_> {
    fn to_controller(self, meter: u32) -> Vec<Instruction> {
        let mut instructions = apply(vec![Action::Output { port: PortNo::CONTROLLER, max_len: NO_BUFFER_LEN }]);
        if self.has_meters {
            instructions.insert(0, Instruction::Meter(meter));
        }
        instructions
    }

    /// Returns the meters of packets to the controller and to hosts with limits, for a switch with
    /// these ports.
    pub fn meters(&self, ports: &[(u32, Role)]) -> BTreeMap<u32, MeterMod> {
        if !self.has_meters {
            return BTreeMap::new();
        }
        let rates = &self.config.rates;
        let of_ports = ports.iter().map(|(port, _)| (meter::of_port(*port), rates.port));
        let others = [(meter::LLDP_OF_LINKS, rates.lldp_of_links), (meter::MISS, rates.miss)];
        let to_controller = of_ports.chain(others).map(|(meter, rate)| (meter, Share { rate, burst: rate }, 0));
        let to_hosts = self.limits.iter().map(|(port, limit)| (meter::of_hosts(*port), limit.unicast()));
        let to_groups = self.group_share(ports).map(|share| (meter::GROUPS, share));
        // Of several ports with one meter the last takes effect; it must be the one with the lowest
        // limit.
        let mut limited: Vec<(u32, Share)> = to_hosts.chain(to_groups).collect();
        limited.sort_by_key(|(meter, share)| (*meter, std::cmp::Reverse(share.rate)));
        let limited = limited.into_iter().map(|(meter, share)| (meter, share, meter_flags::STATS));
        let of = |(meter, Share { rate, burst }, more): (u32, Share, u16)| {
            let flags = meter_flags::PKTPS | meter_flags::BURST | more;
            (meter, MeterMod { command: MeterCommand::Add, flags, meter, bands: vec![Band::Drop { rate, burst }] })
        };
        to_controller.chain(limited).map(of).collect()
    }

    /// Returns the smallest group share among the hosts with limits. If no port leads to such
    /// hosts, the limits of all ports count, because a meter to which rules refer must not be
    /// deleted.
    fn group_share(&self, ports: &[(u32, Role)]) -> Option<Share> {
        let is_edge = |port: u32| ports.contains(&(port, Role::Edge));
        let least = |limits: &mut dyn Iterator<Item = &HostLimit>| limits.min().map(|limit| limit.groups());
        let mut of_hosts = self.limits.iter().filter(|(port, _)| is_edge(**port)).map(|(_, limit)| limit);
        least(&mut of_hosts).or_else(|| least(&mut self.limits.values()))
    }

    /// Returns the rules that do not depend on links or hosts. Datagrams to the UDP ports
    /// `discovery` and to the addresses `metatraffic` are sent to the controller.
    pub fn base(&self, discovery: &BTreeSet<u16>, metatraffic: &BTreeSet<SocketAddr>) -> Vec<FlowMod> {
        let kind = Kind::Base;
        let lldp = vec![Oxm::EthDst(MacAddress(NEAREST_BRIDGE.0).into()), Oxm::EthType(LLDP)];
        let reserved = Oxm::EthDst(Masked::new(MacAddress([0x01, 0x80, 0xc2, 0, 0, 0]), RESERVED_MASK));
        let limited = || vec![Instruction::GotoTable(CONTROL)];
        let mut rules = vec![
            base(kind, ADMISSION, RESERVED_PRIORITY, lldp, limited()),
            base(kind, ADMISSION, RESERVED_PRIORITY - 1, vec![reserved], vec![]),
            base(kind, ADMISSION, 0, vec![], limited()),
            base(kind, MARKING, 0, vec![], vec![Instruction::GotoTable(FORWARDING)]),
            base(kind, FORWARDING, FLOOD_PRIORITY, vec![group_addresses()], self.flood()),
            base(kind, FORWARDING, 0, vec![], self.to_controller(meter::MISS)),
            base(kind, CONTROL, 0, vec![], self.to_controller(meter::MISS)),
        ];
        let mut learn = |matching| rules.push(base(kind, ADMISSION, LEARNING_PRIORITY, matching, limited()));
        learn(vec![Oxm::EthType(ARP)]);
        learn(vec![Oxm::EthType(IPV4), Oxm::IpProto(IGMP)]);
        for number in LEARNING_ICMPV6 {
            learn(vec![Oxm::EthType(IPV6), Oxm::IpProto(ICMPV6), Oxm::Icmpv6Type(number)]);
        }
        for ether_type in [IPV4, IPV6] {
            if self.config.clear_dscp {
                rules.push(base(kind, MARKING, CLEARING_PRIORITY, vec![Oxm::EthType(ether_type)], self.onward()));
            }
            let udp = vec![Oxm::EthType(ether_type), Oxm::IpProto(UDP)];
            if self.config.drop_udp_fragments {
                let matching = [udp.clone(), vec![is_fragment()]].concat();
                rules.push(base(kind, ADMISSION, FRAGMENT_PRIORITY, matching, vec![]));
            }
            for port in discovery {
                let matching = [udp.clone(), vec![Oxm::UdpDst(*port)]].concat();
                rules.push(base(kind, ADMISSION, DISCOVERY_PRIORITY, matching, limited()));
            }
        }
        for to in metatraffic {
            let (ether_type, address) = match to.ip() {
                IpAddr::V4(address) => (IPV4, Oxm::Ipv4Dst(address.into())),
                IpAddr::V6(address) => (IPV6, Oxm::Ipv6Dst(address.into())),
            };
            let matching = vec![Oxm::EthType(ether_type), Oxm::IpProto(UDP), address, Oxm::UdpDst(to.port())];
            rules.push(base(kind, ADMISSION, DISCOVERY_PRIORITY, matching, limited()));
        }
        rules
    }

    /// Floods a multicast frame along the tree and to hosts without limits, then to hosts with
    /// limits.
    fn flood(&self) -> Vec<Instruction> {
        let mut instructions = apply(vec![Action::Group(FLOOD_GROUP)]);
        if !self.limits.is_empty() {
            instructions.push(Instruction::GotoTable(DELIVERY));
        }
        instructions
    }

    /// Builds a rule that copies frames to hosts with limits.
    fn delivery(kind: Kind, priority: u16, matching: Vec<Oxm>, actions: Vec<Action>) -> FlowMod {
        let instructions = vec![Instruction::Meter(meter::GROUPS), Instruction::ApplyActions(actions)];
        base(kind, DELIVERY, priority, matching, instructions)
    }

    /// Returns the rules of the isolation policy.
    pub fn isolation(&self, filters: &[Filter]) -> Vec<FlowMod> {
        let rule = |filter: &Filter| {
            let instructions = if filter.is_allowed { self.onward() } else { Vec::new() };
            let priority = CLEARING_PRIORITY + 1 + filter.rank;
            base(Kind::Isolation, MARKING, priority, filter.fields(), instructions)
        };
        filters.iter().map(rule).collect()
    }

    /// Returns the instructions for an IP packet that continues without a class.
    fn onward(&self) -> Vec<Instruction> {
        let clear = self.config.clear_dscp.then(|| apply(vec![Action::SetField(Oxm::IpDscp(0))]));
        clear.into_iter().flatten().chain([Instruction::GotoTable(FORWARDING)]).collect()
    }

    /// Returns the rules that depend on the roles of the ports. Among ports that lead to switches,
    /// floods use only those of `tree`.
    pub fn topology(&self, ports: &[(u32, Role)], tree: &BTreeSet<u32>) -> Vec<FlowMod> {
        let kind = Kind::Topology;
        let mut rules = Vec::new();
        if !self.limits.is_empty() {
            let actions = vec![Action::Group(LIMITED_GROUP)];
            rules.push(Self::delivery(kind, FLOOD_PRIORITY, vec![group_addresses()], actions));
        }
        for (port, role) in ports {
            let in_port = Oxm::InPort(PortNo(*port));
            if !matches!(role, Role::Link(_)) {
                let to_controller = self.to_controller(meter::of_port(*port));
                rules.push(base(kind, CONTROL, PORT_PRIORITY, vec![in_port], to_controller));
                continue;
            }
            let lldp = vec![in_port.clone(), Oxm::EthDst(MacAddress(NEAREST_BRIDGE.0).into()), Oxm::EthType(LLDP)];
            let to_controller = self.to_controller(meter::LLDP_OF_LINKS);
            rules.push(base(kind, ADMISSION, RESERVED_PRIORITY + 1, lldp, to_controller));
            let enter = vec![Instruction::GotoTable(MARKING)];
            rules.push(base(kind, ADMISSION, LINK_PRIORITY, vec![in_port.clone()], enter));
            if !tree.contains(port) {
                rules.push(base(kind, FORWARDING, BLOCKED_PRIORITY, vec![in_port, group_addresses()], vec![]));
            }
        }
        rules
    }

    /// Returns the flood groups: along the tree and to edges, and to edges with limits. A switch
    /// does not send to the ingress port.
    pub fn flood_groups(&self, ports: &[(u32, Role)], tree: &BTreeSet<u32>) -> Vec<GroupMod> {
        let edges = ports.iter().filter(|(_, role)| *role == Role::Edge).map(|(port, _)| *port);
        let (limited, free): (Vec<u32>, Vec<u32>) = edges.partition(|port| self.limits.contains_key(port));
        let along_tree = ports.iter().map(|(port, _)| *port).filter(|port| tree.contains(port));
        let free: BTreeSet<u32> = free.into_iter().chain(along_tree).collect();
        let bucket = |port: u32| Bucket::new(vec![Action::output(PortNo(port))]);
        let group =
            |number, ports: Vec<u32>| GroupMod::add(number, GroupType::All, ports.into_iter().map(bucket).collect());
        let mut groups = vec![group(FLOOD_GROUP, free.into_iter().collect())];
        if !self.limits.is_empty() {
            groups.push(group(LIMITED_GROUP, limited));
        }
        groups
    }

    /// Returns the rule that lets a host send from a port.
    pub fn source(&self, host: HostId, port: u32) -> FlowMod {
        let matching =
            vec![Oxm::InPort(PortNo(port)), Oxm::EthSrc(MacAddress(host.mac.0).into()), Oxm::VlanVid(host.vlan.into())];
        let enter = vec![Instruction::GotoTable(MARKING)];
        self.dynamic(base(Kind::Source, ADMISSION, SOURCE_PRIORITY, matching, enter))
    }

    /// Returns the rule that sends frames to a host out of a port. `is_last` reports whether the
    /// host is attached to this port.
    pub fn route(&self, host: HostId, port: u32, is_last: bool) -> FlowMod {
        let matching = vec![Oxm::EthDst(MacAddress(host.mac.0).into()), Oxm::VlanVid(host.vlan.into())];
        let mut instructions = apply(vec![Action::output(PortNo(port))]);
        if is_last && self.limits.contains_key(&port) {
            instructions.insert(0, Instruction::Meter(meter::of_hosts(port)));
        }
        self.dynamic(base(Kind::Route, FORWARDING, ROUTE_PRIORITY, matching, instructions))
    }

    /// Returns the rules that send frames to a multicast address out of `links`, along the tree,
    /// and out of `edges`. Without a port, the frames are dropped.
    pub fn multicast(&self, group: HostId, links: &BTreeSet<u32>, edges: &BTreeSet<u32>) -> Vec<FlowMod> {
        let matching = || vec![Oxm::EthDst(MacAddress(group.mac.0).into()), Oxm::VlanVid(group.vlan.into())];
        let (limited, free): (Vec<u32>, Vec<u32>) = edges.iter().partition(|port| self.limits.contains_key(port));
        let free: BTreeSet<u32> = free.into_iter().chain(links.iter().copied()).collect();
        let output = |port: u32| Action::output(PortNo(port));
        let outputs: Vec<Action> = free.into_iter().map(output).collect();
        let mut instructions = if outputs.is_empty() { Vec::new() } else { apply(outputs) };
        if limited.is_empty() {
            return vec![base(Kind::Multicast, FORWARDING, MULTICAST_PRIORITY, matching(), instructions)];
        }
        instructions.push(Instruction::GotoTable(DELIVERY));
        let outputs = limited.into_iter().map(output).collect();
        vec![
            base(Kind::Multicast, FORWARDING, MULTICAST_PRIORITY, matching(), instructions),
            Self::delivery(Kind::Multicast, MULTICAST_PRIORITY, matching(), outputs),
        ]
    }

    fn dynamic(&self, rule: FlowMod) -> FlowMod {
        FlowMod { idle_timeout: self.config.idle_seconds, flags: flow_flags::SEND_FLOW_REM, ..rule }
    }
}

/// Returns the host and port of a rule of the kind [`Kind::Source`], or the host of a rule of the
/// kind [`Kind::Route`].
pub fn host_of(matching: &[Oxm]) -> Option<(HostId, Option<u32>)> {
    let (mut mac, mut vlan, mut port) = (None, None, None);
    for field in matching {
        match field {
            Oxm::EthSrc(Masked { value, mask: None }) | Oxm::EthDst(Masked { value, mask: None }) => mac = Some(*value),
            Oxm::VlanVid(Masked { value, mask: None }) => vlan = Some(*value),
            Oxm::InPort(number) => port = Some(number.0),
            _ => return None,
        }
    }
    Some((HostId { vlan: vlan?, mac: crate::frame::MacAddress(mac?.0) }, port))
}
