//! Simulated OpenFlow switch: channel, tables, groups and meters, executed on frames.

use std::collections::{BTreeMap, VecDeque};

use takt_openflow::action::Action;
use takt_openflow::cause::{Cause, FlowModFailed};
use takt_openflow::channel::{Generation, Instant, Limits, Request, Switch, SwitchChannelConfig, SwitchEvent};
use takt_openflow::flow::{FlowCommand, FlowMod, FlowRemoved, RemovedReason};
use takt_openflow::flow_match::Match;
use takt_openflow::group::{Bucket, BucketProperty, GroupCommand, GroupDesc, GroupMod, GroupType};
use takt_openflow::instruction::Instruction;
use takt_openflow::meter::{Band, BandCounter, MeterCommand, MeterConfig, MeterMod, MeterStats, meter_flags};
use takt_openflow::multipart::{FlowStats, ReplyBody, RequestBody};
use takt_openflow::oxm::{Masked, Oxm, VLAN_PRESENT};
use takt_openflow::packet::{PacketIn, PacketInReason, PacketOut};
use takt_openflow::port::{
    EthernetPort, Port, PortCounters, PortProperty, PortReason, PortStats, PortStatsProperty, PortStatus, port_state,
};
use takt_openflow::queue::QueueStats;
use takt_openflow::statistic::FlowCounters;
use takt_openflow::switch::Features;
use takt_openflow::value::{MacAddress, NO_BUFFER, PortNo, Text};
use takt_openflow::{Message, Versions};
use takt_sdn::PortRef;
use takt_sdn::frame::{Frame, Network};

/// A rule with the time of its last use.
#[derive(Clone)]
pub struct Rule {
    pub flow: FlowMod,
    used: Instant,
}

pub struct SimulatedSwitch {
    dpid: u64,
    channel: Option<Switch>,
    ports: BTreeMap<u32, bool>,
    pub rules: Vec<Rule>,
    pub groups: BTreeMap<u32, GroupMod>,
    pub meters: BTreeMap<u32, MeterMod>,
    /// Fill levels of the meters in bits or thousandths of packets, with the time of the last
    /// update.
    buckets: BTreeMap<u32, (Instant, u64)>,
    /// Number of tables that it reports.
    pub tables: u8,
    /// Maximum number of rules that it accepts.
    pub room: usize,
    /// Whether it supports fast-failover groups.
    pub has_failover: bool,
    /// Whether it supports the match on fragments.
    pub has_fragments: bool,
    /// Number of packets that it sent to the controller.
    pub packet_ins: usize,
    /// Generation of its master.
    generation: Generation,
    /// Counters of the ports.
    counters: BTreeMap<u32, PortCounters>,
    /// Frames and octets that arrived at meters, and frames that these dropped.
    metered: BTreeMap<u32, [u64; 3]>,
    /// Frames and octets of queues; `None` if it has no queue counters.
    pub queues: Option<BTreeMap<(u32, u32), [u64; 2]>>,
    /// Number of requests for port counters.
    pub polls: usize,
    /// Whether it leaves requests for counters unanswered.
    pub is_silent: bool,
}

type Out = Vec<(PortRef, Vec<u8>)>;

impl SimulatedSwitch {
    pub fn new(dpid: u64, ports: u32) -> Self {
        Self {
            dpid,
            channel: None,
            ports: (1..=ports).map(|port| (port, true)).collect(),
            rules: Vec::new(),
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            buckets: BTreeMap::new(),
            tables: 5,
            room: usize::MAX,
            has_failover: true,
            has_fragments: true,
            packet_ins: 0,
            generation: Generation::default(),
            counters: BTreeMap::new(),
            metered: BTreeMap::new(),
            queues: Some(BTreeMap::new()),
            polls: 0,
            is_silent: false,
        }
    }

    pub fn connect(&mut self, now: Instant) {
        let features = Features { datapath: self.dpid, n_tables: self.tables, ..Features::default() };
        let config = SwitchChannelConfig { versions: Versions::ALL, features, limits: Limits::default() };
        self.channel = Some(Switch::new(now, config));
    }

    pub fn disconnect(&mut self) {
        self.channel = None;
    }

    pub fn poll_transmit(&self) -> &[u8] {
        self.channel.as_ref().map_or(&[], Switch::poll_transmit)
    }

    pub fn transmitted(&mut self, len: usize) {
        if let Some(channel) = &mut self.channel {
            channel.transmitted(len);
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(channel) = &mut self.channel {
            channel.handle_timeout(now);
        }
        let is_idle = |rule: &Rule| {
            let idle = u64::from(rule.flow.idle_timeout) * 1_000_000_000;
            idle != 0 && now.0 >= rule.used.0 + idle
        };
        let (removed_rules, remaining) = std::mem::take(&mut self.rules).into_iter().partition(is_idle);
        self.rules = remaining;
        let removed_rules: Vec<Rule> = removed_rules;
        for rule in removed_rules {
            self.notify(&removed(&rule.flow, RemovedReason::IDLE_TIMEOUT));
        }
    }

    /// Deletes rules like another controller would.
    pub fn delete_notified(&mut self, is_chosen: impl Fn(&FlowMod) -> bool) {
        let (removed_rules, remaining) =
            std::mem::take(&mut self.rules).into_iter().partition(|rule: &Rule| is_chosen(&rule.flow));
        self.rules = remaining;
        let removed_rules: Vec<Rule> = removed_rules;
        for rule in removed_rules {
            self.notify(&removed(&rule.flow, RemovedReason::DELETE));
        }
    }

    fn notify(&mut self, message: &Message) {
        if let Some(channel) = &mut self.channel
            && channel.version().is_some()
        {
            channel.notify(message).expect("the send buffer has space");
        }
    }

    fn port(&self, number: u32) -> Port {
        Port {
            number: PortNo(number),
            address: MacAddress([2, 0, 0, 1, self.dpid as u8, number as u8]),
            name: Text::new(&format!("p{number}")).expect("short"),
            config: 0,
            state: if self.ports[&number] { 0 } else { port_state::LINK_DOWN },
            properties: vec![PortProperty::Ethernet(EthernetPort::default())],
        }
    }

    pub fn set_port(&mut self, number: u32, is_up: bool) {
        self.ports.insert(number, is_up);
        let status = PortStatus { reason: PortReason::Modify, port: self.port(number) };
        self.notify(&Message::PortStatus(status));
    }

    /// Handles octets of the controller. Returns the number of consumed ones, and the frames that
    /// leave.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) -> (usize, Out) {
        let Some(channel) = &mut self.channel else { return (bytes.len(), Vec::new()) };
        let consumed = channel.handle_bytes(now, bytes);
        let mut out = Vec::new();
        while let Some(event) = self.channel.as_mut().and_then(Switch::poll_event) {
            match event {
                SwitchEvent::Request(request) => out.extend(self.execute_alone(now, &request)),
                SwitchEvent::Commit { xid, bundle } => {
                    let before = (self.rules.clone(), self.groups.clone(), self.meters.clone());
                    let failed = bundle.messages.iter().enumerate().find_map(|(index, request)| {
                        self.execute(now, &request.message).err().map(|cause| (index, cause))
                    });
                    let channel = self.channel.as_mut().expect("the switch is connected");
                    match failed {
                        None => channel.committed(xid, &bundle).expect("the send buffer has space"),
                        Some((index, cause)) => {
                            channel.commit_failed(xid, &bundle, index, cause);
                            (self.rules, self.groups, self.meters) = before;
                        }
                    }
                }
                SwitchEvent::Down(_) => self.channel = None,
                _ => {}
            }
        }
        (consumed, out)
    }

    fn execute_alone(&mut self, now: Instant, request: &Request) -> Out {
        let reply = |this: &mut Self, message: &Message| {
            let channel = this.channel.as_mut().expect("the switch is connected");
            channel.reply(request.xid, message).expect("the send buffer has space");
            Vec::new()
        };
        match &request.message {
            Message::BarrierRequest => reply(self, &Message::BarrierReply),
            Message::MultipartRequest(wanted) => {
                let is_poll =
                    matches!(wanted.body, RequestBody::Port(_) | RequestBody::Queue(_) | RequestBody::Meter(_));
                self.polls += usize::from(matches!(wanted.body, RequestBody::Port(_)));
                if is_poll && self.is_silent {
                    return Vec::new();
                }
                if matches!(wanted.body, RequestBody::Queue(_)) && self.queues.is_none() {
                    let cause = Cause::BadRequest(takt_openflow::cause::BadRequest::BadMultipart);
                    self.channel.as_mut().expect("the switch is connected").refuse(request, cause);
                    return Vec::new();
                }
                let body = self.describe(&wanted.body);
                let channel = self.channel.as_mut().expect("the switch is connected");
                channel.reply_multipart(request.xid, body).expect("the send buffer has space");
                Vec::new()
            }
            Message::PacketOut(packet) => self.packet_out(packet),
            Message::RoleRequest(wanted) => {
                let result = self.generation.accept(wanted.generation);
                let channel = self.channel.as_mut().expect("the switch is connected");
                match result {
                    Ok(()) => {
                        channel.set_role(wanted.role);
                        channel.reply(request.xid, &Message::RoleReply(*wanted)).expect("the send buffer has space");
                    }
                    Err(cause) => channel.refuse(request, cause),
                }
                Vec::new()
            }
            message => {
                if let Err(cause) = self.execute(now, message) {
                    self.channel.as_mut().expect("the switch is connected").refuse(request, cause);
                }
                Vec::new()
            }
        }
    }

    fn describe(&self, body: &RequestBody) -> ReplyBody {
        match body {
            RequestBody::PortDesc(_) => ReplyBody::PortDesc(self.ports.keys().map(|port| self.port(*port)).collect()),
            RequestBody::GroupDesc(_) => {
                let desc = |group: &GroupMod| GroupDesc {
                    kind: group.kind,
                    group: group.group,
                    buckets: group.buckets.clone(),
                    properties: Vec::new(),
                };
                ReplyBody::GroupDesc(self.groups.values().map(desc).collect())
            }
            RequestBody::MeterConfig(_) => {
                let config = |meter: &MeterMod| MeterConfig {
                    flags: meter.flags,
                    meter: meter.meter,
                    bands: meter.bands.clone(),
                };
                ReplyBody::MeterConfig(self.meters.values().map(config).collect())
            }
            RequestBody::Flow(_) => ReplyBody::Flow(self.rules.iter().map(|rule| flow_stats(&rule.flow)).collect()),
            RequestBody::Port(_) => ReplyBody::Port(self.ports.keys().map(|port| self.port_stats(*port)).collect()),
            RequestBody::Queue(_) => ReplyBody::Queue(self.queues.iter().flatten().map(queue_stats).collect()),
            RequestBody::Meter(_) => {
                ReplyBody::Meter(self.meters.keys().map(|meter| self.meter_stats(*meter)).collect())
            }
            other => panic!("the model does not describe {other:?}"),
        }
    }

    fn port_stats(&self, port: u32) -> PortStats {
        PortStats {
            port: PortNo(port),
            duration_sec: 0,
            duration_nsec: 0,
            counters: self.counters.get(&port).copied().unwrap_or_default(),
            properties: vec![PortStatsProperty::Ethernet(Default::default())],
        }
    }

    fn meter_stats(&self, meter: u32) -> MeterStats {
        let [frames, octets, dropped] = self.metered.get(&meter).copied().unwrap_or_default();
        MeterStats {
            meter,
            ref_count: 1,
            packet_in_count: frames,
            byte_in_count: octets,
            duration_sec: 0,
            duration_nsec: 0,
            bands: vec![BandCounter { packet_count: dropped, byte_count: 0 }],
        }
    }

    fn execute(&mut self, now: Instant, message: &Message) -> Result<(), Cause> {
        match message {
            Message::FlowMod(flow) => self.flow_mod(now, flow)?,
            Message::GroupMod(group) => match group.command {
                // Rules that refer to the group are deleted with it (OpenFlow 1.3.5, 6.7).
                GroupCommand::Delete => {
                    let names = |action: &Action| *action == Action::Group(group.group);
                    self.rules.retain(|rule| !applied(&rule.flow).any(names));
                    drop(self.groups.remove(&group.group));
                }
                _ if group.kind == GroupType::FastFailover && !self.has_failover => {
                    return Err(Cause::GroupModFailed(takt_openflow::cause::GroupModFailed::BadType));
                }
                _ => drop(self.groups.insert(group.group, group.clone())),
            },
            Message::MeterMod(meter) => match meter.command {
                MeterCommand::Delete => {
                    self.metered.remove(&meter.meter);
                    drop(self.meters.remove(&meter.meter));
                }
                _ => drop(self.meters.insert(meter.meter, meter.clone())),
            },
            other => panic!("the model does not execute {other:?}"),
        }
        Ok(())
    }

    fn flow_mod(&mut self, now: Instant, flow: &FlowMod) -> Result<(), Cause> {
        let names_group = |group: &u32| !self.groups.contains_key(group);
        if applied(flow).any(|action| matches!(action, Action::Group(group) if names_group(group))) {
            return Err(Cause::BadAction(takt_openflow::cause::BadAction::BadOutGroup));
        }
        let has_fragment = |field: &Oxm| matches!(field, Oxm::Other { .. });
        if !self.has_fragments && fields(&flow.matching).iter().any(has_fragment) {
            return Err(Cause::BadMatch(takt_openflow::cause::BadMatch::BadField));
        }
        let is_same = |rule: &Rule| {
            let old = &rule.flow;
            let sorted = |matching: &Match| {
                let mut fields = fields(matching).to_vec();
                fields.sort_by_key(|field| field.header().field);
                fields
            };
            let (a, b) = (sorted(&old.matching), sorted(&flow.matching));
            (old.table, old.priority, a) == (flow.table, flow.priority, b)
        };
        match flow.command {
            FlowCommand::Add => {
                self.rules.retain(|rule| !is_same(rule));
                if self.rules.len() >= self.room {
                    return Err(Cause::FlowModFailed(FlowModFailed::TableFull));
                }
                self.rules.push(Rule { flow: flow.clone(), used: now });
            }
            FlowCommand::DeleteStrict => {
                let position = self.rules.iter().position(is_same);
                if let Some(rule) = position.map(|position| self.rules.remove(position))
                    && rule.flow.flags & 1 != 0
                {
                    self.notify(&removed(&rule.flow, RemovedReason::DELETE));
                }
            }
            other => panic!("the model does not execute {other:?}"),
        }
        Ok(())
    }

    fn packet_out(&mut self, packet: &PacketOut) -> Out {
        let in_port = packet.in_port().expect("the packet has an ingress port").0;
        self.actions(in_port, &packet.actions, &mut packet.data.clone(), 0, PacketInReason::ACTION)
    }

    /// Handles a frame that arrives at a port.
    pub fn receive(&mut self, now: Instant, in_port: u32, octets: &[u8]) -> Out {
        if !self.ports[&in_port] {
            return Vec::new();
        }
        let received = self.counters.entry(in_port).or_default();
        (received.rx_packets, received.rx_bytes) = (received.rx_packets + 1, received.rx_bytes + octets.len() as u64);
        let mut table = 0;
        let mut octets = octets.to_vec();
        let mut out = Vec::new();
        loop {
            let best = self.rules.iter_mut().filter(|rule| rule.flow.table == table);
            let best = best.filter(|rule| is_match(&rule.flow.matching, in_port, &octets));
            let Some(rule) = best.max_by_key(|rule| rule.flow.priority) else { return out };
            rule.used = now;
            let flow = rule.flow.clone();
            let mut next = None;
            for instruction in &flow.instructions {
                match instruction {
                    Instruction::Meter(meter) if !self.passes(now, *meter, octets.len()) => return out,
                    Instruction::Meter(_) => {}
                    Instruction::GotoTable(table) => next = Some(*table),
                    Instruction::ApplyActions(actions) => {
                        let reason = if flow.priority == 0 { PacketInReason::NO_MATCH } else { PacketInReason::ACTION };
                        out.extend(self.actions(in_port, actions, &mut octets, flow.cookie, reason));
                    }
                    other => panic!("the model does not execute {other:?}"),
                }
            }
            match next {
                Some(next) => table = next,
                None => return out,
            }
        }
    }

    /// Reports whether the port that a bucket watches is up, or the bucket watches none.
    fn is_live(&self, bucket: &Bucket) -> bool {
        bucket.properties.iter().all(|property| match property {
            BucketProperty::WatchPort(port) => *port == PortNo::ANY || self.ports.get(&port.0) == Some(&true),
            // Up to 1.4, a bucket has all properties.
            _ => true,
        })
    }

    /// Reports whether a meter of packets or kilobits per second passes a frame; it is a token
    /// bucket of its burst.
    fn passes(&mut self, now: Instant, meter: u32, len: usize) -> bool {
        let config = self.meters.get(&meter).expect("a rule names it");
        let [Band::Drop { rate, burst }] = config.bands.as_slice() else { panic!("a meter of one band") };
        // Cost in bits, or in thousandths of a packet.
        let cost = if config.flags & meter_flags::KBPS != 0 { len as u64 * 8 } else { 1000 };
        let most = u64::from(*burst) * 1000;
        let (before, filled) = self.buckets.get(&meter).copied().unwrap_or((now, most));
        let filled = most.min(filled + (now.0 - before.0) * u64::from(*rate) / 1_000_000);
        let left = filled.checked_sub(cost);
        self.buckets.insert(meter, (now, left.unwrap_or(filled)));
        let [frames, octets, dropped] = self.metered.entry(meter).or_default();
        (*frames, *octets, *dropped) = (*frames + 1, *octets + len as u64, *dropped + u64::from(left.is_none()));
        left.is_some()
    }

    fn actions(
        &mut self,
        in_port: u32,
        actions: &[Action],
        octets: &mut [u8],
        cookie: u64,
        reason: PacketInReason,
    ) -> Out {
        let mut out = Vec::new();
        let mut queue: VecDeque<Action> = actions.iter().cloned().collect();
        let mut class = None;
        while let Some(action) = queue.pop_front() {
            match action {
                Action::Output { port: PortNo::CONTROLLER, .. } => {
                    self.packet_ins += 1;
                    let packet = PacketIn {
                        buffer: NO_BUFFER,
                        total_len: octets.len() as u16,
                        reason,
                        table: 0,
                        cookie,
                        fields: vec![Oxm::InPort(PortNo(in_port))],
                        data: octets.to_vec(),
                    };
                    self.notify(&Message::PacketIn(packet));
                }
                Action::Output { port, .. } if port.0 != in_port && self.ports.get(&port.0) == Some(&true) => {
                    let sent = self.counters.entry(port.0).or_default();
                    (sent.tx_packets, sent.tx_bytes) = (sent.tx_packets + 1, sent.tx_bytes + octets.len() as u64);
                    if let (Some(queues), Some(class)) = (&mut self.queues, class) {
                        let [frames, all] = queues.entry((port.0, class)).or_default();
                        (*frames, *all) = (*frames + 1, *all + octets.len() as u64);
                    }
                    out.push((PortRef::new(self.dpid, port.0), octets.to_vec()));
                }
                Action::Output { port: PortNo::IN_PORT, .. } if self.ports[&in_port] => {
                    out.push((PortRef::new(self.dpid, in_port), octets.to_vec()));
                }
                Action::Output { .. } => {}
                Action::SetQueue(number) => class = Some(number),
                Action::SetField(Oxm::IpDscp(dscp)) => set_dscp(octets, dscp),
                Action::Group(group) => {
                    let group = self.groups.get(&group).expect("a rule names it");
                    let live = group.buckets.iter().filter(|bucket| self.is_live(bucket));
                    let most = if group.kind == GroupType::FastFailover { 1 } else { usize::MAX };
                    queue.extend(live.take(most).flat_map(|bucket| bucket.actions.clone()));
                }
                // Frames take no time, so they are in no queue.
                other => panic!("the model does not execute {other:?}"),
            }
        }
        out
    }
}

/// Returns the statistics of a rule. A switch reports the fields of a match in its own order.
fn flow_stats(flow: &FlowMod) -> FlowStats {
    let matching = match &flow.matching {
        Match::Oxm(fields) => Match::Oxm(fields.iter().rev().cloned().collect()),
        standard => standard.clone(),
    };
    FlowStats {
        table: flow.table,
        counters: FlowCounters::default(),
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: flow.flags,
        importance: 0,
        cookie: flow.cookie,
        matching,
        instructions: flow.instructions.clone(),
    }
}

fn queue_stats(((port, queue), [frames, octets]): (&(u32, u32), &[u64; 2])) -> QueueStats {
    QueueStats {
        port: PortNo(*port),
        queue: *queue,
        tx_bytes: *octets,
        tx_packets: *frames,
        tx_errors: 0,
        duration_sec: 0,
        duration_nsec: 0,
        properties: Vec::new(),
    }
}

fn applied(flow: &FlowMod) -> impl Iterator<Item = &Action> {
    flow.instructions.iter().flat_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => actions.as_slice(),
        _ => &[],
    })
}

/// Sets the DSCP of an IPv4 packet, after at most one VLAN tag.
fn set_dscp(octets: &mut [u8], dscp: u8) {
    let begin = if octets[12..14] == [0x81, 0] { 18 } else { 14 };
    let header = &mut octets[begin..begin + 20];
    assert_eq!(header[0], 0x45, "IPv4 without options");
    header[1] = dscp << 2 | header[1] & 3;
    header[10..12].fill(0);
    let sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
}

fn removed(flow: &FlowMod, reason: RemovedReason) -> Message {
    Message::FlowRemoved(FlowRemoved {
        cookie: flow.cookie,
        priority: flow.priority,
        reason,
        table: flow.table,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        counters: FlowCounters::default(),
        matching: flow.matching.clone(),
    })
}

fn fields(matching: &Match) -> &[Oxm] {
    match matching {
        Match::Oxm(fields) => fields,
        Match::Standard(_) => panic!("1.0 is not simulated"),
    }
}

fn masked(address: [u8; 6], field: &Masked<MacAddress>) -> bool {
    let mask = field.mask.map_or([0xff; 6], |mask| mask.0);
    (0..6).all(|at| address[at] & mask[at] == field.value.0[at] & mask[at])
}

/// Reports whether a frame matches.
fn is_match(matching: &Match, in_port: u32, octets: &[u8]) -> bool {
    let frame = Frame::parse(octets).expect("hosts send frames");
    let packet = match frame.network() {
        Ok(Network::Ip(packet)) => Some(packet),
        _ => None,
    };
    let protocol = packet.map(|packet| packet.protocol());
    fields(matching).iter().all(|field| match field {
        Oxm::InPort(port) => port.0 == in_port,
        Oxm::EthDst(field) => masked(frame.destination().0, field),
        Oxm::EthSrc(field) => masked(frame.source().0, field),
        Oxm::EthType(kind) => frame.ether_type().0 == *kind,
        Oxm::VlanVid(field) => frame.tags().first().map_or(0, |tag| VLAN_PRESENT | tag.vid) == field.value,
        Oxm::IpProto(number) => protocol == Some(*number),
        Oxm::Ipv4Src(field) => packet.is_some_and(|packet| packet.source() == field.value),
        Oxm::Ipv4Dst(field) => packet.is_some_and(|packet| packet.destination() == field.value),
        Oxm::Ipv6Dst(field) => packet.is_some_and(|packet| packet.destination() == field.value),
        Oxm::UdpDst(port) => frame.udp().is_some_and(|(_, datagram)| datagram.destination_port() == *port),
        Oxm::Icmpv6Type(kind) => packet.is_some_and(|packet| packet.payload().first() == Some(kind)),
        Oxm::Other { class: 1, field: 26, .. } => packet.is_some_and(|packet| packet.fragment().is_some()),
        other => panic!("the model does not match {other:?}"),
    })
}
