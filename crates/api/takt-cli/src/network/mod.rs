//! Checks of why participants do not find each other, made from one host.
//!
//! They cover multicast that does not return, peers and servers that do not answer, participants
//! behind a firewall, other domains, and participants that use only loopback or only IPv6. All
//! conclusions follow from what a participant of this process receives. The checks send
//! announcements, and one RTPS message without content for each interface to the multicast group of
//! discovery.

mod interfaces;

use crate::domain::{STEP, refused};
use crate::finding::{Finding, count};
use interfaces::chosen;
pub use interfaces::{interface_names, ipv6_alone, mtu};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};
use takt::{
    DomainParticipant, Guid, Locator, ParticipantData, PublicationData, Runtime, SilentParticipant, SubscriptionData,
    presentation_caution,
};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_config::{Settings, Value};
use takt_wire::compat::{check, partitions_match};

/// Multicast group of discovery over IPv4.
const DISCOVERY_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// Link-local multicast group of discovery over IPv6.
const DISCOVERY_GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);
/// Time within which a datagram to the group has to return to this host.
const RETURN_TIME: Duration = Duration::from_millis(500);
/// Time within which participants on loopback, or in another domain, have to answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// Number of domains, from 0, that are searched when nothing is found.
const DOMAINS: u32 = 10;
/// RTPS 2.5 header and a submessage of an unused kind, which receivers skip and count
/// (RTPS 2.5 §8.3.4.1).
const PROBE: [u8; 24] =
    [b'R', b'T', b'P', b'S', 2, 5, 0x01, 0x7a, 0x01, 0x7a, b'p', b'r', b'o', b'b', b'e', 0, 0, 0, 0, 0, 0x7f, 1, 0, 0];

fn texts<'s>(settings: &'s Settings, path: &str) -> &'s [String] {
    match settings.value(path) {
        Some(Value::Texts(texts)) => texts,
        _ => &[],
    }
}

fn is(settings: &Settings, path: &str) -> Option<bool> {
    match settings.value(path) {
        Some(Value::Bool(value)) => Some(*value),
        _ => None,
    }
}

/// Drives participants until the time has passed or a signal arrives.
pub fn spin(participants: &[&DomainParticipant], time: Duration) -> Result<()> {
    let deadline = Instant::now() + time;
    while !stopped() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let share = left.min(STEP) / u32::try_from(participants.len().max(1)).unwrap_or(1);
        for participant in participants {
            participant.spin_once(share)?;
        }
    }
    Ok(())
}

/// Finds matched pairs that do not fulfill all of the requested PRESENTATION, according to their
/// announcements.
pub fn presentation(publications: &[PublicationData], subscriptions: &[SubscriptionData]) -> Vec<Finding> {
    let pairs = publications.iter().flat_map(|writer| subscriptions.iter().map(move |reader| (writer, reader)));
    let matches = |writer: &PublicationData, reader: &SubscriptionData| {
        (&writer.topic_name, &writer.type_name) == (&reader.topic_name, &reader.type_name)
            && partitions_match(&writer.partition, &reader.partition)
            && check(writer, reader).is_empty()
    };
    let finding = |writer: &PublicationData, reader: &SubscriptionData, why: &str| {
        let what = format!("topic '{}': writer {} and reader {} match", writer.topic_name, writer.guid, reader.guid);
        let remedy = "configure the writer to announce PID_GROUP_ENTITYID, or request access_scope TOPIC";
        let finding = Finding::of_network("presentation", what, why, remedy).with("topic", writer.topic_name.as_str());
        finding.with("writer", writer.guid.to_string()).with("reader", reader.guid.to_string()).into_hint()
    };
    pairs
        .filter(|(writer, reader)| matches(writer, reader))
        .filter_map(|(writer, reader)| Some(finding(writer, reader, presentation_caution(writer, reader)?)))
        .collect()
}

/// Finds participants that announce themselves but do not answer.
pub fn unresponsive(participant: &DomainParticipant) -> Result<Vec<Finding>> {
    let all = participant.diagnostics().silent_participants()?;
    let finding = |one: &SilentParticipant| {
        Finding::of_network(
            "participant-silent",
            format!(
                "{} announces itself but does not answer at {} ({} challenges)",
                one.label, one.locator, one.challenges
            ),
            "its endpoints are unknown and do not match: the network drops datagrams to it or from it",
            "permit UDP ports 7400 and above in both firewalls (nft list ruleset, ufw status), and check the route",
        )
        .with("participant", one.guid.to_string())
        .with("locator", one.locator.to_string())
        .with("challenges", one.challenges)
    };
    Ok(all.iter().map(finding).collect())
}

/// Returns the host of an entry of `network.peers`, without `tcp/`, port and participant indices.
fn host_of(peer: &str) -> &str {
    let rest = peer.strip_prefix("tcp/").or_else(|| peer.strip_prefix("udp/")).unwrap_or(peer);
    let rest = rest.split('#').next().unwrap_or(rest);
    match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, _)) => host,
        None if rest.matches(':').count() == 1 => rest.split(':').next().unwrap_or(rest),
        None => rest,
    }
}

fn addresses_of(host: &str) -> Vec<IpAddr> {
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    (host, 0).to_socket_addrs().map(|all| all.map(|address| address.ip()).collect()).unwrap_or_default()
}

/// Finds configured peers and discovery servers at whose address no participant answers.
pub fn unresponsive_peers(participant: &DomainParticipant, settings: &Settings) -> Result<Vec<Finding>> {
    let silent: BTreeSet<Guid> =
        participant.diagnostics().silent_participants()?.into_iter().map(|one| one.guid).collect();
    let known = participant.discovered_participants()?;
    let answers = |address: &IpAddr| {
        let is_there = |locator: &Locator| locator.socket_addr().is_some_and(|at| at.ip() == *address);
        let mut answering = known.iter().filter(|data| !silent.contains(&data.guid));
        answering.any(|data| data.metatraffic_unicast.iter().chain(&data.default_unicast).any(is_there))
    };
    let connections = participant.diagnostics().transport_stats()?.into_iter().find(|traffic| traffic.name == "tcp");
    let is_connected = connections.is_some_and(|tcp| tcp.stats.connections.opened > tcp.stats.connections.failed);
    let mut findings = Vec::new();
    for (role, path) in [("peer", "network.peers"), ("discovery server", "network.discovery_servers")] {
        for peer in texts(settings, path) {
            let addresses = addresses_of(host_of(peer));
            let (code, what) = match addresses.as_slice() {
                [] => ("peer-unresolved", format!("{role} {peer}: the name does not resolve to an address")),
                all if all.iter().any(answers) || (peer.starts_with("tcp/") && is_connected) => continue,
                _ => ("peer-silent", format!("{role} {peer} does not answer")),
            };
            let remedy =
                format!("start it, and check its address, port, domain and the firewalls; {}", settings_hint(path));
            let finding = Finding::of_network(code, what, "participants behind it are not discovered", remedy);
            findings.push(finding.with("setting", path).with("peer", peer.as_str()));
        }
    }
    Ok(findings)
}

fn settings_hint(path: &str) -> &'static str {
    match path {
        "network.peers" => "its participants must be in this domain",
        _ => "takt discovery-server starts one",
    }
}

/// Finds interfaces on which a datagram to the multicast group of discovery does not return to this
/// host.
pub fn multicast(participant: &DomainParticipant, settings: &Settings) -> Result<Vec<Finding>> {
    let is_off = is(settings, "network.multicast") == Some(false) || is(settings, "network.udp") == Some(false);
    let has_servers = !texts(settings, "network.discovery_servers").is_empty();
    if is_off || (has_servers && is(settings, "network.multicast") != Some(true)) {
        return Ok(Vec::new());
    }
    let base = match settings.value("udp.port_base") {
        Some(Value::Int(base)) => u32::try_from(*base).unwrap_or(7400),
        _ => 7400,
    };
    let gain = match settings.value("udp.domain_gain") {
        Some(Value::Int(gain)) => u32::try_from(*gain).unwrap_or(250),
        _ => 250,
    };
    let Ok(port) = u16::try_from(base + gain * participant.domain_id()) else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for interface in chosen(settings).iter().filter(|interface| !interface.is_loopback) {
        let Some(source) = interface.source(settings) else { continue };
        let name = &interface.name;
        let (group, network) = match source {
            SocketAddr::V4(_) => (SocketAddr::from((DISCOVERY_GROUP, port)), "224.0.0.0/4"),
            SocketAddr::V6(v6) => (SocketAddrV6::new(DISCOVERY_GROUP_V6, port, 0, v6.scope_id()).into(), "ff00::/8"),
        };
        if !interface.has_multicast {
            findings.push(Finding {
                is_command: true,
                ..Finding::of_network(
                    "no-multicast",
                    format!("{name} does not carry multicast (no flag MULTICAST)"),
                    "participants on other hosts are discovered only through peers or discovery servers",
                    format!("ip link set {name} multicast on"),
                )
                .with("interface", name.as_str())
            });
        } else if !receives_own_multicast(participant, source, group)? {
            let address = SocketAddr::new(group.ip(), port);
            let finding = Finding::of_network(
                "multicast-blocked",
                format!("a multicast datagram to {address} through {name} does not return to this host"),
                "participants on other hosts are discovered only through peers or discovery servers",
                format!(
                    "permit UDP to {network} in the firewall (nft list ruleset), or configure peers: TAKT_PEERS, --peer; seen on {name}"
                ),
            );
            findings.push(finding.with("interface", name.as_str()).with("group", address.to_string()));
        }
    }
    Ok(findings)
}

/// Reports whether the participant receives a datagram that is sent to the group from this address.
fn receives_own_multicast(participant: &DomainParticipant, address: SocketAddr, group: SocketAddr) -> Result<bool> {
    let failure = |source| Error::Os { op: format!("send to {group} from {address}"), source };
    let count = || Ok::<u64, Error>(participant.diagnostics().counters()?.unknown_submessages);
    let before = count()?;
    // The source address selects the interface by which multicast leaves.
    let socket = UdpSocket::bind(address).map_err(failure)?;
    let deadline = Instant::now() + RETURN_TIME;
    while !stopped() && Instant::now() < deadline {
        if socket.send_to(&PROBE, group).is_err() {
            return Ok(false);
        }
        spin(&[participant], STEP)?;
        if count()? > before {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finds participants of the domain that use only loopback, so that the participant does not know
/// them.
pub fn on_loopback(participant: &DomainParticipant, settings: &Settings) -> Result<Vec<Finding>> {
    if !texts(settings, "network.interfaces").is_empty() || is(settings, "network.udp") == Some(false) {
        return Ok(Vec::new());
    }
    // If no other interface has an address, the participant uses loopback itself and would find the
    // one created here.
    if !chosen(settings).iter().any(|interface| interface.is_usable(settings)) {
        return Ok(Vec::new());
    }
    let mut local = settings.clone();
    local.set("network.interfaces", "lo", "loopback").map_err(refused)?;
    local.set("network.peers", "127.0.0.1", "loopback").map_err(refused)?;
    local.set("network.discovery_servers", "", "loopback").map_err(refused)?;
    let builder = local.participant().map_err(refused)?.runtime(Runtime::Inline).shared_memory(false);
    let second = builder.name("takt, on loopback").build()?;
    spin(&[&second, participant], ANSWER_TIME)?;
    let known: BTreeSet<Guid> = participant.discovered_participants()?.iter().map(|data| data.guid).collect();
    let only: Vec<String> = second
        .discovered_participants()?
        .iter()
        .filter(|data| !known.contains(&data.guid) && data.guid != participant.guid())
        .map(ParticipantData::label)
        .collect();
    second.close().map_err(Error::Dds)?;
    if only.is_empty() {
        return Ok(Vec::new());
    }
    let finding = Finding::of_network(
        "only-on-loopback",
        format!("{} only on loopback: {}", count(only.len(), "participant"), only.join(", ")),
        "participants on other interfaces do not discover it, even on this host",
        "remove TAKT_INTERFACES=lo, or set it for both; --interface lo lists the participants on loopback",
    );
    Ok(vec![finding.with("participants", only)])
}

/// Finds other domains in which participants answer.
pub fn other_domains(own: u32, settings: &Settings) -> Result<Vec<Finding>> {
    let mut participants = Vec::new();
    for domain in (0..DOMAINS).filter(|domain| *domain != own) {
        let mut other = settings.clone();
        other.set("participant.domain", &domain.to_string(), "other domains").map_err(refused)?;
        let builder = other.participant().map_err(refused)?.runtime(Runtime::Inline).shared_memory(false);
        // A port in use prevents the search of one domain only.
        if let Ok(participant) = builder.name("takt, looking for domains").build() {
            participants.push(participant);
        }
    }
    let all: Vec<&DomainParticipant> = participants.iter().collect();
    spin(&all, ANSWER_TIME)?;
    let mut findings = Vec::new();
    for participant in &participants {
        let found = participant.discovered_participants()?;
        let domain = participant.domain_id();
        if let Some(first) = found.first() {
            findings.push(
                Finding::of_network(
                    "other-domain",
                    format!("domain {domain} has {}, such as {}", count(found.len(), "participant"), first.label()),
                    format!("participants of domain {own} do not discover those of domain {domain}"),
                    format!("takt ls --domain {domain}, TAKT_DOMAIN={domain}"),
                )
                .with("domain", domain)
                .with("participants", found.len())
                .into_hint(),
            );
        }
        participant.close().map_err(Error::Dds)?;
    }
    Ok(findings)
}

/// Returns the warnings of a participant that has just joined: receive buffers limited by the
/// kernel, missing transports.
pub fn warnings(participant: &DomainParticipant) -> Vec<Finding> {
    let why = "samples can be lost, or use a slower transport";
    let finding = |one: &takt::transport::Warning| Finding::of_network("warning", &one.what, why, &one.remedy);
    participant.diagnostics().warnings().iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt::qos::{AccessScope, Presentation};

    #[test]
    fn group_writer_without_an_announced_publisher_is_a_hint_if_a_reader_requests_its_order() {
        let presentation =
            Presentation { access_scope: AccessScope::Group, coherent_access: true, ordered_access: false };
        let mut writer = PublicationData { topic_name: "a".into(), presentation, ..Default::default() };
        let mut reader = SubscriptionData { topic_name: "a".into(), presentation, ..Default::default() };
        let all = super::presentation(&[writer.clone()], &[reader.clone()]);
        let [finding] = &all[..] else { panic!("{all:?}") };
        assert!(!finding.is_error && finding.why.contains("PID_GROUP_ENTITYID"), "{finding:?}");
        reader.topic_name = "b".into();
        assert_eq!(super::presentation(&[writer.clone()], &[reader.clone()]), [], "they do not match");
        reader.topic_name = "a".into();
        writer.group_entity_id = takt::EntityId([0, 0, 1, 8]);
        assert_eq!(super::presentation(&[writer], &[reader]), []);
    }

    #[test]
    fn host_of_a_peer_excludes_port_and_participant_indices() {
        for (peer, host) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:7410", "192.0.2.7"),
            ("robot7#0-29", "robot7"),
            ("tcp/server.example:7400", "server.example"),
            ("[2001:db8::1]:7400", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(host_of(peer), host, "{peer}");
        }
    }
}
