//! Tables of switches, and the trace of a frame through them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use takt_openflow::action::Action;
use takt_openflow::flow::FlowMod;
use takt_openflow::flow_match::Match;
use takt_openflow::group::{BucketProperty, GroupMod};
use takt_openflow::instruction::Instruction;
use takt_openflow::meter::MeterMod;
use takt_openflow::oxm::Oxm;
use takt_openflow::value::PortNo;
use takt_sdn::PortRef;

/// Match fields of an entry: port, source, destination, UDP port.
pub type Key = (u32, IpAddr, IpAddr, u16);

/// Header fields of the datagrams of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Datagram {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub port: u16,
}

#[derive(Clone, Default, PartialEq, Debug)]
pub struct Tables {
    pub flows: BTreeMap<Key, FlowMod>,
    pub meters: BTreeMap<u32, MeterMod>,
    pub groups: BTreeMap<u32, GroupMod>,
}

pub fn key(flow: &FlowMod) -> Key {
    let Match::Oxm(fields) = &flow.matching else { panic!("1.0 is not simulated") };
    let unset = IpAddr::from([0, 0, 0, 0]);
    let mut key = (0, unset, unset, 0);
    for field in fields {
        match field {
            Oxm::InPort(port) => key.0 = port.0,
            Oxm::Ipv4Src(address) => key.1 = address.value.into(),
            Oxm::Ipv4Dst(address) => key.2 = address.value.into(),
            Oxm::UdpDst(port) => key.3 = *port,
            _ => {}
        }
    }
    key
}

impl Tables {
    pub fn of(flows: Vec<FlowMod>, meters: Vec<MeterMod>, groups: Vec<GroupMod>) -> Self {
        let flows: BTreeMap<Key, FlowMod> = flows.into_iter().map(|flow| (key(&flow), flow)).collect();
        let groups = groups.into_iter().map(|group| (group.group, group)).collect();
        let mut tables = Self { flows, groups, ..Self::default() };
        // The first of several meters with one number counts, as in the controller.
        meters.into_iter().for_each(|meter| _ = tables.meters.entry(meter.meter).or_insert(meter));
        tables
    }
}

/// A copy of a frame that leaves a port with a DSCP.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// Port at which the frame arrived.
    pub input: PortRef,
    pub out: PortRef,
    pub dscp: u8,
    pub after: Option<usize>,
}

/// Result of tracing a frame.
#[derive(Debug, Default)]
pub struct Trace {
    pub copies: Vec<Copy>,
    /// Switch without an entry for the frame at which it arrived in a class.
    pub stranded: Option<u64>,
    pub has_loop: bool,
    pub lacks_meter: bool,
    pub lacks_group: bool,
}

/// Returns the actions of an entry, where a group is replaced by its first bucket whose port is up.
fn actions_of<'a>(
    tables: &'a Tables,
    cables: &BTreeMap<PortRef, PortRef>,
    dpid: u64,
    actions: &'a [Action],
) -> Option<&'a [Action]> {
    let [Action::Group(group)] = actions else { return Some(actions) };
    let is_live = |property: &BucketProperty| match property {
        BucketProperty::WatchPort(port) => cables.contains_key(&PortRef::new(dpid, port.0)),
        other => panic!("{other:?} watches no port"),
    };
    let mut live = tables.groups.get(group)?.buckets.iter().filter(|bucket| bucket.properties.iter().all(is_live));
    Some(live.next().map_or(&[], |bucket| bucket.actions.as_slice()))
}

/// Traces a frame that arrives at an edge.
pub fn trace(
    switches: &BTreeMap<u64, Tables>,
    cables: &BTreeMap<PortRef, PortRef>,
    at: PortRef,
    datagram: &Datagram,
) -> Trace {
    let mut trace = Trace::default();
    let mut open: Vec<(PortRef, Option<usize>, u8)> = vec![(at, None, 0)];
    while let Some((at, after, mark)) = open.pop() {
        let mut before = after;
        while let Some(n) = before {
            if trace.copies[n].input == at {
                trace.has_loop = true;
                return trace;
            }
            before = trace.copies[n].after;
        }
        let tables = &switches[&at.dpid];
        let Some(flow) = tables.flows.get(&(at.port, datagram.source, datagram.destination, datagram.port)) else {
            if after.is_some() && mark != 0 {
                trace.stranded = Some(at.dpid);
            }
            continue;
        };
        let mut dscp = mark;
        for instruction in &flow.instructions {
            match instruction {
                Instruction::Meter(meter) => trace.lacks_meter |= !tables.meters.contains_key(meter),
                Instruction::ApplyActions(actions) => {
                    let actions = actions_of(tables, cables, at.dpid, actions);
                    trace.lacks_group |= actions.is_none();
                    for action in actions.unwrap_or_default() {
                        match action {
                            Action::SetField(Oxm::IpDscp(mark)) => dscp = *mark,
                            Action::SetQueue(_) => {}
                            Action::Output { port, .. } => {
                                let back = *port == PortNo::IN_PORT;
                                let out = PortRef::new(at.dpid, if back { at.port } else { port.0 });
                                trace.copies.push(Copy { input: at, out, dscp, after });
                                if let Some(to) = cables.get(&out) {
                                    open.push((*to, Some(trace.copies.len() - 1), dscp));
                                }
                            }
                            other => panic!("flow entries have no {other:?}"),
                        }
                    }
                }
                other => panic!("flow entries have no {other:?}"),
            }
        }
    }
    trace
}
