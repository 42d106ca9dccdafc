//! Flow entries and meters of admitted flows.
//!
//! An entry is in table 0, above all other rules for traffic of hosts. It matches the ingress port,
//! the VLAN, the addresses, and the UDP port of the receiver. Its actions put the frame into the
//! queue of its class, by DSCP, by SET_QUEUE or by both ([`QueueSelection`]), and send it out. The
//! entry in the first switch has a meter.
//!
//! A flow to a multicast group has one entry in each switch of its tree, which sends a copy out of
//! each port. Other members of the group get copies by the same tree and its branches, in the
//! lowest class. Frames enter each switch by one port only, so that no member gets two copies.
//! Branches use all discovered links: copies in the lowest class need no switch model.

mod protection;
mod tree;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use takt_openflow::action::Action;
use takt_openflow::flow::FlowMod;
use takt_openflow::group::GroupMod;
use takt_openflow::instruction::Instruction;
use takt_openflow::meter::{Band, MeterCommand, MeterMod, meter_flags};
use takt_openflow::oxm::Oxm;
use takt_openflow::value::{MacAddress, PortNo};

pub use self::protection::{GROUPS, protect};
use self::tree::{FlowSwitch, flow_switches};
use crate::PortRef;
use crate::controller::FlowKey;
use crate::devices::Vlan;
use crate::forwarding::Link;
use crate::forwarding::rules::{ADMISSION, ADMITTED_PRIORITY, Kind};
use crate::model::{HostId, QueueSelection, Snapshot};
use crate::schedule::Route;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: u8 = 17;

/// Header fields that identify the datagrams of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// Interface of the sender.
    pub sender: HostId,
    /// VLAN of the frames.
    pub vlan: Vlan,
    /// Source address.
    pub source: IpAddr,
    /// Address of the receiver, or a multicast group, of the same IP version.
    pub destination: IpAddr,
    /// UDP port of the receiver.
    pub port: u16,
}

impl Selector {
    /// Reports whether the flow has a multicast destination.
    pub fn is_group(&self) -> bool {
        self.destination.is_multicast()
    }
}

/// Receivers of the frames of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receivers {
    /// Hosts that get frames in their class; other hosts on the route get none.
    pub hosts: BTreeSet<HostId>,
    /// Edge ports that get frames in the lowest class.
    pub other_ports: BTreeSet<PortRef>,
    /// Links that lead to them, including those of switches without a model.
    pub links: Arc<BTreeSet<Link>>,
    /// Switches that no branch may pass.
    pub avoided: BTreeSet<u64>,
}

/// Policer of a flow in the first switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// Number of the meter.
    pub meter: u32,
    /// Rate in kbit/s.
    pub rate_kbps: u32,
    /// Burst in kbit.
    pub burst_kbit: u32,
}

/// One flow entry of a flow, with its meter and group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// The flow entry.
    pub flow: FlowMod,
    /// Key of the entry in the switch.
    pub key: Arc<FlowKey>,
    /// Meter that the entry refers to.
    pub meter: Option<MeterMod>,
    /// Fast-failover group that the entry sends to, if it has a backup path.
    pub group: Option<GroupMod>,
    /// Whether it only sends copies in the lowest class: the flow is in force without it.
    pub is_branch: bool,
}

impl Entry {
    /// Reports whether both have the same match in the same switch, independent of their actions.
    pub fn is_at(&self, other: &Self) -> bool {
        (self.dpid, &self.flow.matching) == (other.dpid, &other.flow.matching)
    }

    /// Reports whether both have the same output.
    pub fn has_same_output(&self, other: &Self) -> bool {
        (&self.flow, &self.group, self.is_branch) == (&other.flow, &other.group, other.is_branch)
    }

    /// Adopts the output of another entry.
    pub fn adopt_output(&mut self, other: &Self) {
        (self.flow, self.group, self.is_branch) = (other.flow.clone(), other.group.clone(), other.is_branch);
    }
}

fn matching(selector: &Selector, in_port: u32) -> Vec<Oxm> {
    let mac: [u8; 8] = selector.sender.0.to_be_bytes();
    let mac = MacAddress([mac[2], mac[3], mac[4], mac[5], mac[6], mac[7]]);
    let mut fields = vec![Oxm::InPort(PortNo(in_port)), Oxm::EthSrc(mac.into()), Oxm::VlanVid(selector.vlan.into())];
    match (selector.source, selector.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            fields.extend([Oxm::EthType(IPV4), Oxm::Ipv4Src(source.into()), Oxm::Ipv4Dst(destination.into())])
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            fields.extend([Oxm::EthType(IPV6), Oxm::Ipv6Src(source.into()), Oxm::Ipv6Dst(destination.into())])
        }
        // No datagram has addresses of two IP versions.
        _ => {}
    }
    fields.extend([Oxm::IpProto(UDP), Oxm::UdpDst(selector.port)]);
    fields
}

/// Returns the actions for copies to other members, then those of the flow, each in its class. A
/// set-field or set-queue action affects all later outputs, and no action unsets a queue (OpenFlow
/// 1.3, 7.2.5), so ports without a queue come first. A class without a DSCP gets 0, not the DSCP of
/// the preceding port.
fn actions(copies: Vec<(u32, QueueSelection)>) -> Vec<Action> {
    let mut copies = copies;
    copies.sort_by_key(|(_, selection)| selection.set_queue.is_some());
    let mut actions = Vec::new();
    let (mut dscp, mut queue) = (None, None);
    for (port, selection) in copies {
        let mark = selection.dscp.unwrap_or(0);
        if dscp.replace(mark) != Some(mark) {
            actions.push(Action::SetField(Oxm::IpDscp(mark)));
        }
        if selection.set_queue != queue {
            queue = selection.set_queue;
            actions.extend(queue.map(Action::SetQueue));
        }
        actions.push(Action::output(PortNo(port)));
    }
    actions
}

/// Returns the copies of a frame that leave a switch.
fn copies(switch: &FlowSwitch) -> Vec<(u32, QueueSelection)> {
    let lowest = QueueSelection { set_queue: None, dscp: None };
    let others = switch.other_ports.iter().map(|port| (*port, lowest));
    others.chain(switch.classed.iter().copied()).collect()
}

/// Builds an entry of an admitted flow.
fn entry_of(matching: Vec<Oxm>, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod {
        cookie: Kind::Admitted.cookie(),
        table: ADMISSION,
        priority: ADMITTED_PRIORITY,
        matching: matching.into(),
        instructions,
        ..FlowMod::default()
    }
}

/// Returns the entries of a flow to its receivers. An entry follows those of the switches that it
/// sends to, so that of the first switch is last. `None` if the route does not match `snapshot`.
pub fn entries(
    snapshot: &Snapshot,
    route: &Route,
    selector: &Selector,
    policer: Policer,
    receivers: &Receivers,
) -> Option<Vec<Entry>> {
    let meter = MeterMod {
        command: MeterCommand::Add,
        flags: meter_flags::KBPS | meter_flags::BURST,
        meter: policer.meter,
        bands: vec![Band::Drop { rate: policer.rate_kbps, burst: policer.burst_kbit }],
    };
    let entry = |(n, switch): (usize, &FlowSwitch)| {
        let is_first = n == 0;
        let mut instructions = vec![Instruction::ApplyActions(actions(copies(switch)))];
        if is_first {
            instructions.insert(0, Instruction::Meter(policer.meter));
        }
        let flow = entry_of(matching(selector, switch.input), instructions);
        let is_branch = switch.classed.is_empty();
        let key = Arc::new(FlowKey::of(&flow));
        let meter = is_first.then(|| meter.clone());
        Entry { dpid: switch.dpid, flow, key, meter, group: None, is_branch }
    };
    let switches = flow_switches(snapshot, route, receivers)?;
    let mut entries: Vec<Entry> = switches.iter().enumerate().map(entry).collect();
    entries.reverse();
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns for each port the DSCP and queue of an outgoing frame that arrived with DSCP 46.
    fn leaves(actions: &[Action]) -> Vec<(u32, u8, Option<u32>)> {
        let (mut dscp, mut queue, mut left) = (46, None, Vec::new());
        for action in actions {
            match action {
                Action::SetField(Oxm::IpDscp(mark)) => dscp = *mark,
                Action::SetQueue(number) => queue = Some(*number),
                Action::Output { port, .. } => left.push((port.0, dscp, queue)),
                other => panic!("flow entries have no {other:?}"),
            }
        }
        left.sort_unstable();
        left
    }

    #[test]
    fn copies_have_the_dscp_and_queue_of_their_own_port_in_mixed_models() {
        let selection = |set_queue, dscp| QueueSelection { set_queue, dscp };
        let classed = vec![
            (1, selection(Some(7), Some(34))),
            (2, selection(None, Some(26))),
            (3, selection(Some(5), None)),
            (4, selection(Some(7), Some(34))),
        ];
        let switch = FlowSwitch { dpid: 1, input: 9, other_ports: BTreeSet::from([5, 6]), classed };
        let expected = [(1, 34, Some(7)), (2, 26, None), (3, 0, Some(5)), (4, 34, Some(7)), (5, 0, None), (6, 0, None)];
        assert_eq!(leaves(&actions(copies(&switch))), expected);
    }
}
