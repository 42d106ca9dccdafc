//! Files of Fast DDS: profiles of participants, endpoints and topics.
//!
//! One participant's profile becomes settings: the default one, or else the first. Profiles of
//! endpoints become QoS profiles of the library `FastDDS`.

use super::draft::{Block, Draft, Profile, field, profile_name, value_text};
use crate::policy::Entity;
use crate::tree::Node;
use crate::value::Kind;

const LIBRARY: &str = "FastDDS";
/// Default port of a discovery server of Fast DDS.
const SERVER_PORT: &str = "11811";

/// Element of a policy in Fast DDS, and the policy of DDS-XML. Fields have the same names.
const POLICIES: &[(&str, &str)] = &[
    ("durability", "durability"),
    ("durabilityService", "durability_service"),
    ("deadline", "deadline"),
    ("latencyBudget", "latency_budget"),
    ("liveliness", "liveliness"),
    ("reliability", "reliability"),
    ("lifespan", "lifespan"),
    ("destinationOrder", "destination_order"),
    ("ownership", "ownership"),
    ("ownershipStrength", "ownership_strength"),
    ("timeBasedFilter", "time_based_filter"),
    ("userData", "user_data"),
    ("historyQos", "history"),
    ("resourceLimitsQos", "resource_limits"),
];

/// Elements without equivalent, with the reason.
const REASONS: &[(&str, &str)] = &[
    ("publishMode", "write sends in the thread of the caller; the send window paces large samples"),
    ("data_sharing", "shared memory is used for all types unless network.shared_memory is false"),
    ("disablePositiveAcks", "reliable readers acknowledge"),
    ("historyMemoryPolicy", "memory is reserved by RESOURCE_LIMITS"),
    ("times", "heartbeat and response times are not configurable"),
    ("allocation", "tables grow up to the limits of the table limits"),
    ("flow_controller_descriptor_list", "declare rates with min_separation and max_size of the QoS"),
    ("types", "generate types from IDL: takt type FILE.idl --rust"),
    ("log", "set the variable TAKT_LOG"),
];

/// Settings of ports by element of `port`.
const PORTS: &[(&str, &str)] = &[
    ("portBase", "udp.port_base"),
    ("domainIDGain", "udp.domain_gain"),
    ("participantIDGain", "udp.participant_gain"),
    ("offsetd0", "udp.d0"),
    ("offsetd1", "udp.d1"),
    ("offsetd2", "udp.d2"),
    ("offsetd3", "udp.d3"),
];

/// Converts all profiles of the document.
pub(super) fn convert(draft: &mut Draft<'_>, root: &Node) {
    let mut groups = Vec::new();
    if root.name == "profiles" {
        groups.push((root, root.name.clone()));
    }
    for child in root.children().iter().filter(|_| root.name == "dds") {
        let path = format!("{}/{}", root.name, child.name);
        if child.name == "profiles" { groups.push((child, path)) } else { omit(draft, child, &path) }
    }
    let is_participant = |node: &&Node| node.name == "participant";
    let participants = || groups.iter().flat_map(|(group, _)| group.children()).filter(is_participant);
    let chosen = participants().find(|node| is_default(node)).or_else(|| participants().next());
    for (group, path) in &groups {
        for child in group.children() {
            let path = format!("{path}/{}", child.name);
            match child.name.as_str() {
                "participant" if chosen.is_some_and(|chosen| std::ptr::eq(chosen, child)) => {
                    participant(draft, child, &path, &groups);
                }
                "participant" => {
                    draft.omit(child, &path, "settings are those of one participant; convert the others separately");
                }
                "data_writer" | "publisher" => endpoint(draft, child, &path, Entity::DataWriter),
                "data_reader" | "subscriber" => endpoint(draft, child, &path, Entity::DataReader),
                "topic" => endpoint(draft, child, &path, Entity::Topic),
                // Converted with the participant that uses them.
                "transport_descriptors" => {}
                _ => omit(draft, child, &path),
            }
        }
    }
}

fn is_default(node: &Node) -> bool {
    node.attributes.iter().any(|(name, value)| name.starts_with("is_default") && value == "true")
}

fn child<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.children().iter().find(|child| child.name == name)
}

fn omit(draft: &mut Draft<'_>, node: &Node, path: &str) {
    let reason = REASONS.iter().find(|(known, _)| *known == node.name).map_or("no equivalent", |(_, reason)| reason);
    draft.omit(node, path, reason);
}

fn endpoint(draft: &mut Draft<'_>, node: &Node, path: &str, entity: Entity) {
    let profile_name = profile_name(node.attribute("profile_name").unwrap_or(&node.name));
    let name = format!("{LIBRARY}::{profile_name}");
    // Endpoints and topics may share a name; they become one profile.
    let existing = draft.profiles.iter().position(|profile| profile.name == profile_name);
    let mut profile = match existing {
        Some(index) => draft.profiles.remove(index),
        None => Profile::new(LIBRARY, &profile_name),
    };
    if is_default(node) {
        draft.omit(node, path, format!("name the profile where entities are created: {name}"));
    }
    let mut block = std::mem::replace(profile.block(entity), Block::new(entity));
    let mut partitions = None;
    for part in node.children() {
        let path = format!("{path}/{}", part.name);
        match part.name.as_str() {
            "qos" | "topic" => {
                for policy in part.children() {
                    let path = format!("{path}/{}", policy.name);
                    match policy.name.as_str() {
                        "partition" => partitions = Some((policy, path)),
                        // Kind, name and type of the topic in old files.
                        "kind" | "name" | "dataType" if part.name == "topic" => {}
                        _ => convert_policy(draft, &mut block, policy, &path),
                    }
                }
            }
            "historyQos" | "resourceLimitsQos" => convert_policy(draft, &mut block, part, &path),
            _ => omit(draft, part, &path),
        }
    }
    *profile.block(entity) = block;
    if let Some((node, path)) = partitions {
        let group = if entity == Entity::DataWriter { Entity::Publisher } else { Entity::Subscriber };
        let mut block = Block::new(group);
        let names: Vec<&str> =
            child(node, "names").map(Node::children).unwrap_or_default().iter().filter_map(Node::text).collect();
        draft.set_field(&mut block, node, &path, ("partition", "name"), &names.join(","));
        *profile.block(group) = block;
    }
    draft.profiles.push(profile);
}

fn convert_policy(draft: &mut Draft<'_>, block: &mut Block, node: &Node, path: &str) {
    let Some((_, policy)) = POLICIES.iter().find(|(element, _)| *element == node.name) else {
        return omit(draft, node, path);
    };
    for part in node.children() {
        let path = format!("{path}/{}", part.name);
        let Some(field) = field(block.entity(), policy, &part.name) else {
            draft.omit(part, &path, "no equivalent");
            continue;
        };
        let text = match (field.kind, value_text(field.kind, part)) {
            (_, None) => {
                draft.omit(part, &path, format!("expected {}", field.kind.expected()));
                continue;
            }
            // Fast DDS takes 0 and negative lengths as unlimited.
            (Kind::Length, Some(text)) if text.parse().is_ok_and(|length: i64| length <= 0) => {
                "LENGTH_UNLIMITED".to_owned()
            }
            // Octets are separated by dots.
            (Kind::Octets, Some(text)) => text.replace('.', ","),
            (_, Some(text)) => text,
        };
        draft.set_field(block, part, &path, (policy, &part.name), &text);
    }
}

/// Converts a participant's profile to settings.
fn participant(draft: &mut Draft<'_>, node: &Node, path: &str, groups: &[(&Node, String)]) {
    for part in node.children() {
        let path = format!("{path}/{}", part.name);
        match part.name.as_str() {
            "domainId" => draft.set(part, &path, "participant.domain", part.text().unwrap_or_default()),
            "rtps" => {
                for element in part.children() {
                    rtps(draft, element, &format!("{path}/{}", element.name), groups);
                }
            }
            _ => omit(draft, part, &path),
        }
    }
}

fn rtps(draft: &mut Draft<'_>, node: &Node, path: &str, groups: &[(&Node, String)]) {
    let text = node.text().unwrap_or_default();
    match node.name.as_str() {
        "name" => draft.set(node, path, "participant.name", text),
        "participantID" if text.starts_with('-') => {}
        "participantID" => draft.set(node, path, "participant.index", text),
        "listenSocketBufferSize" | "sendSocketBufferSize" if text == "0" => {}
        "listenSocketBufferSize" => draft.set(node, path, "udp.receive_buffer_bytes", text),
        "sendSocketBufferSize" => draft.set(node, path, "udp.send_buffer_bytes", text),
        "useBuiltinTransports" if text == "true" => {}
        "userTransports" => {
            for transport in node.children() {
                user_transport(draft, transport, &format!("{path}/{}", transport.name), groups);
            }
        }
        "port" => {
            for port in node.children() {
                let path = format!("{path}/{}", port.name);
                match PORTS.iter().find(|(element, _)| *element == port.name) {
                    Some((_, setting)) => draft.set(port, &path, setting, port.text().unwrap_or_default()),
                    None => omit(draft, port, &path),
                }
            }
        }
        "propertiesPolicy" => properties(draft, node, path),
        "builtin" => {
            for element in node.children() {
                builtin(draft, element, &format!("{path}/{}", element.name));
            }
        }
        _ => omit(draft, node, path),
    }
}

fn properties(draft: &mut Draft<'_>, node: &Node, path: &str) {
    for group in node.children() {
        if group.name != "properties" {
            omit(draft, group, &format!("{path}/{}", group.name));
            continue;
        }
        for property in group.children() {
            let text = |name: &str| child(property, name).and_then(Node::text).unwrap_or_default().to_owned();
            let (name, value, is_propagated) = (text("name"), text("value"), text("propagate") == "true");
            if name.starts_with("dds.sec.auth.builtin.") || name.starts_with("dds.sec.access.builtin.") {
                // Fast DDS has the plugin's name in its properties; the specification has none.
                let name = name.replace(".builtin.PKI-DH", "").replace(".builtin.Access-Permissions", "");
                add_property(draft, (name, value, is_propagated), property.line);
            } else if matches!(name.as_str(), "dds.sec.auth.plugin" | "dds.sec.access.plugin" | "dds.sec.crypto.plugin")
            {
                draft.omit(property, &format!("{path}/properties/{name}"), "the builtin plugins need no name");
            } else {
                add_property(draft, (name, value, is_propagated), property.line);
            }
        }
    }
}

fn add_property(draft: &mut Draft<'_>, property: (String, String, bool), line: u32) {
    const NAME: &str = "Participant";
    if !draft.profiles.iter().any(|profile| profile.name == NAME) {
        draft.profiles.insert(0, Profile::new(LIBRARY, NAME));
        let node = Node {
            name: NAME.to_owned(),
            line,
            attributes: Vec::new(),
            content: crate::tree::Content::Text(String::new()),
        };
        draft.set(&node, NAME, "participant.qos_profile", &format!("{LIBRARY}::{NAME}"));
    }
    let profile = draft.profiles.iter_mut().find(|profile| profile.name == NAME).expect("it was inserted");
    profile.block(Entity::Participant).add_property(property, line);
}

fn builtin(draft: &mut Draft<'_>, node: &Node, path: &str) {
    match node.name.as_str() {
        "initialPeersList" => locators(draft, node, path, "network.peers", None),
        "discovery_config" => {
            for element in node.children() {
                discovery(draft, element, &format!("{path}/{}", element.name));
            }
        }
        _ => omit(draft, node, path),
    }
}

fn discovery(draft: &mut Draft<'_>, node: &Node, path: &str) {
    match (node.name.as_str(), node.text().unwrap_or_default()) {
        ("leaseDuration", _) => draft.set_duration(node, path, "participant.lease_duration"),
        ("leaseAnnouncement", _) => draft.set_duration(node, path, "participant.announcement_period"),
        ("discoveryProtocol", "SIMPLE" | "CLIENT" | "SUPER_CLIENT") => {}
        ("discoveryProtocol", "SERVER" | "BACKUP") => {
            draft.omit(node, path, "a server is a process of its own: takt discovery-server");
        }
        ("discoveryServersList", _) => {
            for server in node.children() {
                let path = format!("{path}/{}", server.name);
                match child(server, "metatrafficUnicastLocatorList") {
                    Some(list) => locators(draft, list, &path, "network.discovery_servers", Some(SERVER_PORT)),
                    None => locator(draft, server, &path, "network.discovery_servers", Some(SERVER_PORT)),
                }
            }
        }
        _ => omit(draft, node, path),
    }
}

fn locators(draft: &mut Draft<'_>, node: &Node, path: &str, setting: &str, port: Option<&str>) {
    for element in node.children() {
        locator(draft, element, &format!("{path}/{}", element.name), setting, port);
    }
}

/// Converts a locator to an address with port. `port` is the one of a locator without port.
fn locator(draft: &mut Draft<'_>, node: &Node, path: &str, setting: &str, port: Option<&str>) {
    let Some(kind) = node.children().first() else {
        return draft.omit(node, path, "a locator without address");
    };
    let text = |name: &str| child(kind, name).and_then(Node::text);
    let address = text("address").unwrap_or("127.0.0.1");
    let port = text("physical_port").or_else(|| text("port")).filter(|port| *port != "0").or(port);
    let suffix = port.map(|port| format!(":{port}")).unwrap_or_default();
    let peer = match kind.name.as_str() {
        "udpv4" => format!("{address}{suffix}"),
        "udpv6" => format!("[{address}]{suffix}"),
        "tcpv4" => format!("tcp/{address}{suffix}"),
        "tcpv6" => format!("tcp/[{address}]{suffix}"),
        _ => return draft.omit(node, path, format!("locators of kind {} have no equivalent", kind.name)),
    };
    draft.set(node, path, setting, &peer);
}

/// Converts the descriptor that a participant names.
fn user_transport(draft: &mut Draft<'_>, node: &Node, path: &str, groups: &[(&Node, String)]) {
    let id = node.text().unwrap_or_default();
    let lists =
        groups.iter().flat_map(|(group, _)| group.children()).filter(|list| list.name == "transport_descriptors");
    let mut descriptors = lists.flat_map(Node::children);
    let text = |node: &Node, name: &str| child(node, name).and_then(Node::text).unwrap_or_default().to_owned();
    let Some(descriptor) = descriptors.find(|descriptor| text(descriptor, "transport_id") == id) else {
        return draft.omit(node, path, format!("no transport descriptor {id:?} is in the file"));
    };
    let path = format!("transport_descriptors/{id}");
    match text(descriptor, "type").as_str() {
        "UDPv4" | "SHM" => {}
        "UDPv6" => draft.set(descriptor, &path, "network.ipv6", "true"),
        kind => return draft.omit(descriptor, &path, format!("transport {kind}: see the table tcp of the settings")),
    }
    for element in descriptor.children() {
        let path = format!("{path}/{}", element.name);
        let text = element.text().unwrap_or_default();
        match element.name.as_str() {
            "transport_id" | "type" => {}
            "interfaceWhiteList" => {
                for address in element.children() {
                    draft.set(address, &path, "network.interfaces", address.text().unwrap_or_default());
                }
            }
            "TTL" => draft.set(element, &path, "udp.multicast_ttl", text),
            "receiveBufferSize" => draft.set(element, &path, "udp.receive_buffer_bytes", text),
            "sendBufferSize" => draft.set(element, &path, "udp.send_buffer_bytes", text),
            _ => omit(draft, element, &path),
        }
    }
}
