//! Flow entries and meters of admitted flows.
//!
//! An entry stands in table 0 above everything else that hosts send. It matches the port where the flow comes in, the addresses, and
//! the UDP port where its receiver listens. Its actions put the frame into the queue of its class, by DSCP, by SET_QUEUE or by both
//! ([`Reach`]), and send it out. The entry in the first switch has a meter.

use std::net::IpAddr;

use takt_openflow::action::Action;
use takt_openflow::flow::FlowMod;
use takt_openflow::instruction::Instruction;
use takt_openflow::meter::{Band, MeterCommand, MeterMod, meter_flags};
use takt_openflow::oxm::Oxm;
use takt_openflow::value::{MacAddress, PortNo};

use crate::forwarding::rules::{ADMISSION, ADMITTED_PRIORITY, Kind};
use crate::model::{Egress, HostId, Reach, Snapshot};
use crate::schedule::Route;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: u8 = 17;

/// What tells the datagrams of a flow from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// The interface of the sender.
    pub sender: HostId,
    /// Its address.
    pub source: IpAddr,
    /// The address of the receiver, of the same version of IP.
    pub destination: IpAddr,
    /// Where the receiver listens.
    pub port: u16,
}

/// What the first switch lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// Its meter.
    pub meter: u32,
    /// Kilobits per second.
    pub rate_kbps: u32,
    /// Kilobits at once.
    pub burst_kbit: u32,
}

/// One entry of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The switch.
    pub dpid: u64,
    /// The entry.
    pub flow: FlowMod,
    /// The meter that it names.
    pub meter: Option<MeterMod>,
}

fn matching(selector: &Selector, in_port: u32) -> Vec<Oxm> {
    let mac: [u8; 8] = selector.sender.0.to_be_bytes();
    let mac = MacAddress([mac[2], mac[3], mac[4], mac[5], mac[6], mac[7]]);
    let mut fields = vec![Oxm::InPort(PortNo(in_port)), Oxm::EthSrc(mac.into()), Oxm::VlanVid(0.into())];
    match (selector.source, selector.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            fields.extend([Oxm::EthType(IPV4), Oxm::Ipv4Src(source.into()), Oxm::Ipv4Dst(destination.into())])
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            fields.extend([Oxm::EthType(IPV6), Oxm::Ipv6Src(source.into()), Oxm::Ipv6Dst(destination.into())])
        }
        // Addresses of two versions are in no datagram.
        _ => {}
    }
    fields.extend([Oxm::IpProto(UDP), Oxm::UdpDst(selector.port)]);
    fields
}

fn actions(reach: Reach, out_port: u32) -> Vec<Action> {
    let dscp = reach.dscp.map(|dscp| Action::SetField(Oxm::IpDscp(dscp)));
    let queue = reach.set_queue.map(Action::SetQueue);
    dscp.into_iter().chain(queue).chain([Action::output(PortNo(out_port))]).collect()
}

/// The entries of a flow to one receiver, that of the last switch first. `None` if the route is not one of `snapshot`.
pub fn entries(snapshot: &Snapshot, route: &Route, selector: &Selector, policer: Policer) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut before = Egress::Host(route.source);
    for hop in &route.hops {
        let Egress::Switch(out) = hop.port else { continue };
        // Where the port before it leads to.
        let Egress::Switch(input) = snapshot.link(before)?.back else { return None };
        let is_first = entries.is_empty();
        let mut instructions = vec![Instruction::ApplyActions(actions(hop.reach?, out.port))];
        if is_first {
            instructions.insert(0, Instruction::Meter(policer.meter));
        }
        let meter = MeterMod {
            command: MeterCommand::Add,
            flags: meter_flags::KBPS | meter_flags::BURST,
            meter: policer.meter,
            bands: vec![Band::Drop { rate: policer.rate_kbps, burst: policer.burst_kbit }],
        };
        let flow = FlowMod {
            cookie: Kind::Admitted.cookie(),
            table: ADMISSION,
            priority: ADMITTED_PRIORITY,
            matching: matching(selector, input.port).into(),
            instructions,
            ..FlowMod::default()
        };
        entries.push(Entry { dpid: out.dpid, flow, meter: is_first.then_some(meter) });
        before = hop.port;
    }
    entries.reverse();
    Some(entries)
}
