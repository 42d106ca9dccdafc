//! Encoded messages, read by `ovs-ofctl ofp-print` of Open vSwitch: its output contains the encoded
//! values.

use std::process::Command;

use takt_openflow::action::Action;
use takt_openflow::flow::{FlowCommand, FlowMod};
use takt_openflow::flow_match::Match;
use takt_openflow::instruction::Instruction;
use takt_openflow::multipart::ReplyBody;
use takt_openflow::oxm::{Masked, Oxm, VLAN_PRESENT};
use takt_openflow::value::PortNo;
use takt_openflow::{Message, Version};
use takt_testkit::{not_run, require};

use crate::samples::{XID, usual};

/// Returns the output of `ovs-ofctl ofp-print` for a message, including warnings.
fn print(octets: &[u8]) -> String {
    let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let output = Command::new("ovs-ofctl").args(["ofp-print", &hex, "2"]).output().expect("ovs-ofctl is installed");
    String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned()
}

/// INTEROP(Open vSwitch 3.1.0): it reads METER_FEATURES of 1.5 in the form of 1.3, without the
/// flags and padding after it.
fn is_unknown_to_ovs(version: Version, message: &Message) -> bool {
    let Message::MultipartReply(reply) = message else { return false };
    version == Version::V1_5 && matches!(reply.body, ReplyBody::MeterFeatures(_))
}

fn masked<T: std::fmt::Display>(name: &str, value: &Masked<T>) -> String {
    match &value.mask {
        Some(mask) => format!("{name}={}/{mask}", value.value),
        None => format!("{name}={}", value.value),
    }
}

/// Returns a field as Open vSwitch prints it. `None` for fields that it prints as the name of the
/// protocol.
fn field(oxm: &Oxm) -> Option<String> {
    let prefix = |name: &str, value: u128, len: u32, text: String| {
        format!("{name}={text}/{}", len - (value.trailing_zeros().min(len)))
    };
    Some(match oxm {
        Oxm::InPort(port) => format!("in_port={port}"),
        Oxm::Metadata(Masked { value, mask: Some(mask) }) => format!("metadata={value:#x}/{mask:#x}"),
        Oxm::TunnelId(id) => format!("tun_id={:#x}", id.value),
        Oxm::EthDst(address) => masked("dl_dst", address),
        Oxm::EthSrc(address) => masked("dl_src", address),
        Oxm::VlanVid(id) => format!("dl_vlan={}", id.value & !VLAN_PRESENT),
        Oxm::VlanPcp(priority) => format!("dl_vlan_pcp={priority}"),
        Oxm::IpDscp(dscp) => format!("nw_tos={}", dscp << 2),
        Oxm::IpEcn(ecn) => format!("nw_ecn={ecn}"),
        Oxm::Ipv4Src(Masked { value, mask: Some(mask) }) => {
            prefix("nw_src", u128::from(u32::from(*mask)), 32, value.to_string())
        }
        Oxm::ArpTpa(Masked { value, mask: Some(mask) }) => {
            prefix("arp_tpa", u128::from(u32::from(*mask)), 32, value.to_string())
        }
        Oxm::Ipv6Src(Masked { value, mask: Some(mask) }) => {
            prefix("ipv6_src", u128::from(*mask), 128, value.to_string())
        }
        Oxm::Ipv4Dst(address) => masked("nw_dst", address),
        Oxm::ArpSpa(address) => masked("arp_spa", address),
        Oxm::ArpSha(address) => masked("arp_sha", address),
        Oxm::ArpTha(address) => masked("arp_tha", address),
        Oxm::ArpOp(operation) => format!("arp_op={operation}"),
        Oxm::Ipv6Dst(address) => masked("ipv6_dst", address),
        Oxm::Ipv6Flabel(label) => format!("ipv6_label={:#07x}", label.value),
        Oxm::TcpSrc(port) | Oxm::UdpSrc(port) | Oxm::SctpSrc(port) => format!("tp_src={port}"),
        Oxm::TcpDst(port) | Oxm::UdpDst(port) | Oxm::SctpDst(port) => format!("tp_dst={port}"),
        Oxm::Icmpv4Type(kind) | Oxm::Icmpv6Type(kind) => format!("icmp_type={kind}"),
        Oxm::Icmpv4Code(code) | Oxm::Icmpv6Code(code) => format!("icmp_code={code}"),
        Oxm::Ipv6NdTarget(address) => format!("nd_target={address}"),
        Oxm::Ipv6NdSll(address) => format!("nd_sll={address}"),
        Oxm::Ipv6NdTll(address) => format!("nd_tll={address}"),
        Oxm::MplsLabel(label) => format!("mpls_label={label}"),
        Oxm::MplsTc(class) => format!("mpls_tc={class}"),
        Oxm::MplsBos(bottom) => format!("mpls_bos={bottom}"),
        Oxm::EthType(_) | Oxm::IpProto(_) => return None,
        other => panic!("{other:?} is in no sample for Open vSwitch"),
    })
}

fn action(action: &Action) -> String {
    match action {
        Action::Output { port: PortNo::CONTROLLER, .. } => "CONTROLLER:65535".to_owned(),
        Action::Output { port: PortNo::IN_PORT, .. } => "IN_PORT".to_owned(),
        Action::Output { port, .. } => format!("output:{port}"),
        Action::SetQueue(queue) => format!("set_queue:{queue}"),
        Action::SetNwTtl(ttl) => format!("mod_nw_ttl:{ttl}"),
        Action::DecNwTtl => "dec_ttl".to_owned(),
        Action::Group(group) => format!("group:{group}"),
        Action::PushVlan(kind) => format!("push_vlan:{kind:#06x}"),
        Action::PopVlan => "_vlan".to_owned(),
        Action::Meter(meter) => format!("meter:{meter}"),
        Action::SetField(Oxm::IpDscp(dscp)) => format!("set_field:{dscp}->ip_dscp"),
        Action::SetField(Oxm::EthDst(address)) => format!("set_field:{}->eth_dst", address.value),
        Action::SetField(Oxm::Ipv4Dst(address)) => format!("set_field:{}->ip_dst", address.value),
        Action::SetField(Oxm::VlanVid(id)) => format!("set_field:{}->vlan_vid", id.value),
        Action::V1_0(_) => "actions=".to_owned(),
        other => panic!("{other:?} is in no sample for Open vSwitch"),
    }
}

fn flow_texts(flow: &FlowMod) -> Vec<String> {
    let name = match flow.command {
        FlowCommand::Add => "ADD",
        FlowCommand::Modify => "MOD",
        FlowCommand::ModifyStrict => "MOD_STRICT",
        FlowCommand::Delete => "DEL",
        FlowCommand::DeleteStrict => "DEL_STRICT",
    };
    let mut texts = vec![format!("{name} priority={}", flow.priority), format!("idle:{}", flow.idle_timeout)];
    if flow.command == FlowCommand::Add {
        texts.push(format!("cookie:{:#x}", flow.cookie));
    }
    // Open vSwitch keeps the importance of additions only.
    if flow.importance != 0 && flow.command == FlowCommand::Add {
        texts.push(format!("importance:{}", flow.importance));
    }
    if let Match::Oxm(fields) = &flow.matching {
        texts.extend(fields.iter().filter_map(field));
    }
    for instruction in &flow.instructions {
        match instruction {
            Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
                texts.extend(actions.iter().map(action));
            }
            Instruction::GotoTable(table) => texts.push(format!("goto_table:{table}")),
            Instruction::WriteMetadata { metadata, mask } => {
                texts.push(format!("write_metadata:{metadata:#x}/{mask:#x}"));
            }
            Instruction::ClearActions => texts.push("clear_actions".to_owned()),
            Instruction::Meter(meter) => texts.push(format!("meter:{meter}")),
            other => panic!("{other:?} is in no sample for Open vSwitch"),
        }
    }
    texts
}

/// Returns the texts that the output for a message must contain.
fn texts(message: &Message) -> Vec<String> {
    let words = |text: &str| text.split('|').map(str::to_owned).collect();
    match message {
        Message::FlowMod(flow) => flow_texts(flow),
        Message::Hello(_) => words("HELLO|0x01, 0x04, 0x05, 0x06"),
        Message::Error(_) => words("TABLE_FULL|FLOW_MOD|priority=200"),
        Message::EchoRequest(_) => words("ECHO_REQUEST|3 bytes"),
        Message::FeaturesReply(_) => words("FEATURES_REPLY|dpid:000000000000002a|n_tables:254"),
        Message::SetConfig(_) => words("SET_CONFIG|miss_send_len=65535"),
        Message::PacketIn(_) => words("PACKET_IN|in_port=7|via action|total_len=18|dl_type=0x88b5"),
        Message::PacketOut(_) => words("PACKET_OUT|in_port=CONTROLLER|output:2|dl_type=0x88b5"),
        Message::FlowRemoved(_) => {
            words("FLOW_REMOVED|priority=200|reason=hard|cookie:0x1234|12.500s|pkts34|bytes5678")
        }
        Message::PortStatus(_) => words("PORT_STATUS|MOD|7(eth7)|02:00:00:00:00:07|PORT_DOWN|LINK_DOWN"),
        Message::PortMod(_) => words("PORT_MOD|7: addr:02:00:00:00:00:07|PORT_DOWN"),
        Message::GroupMod(group) => vec![format!("group_id={}", group.group), "ADD".to_owned(), "bucket=".to_owned()],
        Message::MeterMod(_) => words("meter=3|kbps burst stats|rate=1000 burst_size=64|rate=500|prec_level=1"),
        Message::RoleRequest(_) | Message::RoleReply(_) => words("ROLE_RE|role=primary|generation_id=17"),
        Message::RoleStatus(_) => words("ROLE_STATUS|role=secondary|generation_id=18"),
        Message::SetAsync(_) | Message::GetAsyncReply(_) => words("ASYNC|no_match action"),
        Message::BundleControl(_) => words("BUNDLE_CONTROL|bundle_id=0x5|OPEN_REQUEST|atomic ordered"),
        Message::BundleAdd(_) => words("BUNDLE_ADD|bundle_id=0x5|FLOW_MOD|in_port=3"),
        Message::RequestForward(_) => words("REQUESTFORWARD|meter=3"),
        Message::TableStatus(_) => words("TABLE_STATUS|VACANCY_DOWN"),
        Message::QueueGetConfigReply(_) => words("min_rate:50.0%|max_rate:90.0%"),
        Message::MultipartReply(reply) => match reply.body {
            ReplyBody::Desc(_) => words("Manufacturer: Takt|Serial Num: 0042"),
            ReplyBody::Flow(_) => words("FLOW|cookie=0x1234|12.500|n_packets=34|n_bytes=5678|priority=200|output:2"),
            ReplyBody::Aggregate(_) => words("packet_count=34 byte_count=5678 flow_count=2"),
            ReplyBody::Table(_) => words("active=11|lookup=12|matched=13"),
            ReplyBody::Port(_) => words("port  7|rx pkts=21, bytes=23|tx pkts=22, bytes=24"),
            ReplyBody::Queue(_) => words("port 7 queue 2: bytes=31, pkts=32, errors=33"),
            ReplyBody::Group(_) => {
                words("group_id=2|ref_count=1|packet_count=43|bucket1:packet_count=41,byte_count=42")
            }
            ReplyBody::GroupDesc(_) => words("group_id=2,type=select|weight:5|output:1"),
            ReplyBody::GroupFeatures(_) => words("0xf"),
            ReplyBody::Meter(_) => words("meter:3|packet_in_count:51|packet_count:53 byte_count:54"),
            ReplyBody::MeterConfig(_) => words("meter=3|rate=1000 burst_size=64|prec_level=1"),
            ReplyBody::MeterFeatures(_) => words("max_meter:1000|max_bands:2|max_color:8|drop dscp_remark"),
            ReplyBody::TableFeatures(_) => words("classifier|max_entries=1000000"),
            ReplyBody::PortDesc(_) => words("7(eth7)|02:00:00:00:00:07|PORT_DOWN"),
            ReplyBody::QueueDesc(_) => words("min_rate:50.0%|max_rate:90.0%"),
            _ => vec![],
        },
        _ => vec![],
    }
}

#[test]
fn open_vswitch_prints_the_values_of_every_message() {
    if let Err(why) = require::program("ovs-ofctl") {
        return not_run(why);
    }
    let mut wrong = Vec::new();
    for version in Version::ALL {
        for message in usual(version) {
            let text = print(&message.encode(version, XID).expect("samples can be encoded in their version"));
            if is_unknown_to_ovs(version, &message) {
                assert!(text.contains("incorrect length"), "it reads METER_FEATURES now: {text}");
                continue;
            }
            let missing: Vec<String> = texts(&message).into_iter().filter(|part| !text.contains(part)).collect();
            if text.contains("***") || text.contains("WARN") || !text.contains("(xid=0xa0b0c0d)") || !missing.is_empty()
            {
                wrong.push(format!("{version} {message:?}\nwithout {missing:?}:\n{text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
