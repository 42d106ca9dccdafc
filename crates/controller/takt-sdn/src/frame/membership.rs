//! Multicast membership protocols: IGMP (RFC 1112, RFC 2236, RFC 3376) and MLD (RFC 2710,
//! RFC 3810).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use takt_packet::{IgmpMessage, Ipv4Header, Ipv6Header, Sum};

use super::{EtherType, IpPacket, MacAddress, build};

const IGMP: u8 = 2;
const ICMPV6: u8 = 58;
/// Groups of all hosts (IPv4) and all nodes (IPv6).
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Link-local source address of MLD queries.
const QUERIER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x0054, 0x4bff, 0xfe00, 0x0001);

/// A statement about a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statement {
    /// The sender receives the group, from all or some sources.
    Receives(IpAddr),
    /// The sender no longer receives the group.
    Leaves(IpAddr),
    /// The sender is a router that queries the membership.
    Query,
}

/// Returns the membership statements of a packet, one per record; `None` if it is neither IGMP nor
/// MLD, or malformed.
pub fn statements(packet: &IpPacket<'_>) -> Option<Vec<Statement>> {
    if packet.fragment().is_some() {
        return None;
    }
    let message = packet.payload();
    let mut sum = match packet.protocol() {
        IGMP if packet.source().is_ipv4() => Sum::default(),
        // The length field of a packet has 16 bits, so the payload is shorter than 2^16 octets.
        ICMPV6 if packet.source().is_ipv6() => packet.pseudo_sum(message.len() as u16),
        _ => return None,
    };
    sum.add(message);
    if sum.checksum() != 0 {
        return None;
    }
    let v4 = |at: usize| Some(IpAddr::from(*message.get(at..)?.first_chunk::<4>()?));
    let v6 = |at: usize| Some(IpAddr::from(*message.get(at..)?.first_chunk::<16>()?));
    Some(match (packet.protocol(), *message.first()?) {
        (IGMP, 0x11) | (ICMPV6, 130) => vec![Statement::Query],
        (IGMP, 0x12 | 0x16) => vec![Statement::Receives(v4(4)?)],
        (IGMP, 0x17) => vec![Statement::Leaves(v4(4)?)],
        (IGMP, 0x22) => records(message, 4, v4)?,
        (ICMPV6, 131) => vec![Statement::Receives(v6(8)?)],
        (ICMPV6, 132) => vec![Statement::Leaves(v6(8)?)],
        (ICMPV6, 143) => records(message, 16, v6)?,
        _ => return None,
    })
}

/// Parses the records of an IGMPv3 or MLDv2 report, whose addresses have `len` octets.
fn records(message: &[u8], len: usize, address: impl Fn(usize) -> Option<IpAddr>) -> Option<Vec<Statement>> {
    let count = u16::from_be_bytes(*message.get(6..8)?.first_chunk()?);
    let mut statements = Vec::new();
    let mut at = 8;
    for _ in 0..count {
        let [kind, auxiliary, a, b] = *message.get(at..)?.first_chunk()?;
        let sources = usize::from(u16::from_be_bytes([a, b]));
        let group = address(at + 4)?;
        // Record types: 1 and 3 include the listed sources, 2 and 4 exclude them, 5 allows more
        // sources, 6 blocks sources, which does not concern other sources.
        match (kind, sources) {
            (2 | 4, _) | (1 | 3 | 5, 1..) => statements.push(Statement::Receives(group)),
            (1 | 3, 0) => statements.push(Statement::Leaves(group)),
            _ => {}
        }
        at += 4 + len + sources * len + usize::from(auxiliary) * 4;
    }
    Some(statements)
}

/// Builds general queries of IGMPv2 and MLDv1, to be answered within a second. Their source
/// addresses win no querier election (RFC 4541 §2.1.1).
pub fn queries(source: MacAddress) -> [Vec<u8>; 2] {
    let igmp = IgmpMessage::Query { version: 2, group: Ipv4Addr::UNSPECIFIED, max_response: 10 };
    let mut v4 = build::ethernet(MacAddress([0x01, 0, 0x5e, 0, 0, 1]), source, &[], EtherType::IPV4);
    let at = v4.len();
    v4.resize(at + Ipv4Header::ALERT_LEN + 8, 0);
    let header = Ipv4Header {
        source: Ipv4Addr::UNSPECIFIED,
        destination: ALL_HOSTS,
        protocol: IGMP,
        ttl: 1,
        traffic_class: 0xc0,
        payload_len: 8,
    };
    header.emit_alert(&mut v4[at..]).expect("the room is that of header and message");
    igmp.emit(&mut v4[at + Ipv4Header::ALERT_LEN..]).expect("the room is that of header and message");
    // Hop-by-hop options with a router alert (RFC 2711), then the query: type, code, checksum,
    // delay of 1000 ms, no group.
    let mut message = [0; 24];
    message[0] = 130;
    message[4..6].copy_from_slice(&1000_u16.to_be_bytes());
    let mut sum = Sum::pseudo_v6(QUERIER, ALL_NODES, ICMPV6, 24);
    sum.add(&message);
    message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    let mut v6 = build::ethernet(MacAddress([0x33, 0x33, 0, 0, 0, 1]), source, &[], EtherType::IPV6);
    let at = v6.len();
    v6.resize(at + Ipv6Header::LEN, 0);
    let header = Ipv6Header {
        source: QUERIER,
        destination: ALL_NODES,
        next_header: 0,
        hop_limit: 1,
        traffic_class: 0,
        payload_len: 32,
    };
    header.emit(&mut v6[at..]).expect("the room is that of the header");
    v6.extend([ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
    v6.extend(message);
    [v4, v6]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, Network};

    fn packet_of(frame: &[u8], f: impl FnOnce(&IpPacket<'_>)) {
        let Ok(Network::Ip(packet)) = Frame::parse(frame).expect("a frame").network() else { panic!("IP") };
        f(&packet);
    }

    /// Builds a frame with an IGMP or MLD message and its checksum.
    fn frame(is_v4: bool, message: &[u8]) -> Vec<u8> {
        let [v4, v6] = queries(MacAddress([2; 6]));
        let (mut frame, header) = if is_v4 { (v4, 14 + 24) } else { (v6, 14 + 48) };
        frame.truncate(header);
        let mut message = message.to_vec();
        let mut sum =
            if is_v4 { Sum::default() } else { Sum::pseudo_v6(QUERIER, ALL_NODES, ICMPV6, message.len() as u16) };
        sum.add(&message);
        message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        let len = (header - 14 - if is_v4 { 0 } else { 40 } + message.len()) as u16;
        let at = if is_v4 { 16 } else { 18 };
        frame[at..at + 2].copy_from_slice(&len.to_be_bytes());
        if is_v4 {
            frame[24..26].fill(0);
            let mut sum = Sum::default();
            sum.add(&frame[14..header]);
            frame[24..26].copy_from_slice(&sum.checksum().to_be_bytes());
        }
        frame.extend(message);
        frame
    }

    #[test]
    fn own_queries_are_queries() {
        for query in queries(MacAddress([2; 6])) {
            packet_of(&query, |packet| assert_eq!(statements(packet), Some(vec![Statement::Query])));
        }
    }

    #[test]
    fn reports_of_every_version_parse() {
        let (a, b) = ([239, 1, 2, 3], [239, 1, 2, 4]);
        let (receives, leaves) = (|group: [u8; 4]| Statement::Receives(group.into()), Statement::Leaves);
        let simple = |kind| [&[kind, 0, 0, 0][..], &a].concat();
        let mut v3 = vec![0x22, 0, 0, 0, 0, 0, 0, 4];
        v3.extend(
            [&[4, 0, 0, 0][..], &a, &[3, 0, 0, 0], &b, &[1, 1, 0, 1], &b, &[9; 8], &[6, 0, 0, 1], &a, &[9; 4]].concat(),
        );
        let of_v3 = vec![receives(a), leaves(b.into()), receives(b)];
        for (message, expected) in [
            (simple(0x12), vec![receives(a)]),
            (simple(0x16), vec![receives(a)]),
            (simple(0x17), vec![leaves(a.into())]),
            (v3, of_v3),
        ] {
            packet_of(&frame(true, &message), |packet| assert_eq!(statements(packet), Some(expected)));
        }
        let group = [0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        let simple = |kind| [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &group].concat();
        let v2 = [&[143, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0][..], &group].concat();
        for (message, expected) in [
            (simple(131), Statement::Receives(group.into())),
            (simple(132), Statement::Leaves(group.into())),
            (v2, Statement::Receives(group.into())),
        ] {
            packet_of(&frame(false, &message), |packet| assert_eq!(statements(packet), Some(vec![expected])));
        }
    }

    #[test]
    fn truncated_and_damaged_reports_yield_no_statement() {
        let v3 = [&[0x22, 0, 0, 0, 0, 0, 0, 2][..], &[4, 0, 0, 0, 239, 1, 2, 3]].concat();
        packet_of(&frame(true, &v3), |packet| assert_eq!(statements(packet), None, "a record is missing"));
        let mut damaged = frame(true, &[0x16, 0, 0, 0, 239, 1, 2, 3]);
        *damaged.last_mut().expect("octets") ^= 1;
        packet_of(&damaged, |packet| assert_eq!(statements(packet), None));
        for len in 4..24 {
            let cut = [&[131][..], &[0; 23]].concat();
            packet_of(&frame(false, &cut[..len]), |packet| assert_eq!(statements(packet), None));
        }
    }
}
