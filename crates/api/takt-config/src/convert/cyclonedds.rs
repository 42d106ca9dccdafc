//! Files of CycloneDDS: network, discovery, ports, buffers, and the documents of DDS Security.
//!
//! CycloneDDS compares names of elements without regard to case.

use super::draft::{Draft, Profile};
use crate::policy::Entity;
use crate::tree::Node;

/// Profile with the properties of DDS Security.
const SECURITY_PROFILE: (&str, &str) = ("CycloneDDS", "Security");

/// Elements that set a setting to their own text, with the setting.
const SETTINGS: &[(&str, &str)] = &[
    ("general/useipv6", "network.ipv6"),
    ("general/multicasttimetolive", "udp.multicast_ttl"),
    ("discovery/ports/base", "udp.port_base"),
    ("discovery/ports/domaingain", "udp.domain_gain"),
    ("discovery/ports/participantgain", "udp.participant_gain"),
    ("discovery/ports/multicastmetaoffset", "udp.d0"),
    ("discovery/ports/unicastmetaoffset", "udp.d1"),
    ("discovery/ports/multicastdataoffset", "udp.d2"),
    ("discovery/ports/unicastdataoffset", "udp.d3"),
];

/// Elements that need no equivalent, or have it elsewhere, with the reason.
const REASONS: &[(&str, &str)] = &[
    ("general/maxmessagesize", "datagrams fit the MTU of the path"),
    ("general/maxrexmitmessagesize", "datagrams fit the MTU of the path"),
    ("general/fragmentsize", "fragments fit the MTU of the path"),
    ("general/entityautonaming", "name the participant by participant.name"),
    ("discovery/tag", "domain tags are not supported; use another domain"),
    ("discovery/maxautoparticipantindex", "the first free index is used, up to 119"),
    ("tracing/verbosity", "set the variable TAKT_LOG"),
    ("tracing/outputfile", "the log goes to standard error; set the variable TAKT_LOG"),
    ("tracing/category", "set the variable TAKT_LOG"),
    ("sharedmemory/enable", "shared memory is used without a daemon unless network.shared_memory is false"),
    ("tcp/enable", "TCP needs addresses: tcp.listen, and tcp/HOST:PORT in network.peers"),
    ("tcp/port", "TCP needs addresses: tcp.listen, and tcp/HOST:PORT in network.peers"),
];

/// Elements of DDS Security and their properties (DDS-SEC 1.1 §9.3.1).
const SECURITY: &[(&str, &str)] = &[
    ("authentication/identitycertificate", "dds.sec.auth.identity_certificate"),
    ("authentication/identityca", "dds.sec.auth.identity_ca"),
    ("authentication/privatekey", "dds.sec.auth.private_key"),
    ("authentication/password", "dds.sec.auth.password"),
    ("accesscontrol/permissionsca", "dds.sec.access.permissions_ca"),
    ("accesscontrol/governance", "dds.sec.access.governance"),
    ("accesscontrol/permissions", "dds.sec.access.permissions"),
];

/// Converts the first `Domain` element. Other domains are omitted.
pub(super) fn convert(draft: &mut Draft<'_>, root: &Node) {
    let mut is_first = true;
    for child in root.children() {
        let path = format!("{}/{}", root.name, child.name);
        if !child.name.eq_ignore_ascii_case("Domain") {
            // Files before 0.8 have the elements of a domain below the root.
            element(draft, child, &path, &child.name.to_ascii_lowercase());
        } else if std::mem::take(&mut is_first) {
            domain(draft, child, &path);
        } else {
            draft.omit(child, &path, "settings are those of one domain; convert the other ones separately");
        }
    }
}

fn domain(draft: &mut Draft<'_>, node: &Node, path: &str) {
    for (name, value) in &node.attributes {
        match name.to_ascii_lowercase().as_str() {
            "id" if value == "any" => {}
            "id" => draft.set(node, &format!("{path}/@{name}"), "participant.domain", value),
            _ => draft.omit(node, &format!("{path}/@{name}"), "no equivalent"),
        }
    }
    for child in node.children() {
        element(draft, child, &format!("{path}/{}", child.name), &child.name.to_ascii_lowercase());
    }
}

/// Converts an element. `key` is its path below the domain, in lower case.
fn element(draft: &mut Draft<'_>, node: &Node, path: &str, key: &str) {
    let text = node.text().unwrap_or_default();
    if let Some((_, setting)) = SETTINGS.iter().find(|(known, _)| *known == key) {
        if text != "default" {
            draft.set(node, path, setting, text);
        }
        return;
    }
    match key {
        "general/interfaces/networkinterface" => interface(draft, node, path),
        "general/networkinterfaceaddress" if text == "auto" => {}
        "general/networkinterfaceaddress" => draft.set(node, path, "network.interfaces", text),
        "general/allowmulticast" => multicast(draft, node, path, text),
        "general/transport" => transport(draft, node, path, text),
        "discovery/peers/peer" => match attribute(node, "Address") {
            Some(address) => draft.set(node, path, "network.peers", address),
            None => draft.omit(node, path, "the attribute Address is missing"),
        },
        "discovery/participantindex" if matches!(text, "auto" | "none" | "default") => {}
        "discovery/participantindex" => draft.set(node, path, "participant.index", text),
        "discovery/leaseduration" => draft.set(node, path, "participant.lease_duration", &duration(text)),
        "discovery/spdpinterval" => draft.set(node, path, "participant.announcement_period", &duration(text)),
        "internal/socketreceivebuffersize" => buffer(draft, node, path, "udp.receive_buffer_bytes"),
        "internal/socketsendbuffersize" => buffer(draft, node, path, "udp.send_buffer_bytes"),
        "domain/id" if text == "any" => {}
        "domain/id" => draft.set(node, path, "participant.domain", text),
        key if key.starts_with("security/") || key.starts_with("ddssecurity/") => security(draft, node, path, key),
        _ if node.children().is_empty() => {
            let reason = REASONS.iter().find(|(known, _)| *known == key).map_or("no equivalent", |(_, reason)| reason);
            draft.omit(node, path, reason);
        }
        _ => children(draft, node, path, key),
    }
}

fn children(draft: &mut Draft<'_>, node: &Node, path: &str, key: &str) {
    draft.check_attributes(node, path, &[]);
    for child in node.children() {
        let key = format!("{key}/{}", child.name.to_ascii_lowercase());
        element(draft, child, &format!("{path}/{}", child.name), &key);
    }
}

fn attribute<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    let found = node.attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn interface(draft: &mut Draft<'_>, node: &Node, path: &str) {
    for (name, value) in &node.attributes {
        match name.to_ascii_lowercase().as_str() {
            "name" | "address" => draft.set(node, path, "network.interfaces", value),
            "autodetermine" if matches!(value.as_str(), "true" | "false") => {}
            "multicast" if matches!(value.as_str(), "true" | "default") => {}
            "priority" => {
                draft.omit(
                    node,
                    &format!("{path}/@{name}"),
                    "all interfaces are used; remove those that are not wanted",
                );
            }
            _ => draft.omit(node, &format!("{path}/@{name}"), "no equivalent"),
        }
    }
}

/// Converts `AllowMulticast`: `true`, `default`, `false`, or a list of `spdp`, `asm` and `ssm`.
fn multicast(draft: &mut Draft<'_>, node: &Node, path: &str, text: &str) {
    match text {
        "true" | "default" | "asm" | "ssm" | "spdp,asm" | "spdp,ssm" | "spdp,asm,ssm" => {}
        "false" => draft.set(node, path, "network.multicast", "false"),
        // Discovery by multicast, user data by unicast.
        "spdp" => draft.set(node, path, "network.multicast_readers_min", "0"),
        _ => draft.omit(node, path, format!("unknown value {text:?}")),
    }
}

fn transport(draft: &mut Draft<'_>, node: &Node, path: &str, text: &str) {
    match text {
        "default" | "udp" => {}
        "udp6" => draft.set(node, path, "network.ipv6", "true"),
        "tcp" | "tcp6" => draft.omit(node, path, "TCP needs addresses: tcp.listen, and tcp/HOST:PORT in network.peers"),
        "raweth" => draft.omit(node, path, "transport.user_data = [\"ethernet:INTERFACE\"] has its own framing"),
        _ => draft.omit(node, path, format!("unknown value {text:?}")),
    }
}

/// Converts a buffer size: its text in old files, its attribute `min` in newer ones.
fn buffer(draft: &mut Draft<'_>, node: &Node, path: &str, setting: &str) {
    let text = attribute(node, "min").or_else(|| node.text().filter(|text| !text.is_empty()));
    match text.map(|text| (text, bytes(text))) {
        None | Some(("default", _)) => {}
        Some((_, Some(bytes))) => draft.set(node, path, setting, &bytes.to_string()),
        Some((text, None)) => draft.omit(node, path, format!("{text:?} is no size")),
    }
}

/// Returns the number of bytes of a size such as `10 MB`. CycloneDDS takes `kB` and `MB` as powers
/// of 1,024.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "B" | "" => 1,
        "kB" | "KiB" => 1 << 10,
        "MB" | "MiB" => 1 << 20,
        "GB" | "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Returns a duration in the form of the settings.
fn duration(text: &str) -> String {
    if text == "inf" { "infinite".to_owned() } else { text.to_owned() }
}

fn security(draft: &mut Draft<'_>, node: &Node, path: &str, key: &str) {
    let below = key.split_once('/').map_or(key, |(_, below)| below);
    match SECURITY.iter().find(|(known, _)| *known == below) {
        Some((_, property)) => {
            let (library, name) = SECURITY_PROFILE;
            if !draft.profiles.iter().any(|profile| profile.name == name) {
                draft.profiles.push(Profile::new(library, name));
                draft.set(node, path, "participant.qos_profile", &format!("{library}::{name}"));
            }
            let profile = draft.profiles.last_mut().expect("it was pushed");
            let text = node.text().unwrap_or_default().to_owned();
            profile.block(Entity::Participant).add_property(((*property).to_owned(), text, false), node.line);
        }
        None if node.children().is_empty() => draft.omit(node, path, "the builtin plugins need no library"),
        None => children(draft, node, path, key),
    }
}
