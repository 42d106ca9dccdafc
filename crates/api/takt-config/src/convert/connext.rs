//! Files of Connext: `qos_library` in the form of DDS-XML with RTI's extensions.
//!
//! Standard policies are converted. Of the extensions of a participant, discovery, ports and
//! transports become settings; all other extensions are omitted.

use super::draft::{Block, Draft, Profile, field, profile_name, value_text};
use crate::policy::{Entity, FIELDS};
use crate::tree::Node;

/// Extensions with an equivalent elsewhere, with the reason.
const REASONS: &[(&str, &str)] = &[
    ("batch", "use LATENCY_BUDGET, or write_batch"),
    ("publish_mode", "write sends in the thread of the caller; the send window paces large samples"),
    ("protocol", "heartbeats and windows adapt to the path"),
    ("asynchronous_publisher", "write sends in the thread of the caller"),
    ("multicast", "writers use multicast groups by network.multicast_readers_min"),
    ("participant_name", "set participant.name"),
    ("event", "thread priorities: the table real_time"),
    ("receiver_pool", "thread priorities: the table real_time"),
    ("database", "tables are sized by the table limits"),
    ("resource_limits", "tables are sized by the table limits"),
];

/// Properties of builtin transports that are settings.
const PROPERTIES: &[(&str, &str)] = &[
    ("dds.transport.UDPv4.builtin.parent.allow_interfaces_list", "network.interfaces"),
    ("dds.transport.UDPv4.builtin.recv_socket_buffer_size", "udp.receive_buffer_bytes"),
    ("dds.transport.UDPv4.builtin.send_socket_buffer_size", "udp.send_buffer_bytes"),
    ("dds.transport.UDPv4.builtin.multicast_ttl", "udp.multicast_ttl"),
];

/// Settings by element of `rtps_well_known_ports`.
const PORTS: &[(&str, &str)] = &[
    ("port_base", "udp.port_base"),
    ("domain_id_gain", "udp.domain_gain"),
    ("participant_id_gain", "udp.participant_gain"),
    ("builtin_multicast_port_offset", "udp.d0"),
    ("builtin_unicast_port_offset", "udp.d1"),
    ("user_multicast_port_offset", "udp.d2"),
    ("user_unicast_port_offset", "udp.d3"),
];

/// Converts every library.
pub(super) fn convert(draft: &mut Draft<'_>, root: &Node) {
    for library in root.children() {
        let path = format!("{}/{}", root.name, library.name);
        if library.name != "qos_library" {
            draft.omit(library, &path, "only QoS libraries are converted");
            continue;
        }
        let library_name = profile_name(library.attribute("name").unwrap_or("Library"));
        for child in library.children() {
            let path = format!("{path}/{}", child.name);
            match (child.name.as_str(), entity_of(&child.name)) {
                ("qos_profile", _) => profile(draft, child, &library_name, &path),
                (_, Some(entity)) => {
                    let name = profile_name(child.attribute("name").unwrap_or(&child.name));
                    let mut profile = Profile::new(&library_name, &name);
                    block(draft, child, entity, &mut profile, &path);
                    draft.profiles.push(profile);
                }
                _ => draft.omit(child, &path, "no equivalent"),
            }
        }
    }
}

fn entity_of(element: &str) -> Option<Entity> {
    let element = if element == "participant_qos" { "domain_participant_qos" } else { element };
    Entity::of_name(element).filter(|entity| entity.element() == element)
}

fn profile(draft: &mut Draft<'_>, node: &Node, library: &str, path: &str) {
    let mut profile = Profile::new(library, &profile_name(node.attribute("name").unwrap_or("Profile")));
    draft.check_attributes(node, path, &["name", "base_name", "is_default_qos"]);
    profile.base = base(draft, node, library, path);
    if node.attribute("is_default_qos") == Some("true") {
        if draft.profiles.iter().any(|other| other.is_default) {
            draft.omit(node, &format!("{path}/@is_default_qos"), "another profile is the default already");
        } else {
            profile.is_default = true;
        }
    }
    for child in node.children() {
        let path = format!("{path}/{}", child.name);
        match entity_of(&child.name) {
            Some(entity) => block(draft, child, entity, &mut profile, &path),
            None if child.name == "base_name" => draft.omit(child, &path, "a profile has one base; copy the policies"),
            None => draft.omit(child, &path, "no equivalent"),
        }
    }
    draft.profiles.push(profile);
}

/// Returns the base profile, if it is in the file before this one.
fn base(draft: &mut Draft<'_>, node: &Node, library: &str, path: &str) -> Option<String> {
    let text = node.attribute("base_name")?;
    let bare = text.strip_prefix("::").unwrap_or(text);
    let (base_library, name) = bare.split_once("::").unwrap_or((library, bare));
    let (base_library, name) = (profile_name(base_library), profile_name(name));
    if draft.profiles.iter().any(|profile| profile.qos_library == base_library && profile.name == name) {
        return Some(format!("{base_library}::{name}"));
    }
    let reason = if base_library.starts_with("Builtin") {
        "profiles of Connext's builtin libraries are not in Takt; set the policies that matter"
    } else {
        "the profile does not precede this one in the file"
    };
    draft.omit(node, &format!("{path}/@base_name {text}"), reason);
    None
}

fn block(draft: &mut Draft<'_>, node: &Node, entity: Entity, profile: &mut Profile, path: &str) {
    draft.check_attributes(node, path, &["name", "base_name", "topic_filter"]);
    let base = base(draft, node, &profile.qos_library, path);
    let mut block = Block::new(entity);
    block.restrict(node.attribute("topic_filter").filter(|_| entity.has_topic()), base.as_deref());
    for policy in node.children() {
        let path = format!("{path}/{}", policy.name);
        if FIELDS.iter().any(|field| field.policy == policy.name && field.is_of(entity)) {
            convert_policy(draft, &mut block, policy, &path);
        } else if entity == Entity::Participant {
            participant(draft, policy, &path);
        } else {
            omit(draft, policy, &path);
        }
    }
    profile.blocks.push(block);
}

fn omit(draft: &mut Draft<'_>, node: &Node, path: &str) {
    let reason =
        REASONS.iter().find(|(known, _)| *known == node.name).map_or("an extension of RTI", |(_, reason)| reason);
    draft.omit(node, path, reason);
}

fn convert_policy(draft: &mut Draft<'_>, block: &mut Block, node: &Node, path: &str) {
    for part in node.children() {
        let path = format!("{path}/{}", part.name);
        if (node.name.as_str(), part.name.as_str()) == ("property", "value") {
            properties(draft, block, part, &path);
            continue;
        }
        let Some(field) = field(block.entity(), &node.name, &part.name) else {
            draft.omit(part, &path, "an extension of RTI");
            continue;
        };
        match value_text(field.kind, part) {
            Some(text) => draft.set_field(block, part, &path, (&node.name, &part.name), &text),
            None => draft.omit(part, &path, format!("expected {}", field.kind.expected())),
        }
    }
}

fn properties(draft: &mut Draft<'_>, block: &mut Block, node: &Node, path: &str) {
    for property in node.children() {
        let text = |name: &str| property.children().iter().find(|child| child.name == name).and_then(Node::text);
        let (name, value) = (text("name").unwrap_or_default(), text("value").unwrap_or_default());
        let path = format!("{path}/{name}");
        if let Some((_, setting)) = PROPERTIES.iter().find(|(known, _)| *known == name) {
            draft.set(property, &path, setting, value);
        } else if name.starts_with("dds.transport.") || name.starts_with("com.rti.") || name.starts_with("rti.") {
            draft.omit(property, &path, "an extension of RTI");
        } else {
            let is_propagated = text("propagate") == Some("true");
            block.add_property((name.to_owned(), value.to_owned(), is_propagated), property.line);
        }
    }
}

/// Converts an extension of a participant's QoS to settings.
fn participant(draft: &mut Draft<'_>, node: &Node, path: &str) {
    for part in node.children() {
        let path = format!("{path}/{}", part.name);
        let text = part.text().unwrap_or_default();
        match (node.name.as_str(), part.name.as_str()) {
            ("discovery", "initial_peers") => {
                for peer in part.children() {
                    initial_peer(draft, peer, &path);
                }
            }
            ("discovery_config", "participant_liveliness_lease_duration") => {
                draft.set_duration(part, &path, "participant.lease_duration");
            }
            ("discovery_config", "participant_liveliness_assert_period") => {
                draft.set_duration(part, &path, "participant.announcement_period");
            }
            ("wire_protocol", "participant_id") if text == "-1" => {}
            ("wire_protocol", "participant_id") => draft.set(part, &path, "participant.index", text),
            ("wire_protocol", "rtps_well_known_ports") => {
                for port in part.children() {
                    let path = format!("{path}/{}", port.name);
                    match PORTS.iter().find(|(element, _)| *element == port.name) {
                        Some((_, setting)) => draft.set(port, &path, setting, port.text().unwrap_or_default()),
                        None => draft.omit(port, &path, "no equivalent"),
                    }
                }
            }
            ("transport_builtin", "mask") => transports(draft, part, &path, text),
            ("participant_name", "name") => draft.set(part, &path, "participant.name", text),
            _ => draft.omit(
                part,
                &path,
                REASONS
                    .iter()
                    .find(|(known, _)| *known == node.name)
                    .map_or("an extension of RTI", |(_, reason)| reason),
            ),
        }
    }
}

/// Converts a peer descriptor, `[N@][TRANSPORT://]ADDRESS`. Multicast addresses and shared memory
/// need no peer.
fn initial_peer(draft: &mut Draft<'_>, node: &Node, path: &str) {
    let text = node.text().unwrap_or_default();
    let address = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
    let (transport, address) = address.split_once("://").unwrap_or(("", address));
    let is_multicast = address.parse().is_ok_and(|address: std::net::IpAddr| address.is_multicast());
    match transport {
        "shmem" => {}
        "" | "udpv4" | "builtin.udpv4" if is_multicast => {
            draft.omit(node, path, "the multicast address of discovery is that of the specification");
        }
        "" if address.starts_with("builtin.shmem") => {}
        "" | "udpv4" | "builtin.udpv4" | "udpv6" | "builtin.udpv6" => draft.set(node, path, "network.peers", address),
        _ => draft.omit(node, path, format!("transport {transport} has no equivalent")),
    }
}

/// Converts the mask of builtin transports, such as `UDPv4|SHMEM`.
fn transports(draft: &mut Draft<'_>, node: &Node, path: &str, text: &str) {
    let has = |name: &str| text.split('|').any(|part| part.trim().trim_start_matches("TRANSPORTBUILTIN_") == name);
    if !has("SHMEM") && !has("DEFAULT") {
        draft.set(node, path, "network.shared_memory", "false");
    }
    if has("UDPv6") {
        draft.set(node, path, "network.ipv6", "true");
    }
    if has("SHMEM") && !has("UDPv4") && !has("UDPv6") {
        draft.omit(node, path, "discovery needs UDP; user data of one host uses shared memory");
    }
}
