//! Sample messages: one of each kind, with every kind of field, action, instruction, band and
//! property, by version.

use std::net::{Ipv4Addr, Ipv6Addr};

use takt_openflow::action::{Action, FeatureId, LegacyAction};
use takt_openflow::bundle::{BundleAdd, BundleControl, BundleControlType, Properties};
use takt_openflow::cause::{Cause, ErrorMessage, FlowModFailed};
use takt_openflow::flow::{FlowCommand, FlowMod, FlowRemoved, RemovedReason};
use takt_openflow::flow_match::{Match, StandardMatch};
use takt_openflow::group::*;
use takt_openflow::hello::Hello;
use takt_openflow::instruction::Instruction;
use takt_openflow::message::Enclosed;
use takt_openflow::meter::*;
use takt_openflow::multipart::*;
use takt_openflow::oxm::{Masked, Oxm, VLAN_PRESENT};
use takt_openflow::packet::{PacketIn, PacketInReason, PacketOut};
use takt_openflow::port::*;
use takt_openflow::queue::{Queue, QueueConfig, QueueProperty, QueueStats};
use takt_openflow::statistic::{Aggregate, FlowCounters, Statistic};
use takt_openflow::switch::*;
use takt_openflow::table::*;
use takt_openflow::value::*;
use takt_openflow::{Message, Version, Versions};

/// Returns lists of fields that fulfill their prerequisites.
pub fn matches() -> Vec<Vec<Oxm>> {
    let mac = MacAddress([2, 0, 0, 0, 0, 7]);
    let vendor = MacAddress([2, 0, 1, 0, 0, 0]);
    let mac_mask = Masked::new(vendor, MacAddress([0xff, 0xff, 0xff, 0, 0, 0]));
    let net = Masked::new(Ipv4Addr::new(10, 1, 0, 0), Ipv4Addr::new(255, 255, 0, 0));
    let host = Masked::exact(Ipv4Addr::new(10, 1, 2, 3));
    let v6 = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let v6_net = Masked::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), Ipv6Addr::from(u128::MAX << 96));
    vec![
        vec![Oxm::InPort(PortNo(3)), Oxm::Metadata(Masked::new(5, 0xff)), Oxm::TunnelId(9.into())],
        vec![Oxm::EthDst(mac.into()), Oxm::EthSrc(mac_mask)],
        vec![Oxm::VlanVid((VLAN_PRESENT | 7).into()), Oxm::VlanPcp(5)],
        vec![Oxm::EthType(0x800), Oxm::IpDscp(46), Oxm::IpEcn(1), Oxm::Ipv4Src(net), Oxm::Ipv4Dst(host)],
        vec![Oxm::EthType(0x800), Oxm::IpProto(17), Oxm::UdpSrc(7410), Oxm::UdpDst(7411)],
        vec![Oxm::EthType(0x800), Oxm::IpProto(6), Oxm::TcpSrc(80), Oxm::TcpDst(6653)],
        vec![Oxm::EthType(0x800), Oxm::IpProto(132), Oxm::SctpSrc(1), Oxm::SctpDst(2)],
        vec![Oxm::EthType(0x800), Oxm::IpProto(1), Oxm::Icmpv4Type(8), Oxm::Icmpv4Code(0)],
        vec![
            Oxm::EthType(0x806),
            Oxm::ArpOp(1),
            Oxm::ArpSpa(host),
            Oxm::ArpTpa(net),
            Oxm::ArpSha(mac.into()),
            Oxm::ArpTha(mac.into()),
        ],
        vec![Oxm::EthType(0x86dd), Oxm::Ipv6Src(v6_net), Oxm::Ipv6Dst(v6.into()), Oxm::Ipv6Flabel(0x123.into())],
        vec![
            Oxm::EthType(0x86dd),
            Oxm::IpProto(58),
            Oxm::Icmpv6Type(135),
            Oxm::Icmpv6Code(0),
            Oxm::Ipv6NdTarget(v6),
            Oxm::Ipv6NdSll(mac),
        ],
        vec![Oxm::EthType(0x86dd), Oxm::IpProto(58), Oxm::Icmpv6Type(136), Oxm::Icmpv6Code(0), Oxm::Ipv6NdTll(mac)],
        vec![Oxm::EthType(0x8847), Oxm::MplsLabel(100), Oxm::MplsTc(3), Oxm::MplsBos(1)],
    ]
}

/// Returns fields that Open vSwitch does not support.
pub fn rare_fields(version: Version) -> Vec<Oxm> {
    let mut fields = vec![
        Oxm::InPhyPort(PortNo(4)),
        Oxm::PbbIsid([1, 2, 3].into()),
        Oxm::Ipv6Exthdr(Masked::new(1, 3)),
        Oxm::Other { class: 0xffff, field: 42, has_mask: false, body: vec![0x4f, 0x4e, 0x46, 0, 0, 2] },
    ];
    if version >= Version::V1_4 {
        fields.push(Oxm::PbbUca(1));
    }
    if version == Version::V1_5 {
        fields.extend([Oxm::TcpFlags(2.into()), Oxm::ActsetOutput(PortNo(1)), Oxm::PacketType(0)]);
    }
    fields
}

/// Returns lists of actions, each of which is valid for an IP flow.
pub fn actions(version: Version) -> Vec<Action> {
    let mac = MacAddress([2, 0, 0, 0, 0, 9]);
    if version == Version::V1_0 {
        let legacy = [
            LegacyAction::SetVlanVid(7),
            LegacyAction::SetVlanPcp(3),
            LegacyAction::SetDlSrc(mac),
            LegacyAction::SetDlDst(mac),
            LegacyAction::SetNwSrc(Ipv4Addr::LOCALHOST),
            LegacyAction::SetNwDst(Ipv4Addr::new(10, 0, 0, 1)),
            LegacyAction::SetNwTos(184),
            LegacyAction::SetTpSrc(1),
            LegacyAction::SetTpDst(2),
            LegacyAction::Enqueue { port: PortNo(1), queue: 3 },
        ];
        let mut actions: Vec<Action> = legacy.into_iter().map(Action::V1_0).collect();
        actions.extend([Action::PopVlan, Action::output(PortNo::CONTROLLER), Action::output(PortNo(2))]);
        return actions;
    }
    let mut actions = vec![
        Action::SetQueue(1),
        Action::SetNwTtl(5),
        Action::DecNwTtl,
        Action::SetField(Oxm::IpDscp(46)),
        Action::SetField(Oxm::EthDst(mac.into())),
        Action::SetField(Oxm::Ipv4Dst(Ipv4Addr::new(10, 9, 8, 7).into())),
        Action::Group(7),
        Action::PushVlan(0x8100),
        Action::SetField(Oxm::VlanVid((VLAN_PRESENT | 9).into())),
        Action::output(PortNo::CONTROLLER),
        Action::output(PortNo(2)),
        Action::PopVlan,
        Action::output(PortNo::IN_PORT),
    ];
    if version == Version::V1_5 {
        actions.push(Action::Meter(3));
    }
    actions
}

/// Returns actions that Open vSwitch does not support, or not in this position.
fn rare_actions(version: Version) -> Vec<Action> {
    let header = Oxm::EthType(0).header();
    let mut actions = vec![
        Action::CopyTtlOut,
        Action::CopyTtlIn,
        Action::SetMplsTtl(3),
        Action::DecMplsTtl,
        Action::PushMpls(0x8847),
        Action::PopMpls(0x800),
        Action::PushPbb(0x88e7),
        Action::PopPbb,
        Action::Experimenter { experimenter: 0x1234_5678, body: vec![1; 8] },
    ];
    if version == Version::V1_5 {
        actions.push(Action::CopyField { bits: 16, src_offset: 1, dst_offset: 2, src: header, dst: header });
    }
    actions
}

/// Converts a match to the equivalent fixed match in 1.0.
fn of_version(version: Version, matching: Match) -> Match {
    match matching {
        Match::Oxm(fields) if version == Version::V1_0 => {
            Match::Standard(Box::new(StandardMatch::from_fields(&fields).expect("1.0 has these fields")))
        }
        matching => matching,
    }
}

/// Returns a request for all flows.
fn every_flow(version: Version) -> FlowRequest {
    FlowRequest { matching: of_version(version, Match::ANY), ..FlowRequest::default() }
}

fn flow(version: Version, matching: impl Into<Match>, instructions: Vec<Instruction>) -> FlowMod {
    let importance = if version >= Version::V1_4 { 4 } else { 0 };
    let matching = of_version(version, matching.into());
    let (cookie, priority) = (0x1234, 200);
    FlowMod { cookie, priority, importance, matching, instructions, idle_timeout: 30, flags: 1, ..FlowMod::default() }
}

/// Returns FLOW_MODs that Open vSwitch accepts: every field, action, instruction and command.
pub fn flows(version: Version) -> Vec<Message> {
    let output = || vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])];
    let ip = || vec![Oxm::EthType(0x800)];
    let mut flows = Vec::new();
    if version == Version::V1_0 {
        let standard = StandardMatch { in_port: PortNo(3), wildcards: 0x0038_20fe, ..StandardMatch::ANY };
        flows.push(flow(version, Match::Standard(Box::new(standard)), output()));
        let all = vec![Instruction::ApplyActions(actions(version))];
        flows.push(flow(version, vec![Oxm::EthType(0x800), Oxm::IpProto(17)], all));
    } else {
        flows.extend(matches().into_iter().map(|fields| flow(version, fields, output())));
        flows.push(flow(version, ip(), vec![Instruction::ApplyActions(actions(version))]));
        let mut instructions = vec![
            Instruction::ClearActions,
            Instruction::WriteActions(vec![Action::output(PortNo(4))]),
            Instruction::WriteMetadata { metadata: 6, mask: 0xf },
            Instruction::GotoTable(5),
        ];
        if version < Version::V1_5 {
            instructions.insert(0, Instruction::Meter(3));
        }
        flows.push(flow(version, ip(), instructions));
    }
    let commands = [FlowCommand::Modify, FlowCommand::ModifyStrict, FlowCommand::Delete, FlowCommand::DeleteStrict];
    flows.extend(commands.map(|command| FlowMod { command, ..flow(version, vec![], vec![]) }));
    flows.into_iter().map(Message::FlowMod).collect()
}

/// Returns FLOW_MODs with features that Open vSwitch does not support.
fn rare_flows(version: Version) -> Vec<Message> {
    if version == Version::V1_0 {
        return vec![];
    }
    let mut instructions = vec![Instruction::Experimenter { experimenter: 9, body: vec![1; 4] }];
    if version == Version::V1_5 {
        let thresholds = vec![Statistic::PacketCount(100)];
        instructions.push(Instruction::StatTrigger { flags: 1, thresholds });
    }
    instructions.push(Instruction::ApplyActions(rare_actions(version)));
    vec![Message::FlowMod(flow(version, rare_fields(version), instructions))]
}

pub fn port(version: Version) -> Port {
    let mut speeds = EthernetPort { current: 0x20, advertised: 0x20, supported: 0x60, peer: 0, ..Default::default() };
    if version != Version::V1_0 {
        (speeds.current_kbps, speeds.max_kbps) = (1_000_000, 10_000_000);
    }
    let properties = vec![PortProperty::Ethernet(speeds)];
    let name = Text::new("eth7").expect("short");
    Port { number: PortNo(7), address: MacAddress([2, 0, 0, 0, 0, 7]), name, config: 1, state: 1, properties }
}

fn counters(version: Version) -> FlowCounters {
    match version {
        Version::V1_5 => FlowCounters::Extensible(vec![
            Statistic::Duration { sec: 12, nsec: 500_000_000 },
            Statistic::IdleTime { sec: 1, nsec: 0 },
            Statistic::PacketCount(34),
            Statistic::ByteCount(5678),
        ]),
        _ => FlowCounters::Fixed { duration_sec: 12, duration_nsec: 500_000_000, packet_count: 34, byte_count: 5678 },
    }
}

pub fn groups(version: Version) -> Vec<GroupMod> {
    let bucket = |id: u32, properties| Bucket {
        id: if version == Version::V1_5 { id } else { 0 },
        actions: vec![Action::output(PortNo(id))],
        properties,
    };
    let plain = |id| bucket(id, default_properties(version));
    let weighted = |id| {
        let mut properties = default_properties(version);
        properties.retain(|property| !matches!(property, BucketProperty::Weight(_)));
        properties.insert(0, BucketProperty::Weight(5));
        bucket(id, properties)
    };
    let watching = |id| {
        let mut properties = default_properties(version);
        properties.retain(|property| !matches!(property, BucketProperty::WatchPort(_)));
        properties.insert(properties.len().min(1), BucketProperty::WatchPort(PortNo(id)));
        bucket(id, properties)
    };
    vec![
        GroupMod::add(1, GroupType::All, vec![plain(1), plain(2)]),
        GroupMod::add(2, GroupType::Select, vec![weighted(1), weighted(2)]),
        GroupMod::add(3, GroupType::Indirect, vec![plain(3)]),
        GroupMod::add(4, GroupType::FastFailover, vec![watching(1), watching(2)]),
    ]
}

/// Returns the three properties that every bucket has up to 1.4.
fn default_properties(version: Version) -> Vec<BucketProperty> {
    if version == Version::V1_5 {
        return vec![];
    }
    vec![BucketProperty::Weight(0), BucketProperty::WatchPort(PortNo::ANY), BucketProperty::WatchGroup(GROUP_ANY)]
}

pub fn meter() -> MeterMod {
    let flags = meter_flags::KBPS | meter_flags::BURST | meter_flags::STATS;
    let bands = vec![Band::Drop { rate: 1000, burst: 64 }, Band::DscpRemark { rate: 500, burst: 32, prec_level: 1 }];
    MeterMod { command: MeterCommand::Add, flags, meter: 3, bands }
}

fn queue() -> Queue {
    let properties = vec![QueueProperty::MinRate(500), QueueProperty::MaxRate(900)];
    Queue { port: PortNo(7), id: 2, properties }
}

fn table_features(version: Version) -> TableFeatures {
    let id = |kind| FeatureId { kind, body: vec![] };
    let property = |kind, list| TableFeatureProperty { kind, list };
    let fields = TableFeatureList::Fields(vec![Oxm::IpDscp(0).header(), Oxm::VlanPcp(0).header()]);
    let mut properties = vec![
        property(0, TableFeatureList::Ids(vec![id(1), id(4)])),
        property(2, TableFeatureList::Tables(vec![1, 2, 3])),
        property(4, TableFeatureList::Ids(vec![id(0), id(22)])),
        property(6, TableFeatureList::Ids(vec![id(0), id(25)])),
        property(8, fields.clone()),
        property(10, fields.clone()),
        property(12, fields.clone()),
        property(14, fields),
    ];
    if version == Version::V1_5 {
        properties.push(property(22, TableFeatureList::Values(vec![Oxm::PacketType(0)])));
    }
    TableFeatures {
        table: 1,
        command: 0,
        features: 0,
        name: Text::new("classifier").expect("short"),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        max_entries: 1_000_000,
        properties,
    }
}

fn requests(version: Version) -> Vec<RequestBody> {
    let mut bodies = vec![
        RequestBody::Desc,
        RequestBody::Flow(every_flow(version)),
        RequestBody::Aggregate(every_flow(version)),
        RequestBody::Table,
        RequestBody::Port(PortNo::ANY),
        RequestBody::Queue(QueueRequest { port: PortNo::ANY, queue: QUEUE_ALL }),
    ];
    if version != Version::V1_0 {
        bodies.extend([
            RequestBody::Group(GROUP_ALL),
            RequestBody::GroupDesc(GROUP_ALL),
            RequestBody::GroupFeatures,
            RequestBody::Meter(3),
            RequestBody::MeterConfig(METER_ALL),
            RequestBody::MeterFeatures,
            RequestBody::TableFeatures(vec![]),
            RequestBody::PortDesc(PortNo::ANY),
        ]);
    }
    if version >= Version::V1_4 {
        bodies.push(RequestBody::TableDesc);
        bodies.push(RequestBody::QueueDesc(QueueRequest { port: PortNo::ANY, queue: QUEUE_ALL }));
    }
    bodies
}

fn flow_stats(version: Version) -> FlowStats {
    let is_1_0 = version == Version::V1_0;
    let matching = if is_1_0 {
        Match::Standard(Box::new(StandardMatch { in_port: PortNo(3), wildcards: 0x0038_20fe, ..StandardMatch::ANY }))
    } else {
        Match::Oxm(matches().remove(4))
    };
    FlowStats {
        table: 1,
        counters: counters(version),
        priority: 200,
        idle_timeout: 30,
        hard_timeout: 60,
        flags: if is_1_0 { 0 } else { 1 },
        importance: if version >= Version::V1_4 { 4 } else { 0 },
        cookie: 0x1234,
        matching,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])],
    }
}

fn replies_of_every_version(version: Version) -> Vec<ReplyBody> {
    let is_1_0 = version == Version::V1_0;
    let duration = if is_1_0 { (0, 0) } else { (12, 500_000_000) };
    let desc = Desc {
        manufacturer: Text::new("Takt").expect("short"),
        serial_number: Text::new("0042").expect("short"),
        ..Desc::default()
    };
    let aggregate = match version {
        Version::V1_5 => {
            Aggregate::Extensible(vec![Statistic::PacketCount(34), Statistic::ByteCount(5678), Statistic::FlowCount(2)])
        }
        _ => Aggregate::Fixed { packet_count: 34, byte_count: 5678, flow_count: 2 },
    };
    let old = TableStatsV1_0 { name: Text::new("classifier").expect("short"), wildcards: 0x3f_ffff, max_entries: 100 };
    vec![
        ReplyBody::Desc(Box::new(desc)),
        ReplyBody::Flow(vec![flow_stats(version), flow_stats(version)]),
        ReplyBody::Aggregate(aggregate),
        ReplyBody::Table(vec![TableStats {
            table: 0,
            v1_0: is_1_0.then_some(old),
            active_count: 11,
            lookup_count: 12,
            matched_count: 13,
        }]),
        ReplyBody::Port(vec![PortStats {
            port: PortNo(7),
            duration_sec: duration.0,
            duration_nsec: duration.1,
            counters: PortCounters { rx_packets: 21, tx_packets: 22, rx_bytes: 23, tx_bytes: 24, ..Default::default() },
            properties: vec![PortStatsProperty::Ethernet(EthernetErrors::default())],
        }]),
        ReplyBody::Queue(vec![QueueStats {
            port: PortNo(7),
            queue: 2,
            tx_bytes: 31,
            tx_packets: 32,
            tx_errors: 33,
            duration_sec: duration.0,
            duration_nsec: duration.1,
            properties: vec![],
        }]),
    ]
}

fn replies(version: Version) -> Vec<ReplyBody> {
    let mut bodies = replies_of_every_version(version);
    if version == Version::V1_0 {
        return bodies;
    }
    let group = groups(version).remove(1);
    let GroupMod { kind, group, buckets, properties, .. } = group;
    let counter = BucketCounter { packet_count: 41, byte_count: 42 };
    let MeterMod { flags, meter, bands, .. } = meter();
    bodies.extend([
        ReplyBody::Group(vec![GroupStats {
            group,
            ref_count: 1,
            packet_count: 43,
            byte_count: 44,
            duration_sec: 12,
            duration_nsec: 500_000_000,
            buckets: vec![counter, counter],
        }]),
        ReplyBody::GroupDesc(vec![GroupDesc { kind, group, buckets, properties }]),
        ReplyBody::GroupFeatures(GroupFeatures {
            types: 0xf,
            capabilities: 7,
            max_groups_all: 100,
            max_groups_select: 101,
            max_groups_indirect: 102,
            max_groups_ff: 103,
            actions_all: 1,
            actions_select: 1,
            actions_indirect: 1,
            actions_ff: 1,
        }),
        ReplyBody::Meter(vec![MeterStats {
            meter,
            ref_count: 1,
            packet_in_count: 51,
            byte_in_count: 52,
            duration_sec: 12,
            duration_nsec: 500_000_000,
            bands: vec![BandCounter { packet_count: 53, byte_count: 54 }],
        }]),
        ReplyBody::MeterConfig(vec![MeterConfig { flags, meter, bands }]),
        ReplyBody::MeterFeatures(MeterFeatures {
            max_meter: 1000,
            band_types: 6,
            capabilities: 0xf,
            max_bands: 2,
            max_color: 8,
            features: 0,
        }),
        ReplyBody::TableFeatures(vec![table_features(version)]),
        ReplyBody::PortDesc(vec![port(version), port(version)]),
    ]);
    if version >= Version::V1_4 {
        bodies.push(ReplyBody::TableDesc(vec![TableDesc { table: 1, config: 4, properties: table_properties(50) }]));
        bodies.push(ReplyBody::QueueDesc(vec![queue()]));
    }
    bodies
}

/// Returns table properties. `current` is 0 if the controller sets them.
fn table_properties(current: u8) -> Vec<TableProperty> {
    vec![TableProperty::Eviction(2), TableProperty::Vacancy { down: 10, up: 20, current }]
}

fn multipart(version: Version) -> Vec<Message> {
    let request = |body| Message::MultipartRequest(MultipartRequest::new(body));
    let reply = |body| Message::MultipartReply(MultipartReply { flags: 0, body });
    requests(version).into_iter().map(request).chain(replies(version).into_iter().map(reply)).collect()
}

/// Returns messages that every version has.
fn of_every_version(version: Version) -> Vec<Message> {
    let is_1_0 = version == Version::V1_0;
    let config = SwitchConfig { flags: 0, miss_send_len: 0xffff };
    let ports = if is_1_0 { vec![port(version)] } else { vec![] };
    let features = Features { datapath: 0x2a, n_tables: 254, capabilities: 7, ports, ..Features::default() };
    let data = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5, 0, 0, 0, 0];
    let (table, cookie) = if is_1_0 { (0, 0) } else { (5, 0x1234) };
    let fields = vec![Oxm::InPort(PortNo(7))];
    let total_len = u16::try_from(data.len()).expect("short");
    let reason = PacketInReason::ACTION;
    let cause = Cause::FlowModFailed(FlowModFailed::TableFull);
    let failed = Message::FlowMod(flow(version, vec![], vec![])).encode(version, 7).expect("the version can encode it");
    vec![
        Message::Hello(Hello::new(Versions::ALL)),
        Message::Error(ErrorMessage { cause, data: failed }),
        Message::EchoRequest(vec![1, 2, 3]),
        Message::EchoReply(vec![]),
        Message::FeaturesRequest,
        Message::FeaturesReply(features),
        Message::GetConfigRequest,
        Message::GetConfigReply(config),
        Message::SetConfig(config),
        Message::PacketIn(PacketIn { buffer: NO_BUFFER, total_len, reason, table, cookie, fields, data: data.clone() }),
        Message::FlowRemoved(FlowRemoved {
            cookie: 0x1234,
            priority: 200,
            reason: RemovedReason::HARD_TIMEOUT,
            table: if is_1_0 { 0 } else { 5 },
            idle_timeout: 30,
            hard_timeout: if is_1_0 { 0 } else { 60 },
            counters: counters(version),
            matching: flow_stats(version).matching,
        }),
        Message::PortStatus(PortStatus { reason: PortReason::Modify, port: port(version) }),
        Message::PacketOut(PacketOut::new(PortNo::CONTROLLER, vec![Action::output(PortNo(2))], data)),
        Message::PortMod(PortMod {
            port: PortNo(7),
            address: MacAddress([2, 0, 0, 0, 0, 7]),
            config: 1,
            mask: 1,
            properties: vec![PortModProperty::Ethernet(0x20)],
        }),
        Message::BarrierRequest,
        Message::BarrierReply,
    ]
}

/// Returns messages that Open vSwitch supports as well.
pub fn usual(version: Version) -> Vec<Message> {
    let mut messages = of_every_version(version);
    messages.extend(flows(version));
    messages.extend(multipart(version));
    if version < Version::V1_4 {
        messages.push(Message::QueueGetConfigRequest(PortNo(7)));
        messages.push(Message::QueueGetConfigReply(QueueConfig { port: PortNo(7), queues: vec![queue()] }));
    }
    if version == Version::V1_0 {
        return messages;
    }
    let role = RoleMessage { role: ControllerRole::Master, short_id: 0, generation: 17 };
    let asynchronous = AsyncConfig::new([3, 1], [7, 7], [15, 0]);
    let (kind, properties) = (BundleControlType::OpenRequest, Properties::default());
    let enclosed = flows(version).remove(0);
    messages.extend(groups(version).into_iter().map(Message::GroupMod));
    let properties_of_table = if version >= Version::V1_4 { table_properties(0) } else { vec![] };
    messages.extend([
        Message::MeterMod(meter()),
        Message::TableMod(TableMod { table: 1, config: 0, properties: properties_of_table }),
        Message::RoleRequest(role),
        Message::RoleReply(role),
        Message::GetAsyncRequest,
        Message::GetAsyncReply(asynchronous.clone()),
        Message::SetAsync(asynchronous),
        Message::BundleControl(BundleControl { bundle: 5, kind, flags: 3, properties }),
        Message::BundleAdd(BundleAdd {
            bundle: 5,
            flags: 3,
            message: Enclosed { xid: XID, message: Box::new(enclosed) },
            properties: vec![],
        }),
    ]);
    if version >= Version::V1_4 {
        let (role, generation) = (ControllerRole::Slave, 18);
        messages.extend([
            Message::RoleStatus(RoleStatus { role, reason: 0, generation, properties: vec![] }),
            Message::RequestForward(Enclosed { xid: 9, message: Box::new(Message::MeterMod(meter())) }),
            Message::TableStatus(TableStatus {
                reason: 3,
                table: TableDesc { table: 1, config: 8, properties: table_properties(50) },
            }),
        ]);
    }
    messages
}

/// Transaction ID of encoded samples.
pub const XID: u32 = 0x0a0b_0c0d;

/// Returns all messages, including those that Open vSwitch does not support.
pub fn all(version: Version) -> Vec<Message> {
    let mut messages = usual(version);
    messages.extend(rare_flows(version));
    messages.push(Message::Experimenter(Experimenter { experimenter: 0x2320, kind: 20, body: vec![1, 2, 3] }));
    let body = Experimenter { experimenter: 0x2320, kind: 2, body: vec![9; 5] };
    let request = MultipartRequest::new(RequestBody::Experimenter(body.clone()));
    messages.push(Message::MultipartRequest(request));
    messages.push(Message::MultipartReply(MultipartReply { flags: MORE, body: ReplyBody::Experimenter(body) }));
    if version == Version::V1_5 {
        let body = RequestBody::FlowStatistics(every_flow(version));
        messages.push(Message::MultipartRequest(MultipartRequest::new(body)));
        let status = ControllerStatus {
            short_id: 1,
            role: ControllerRole::Equal,
            reason: 1,
            channel_status: 0,
            properties: vec![Property { kind: 0, body: b"tcp:10.0.0.1:6653".to_vec() }],
        };
        messages.push(Message::ControllerStatus(status.clone()));
        messages.push(Message::MultipartReply(MultipartReply {
            flags: 0,
            body: ReplyBody::ControllerStatus(vec![status]),
        }));
        let statistics = vec![Statistic::PacketCount(3)];
        messages.push(Message::MultipartReply(MultipartReply {
            flags: 0,
            body: ReplyBody::FlowStatistics(vec![FlowStatistics {
                table: 1,
                reason: 0,
                priority: 200,
                matching: Match::ANY,
                statistics,
            }]),
        }));
    }
    messages
}
