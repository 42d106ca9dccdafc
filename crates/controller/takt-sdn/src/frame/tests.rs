//! Tests of frames: round trips, rewriting, and arbitrary octets.

use std::net::{Ipv4Addr, SocketAddr};

use takt_packet::{UdpChecksum, UdpDatagram};
use takt_testkit::Random;

use super::lldp::{Identifier, LldpFrame};
use super::*;

const TO: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const FROM: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const TAGS: [VlanTag; 2] = [VlanTag { pcp: 7, dei: true, vid: 4095 }, VlanTag { pcp: 3, dei: false, vid: 42 }];

fn address(text: &str) -> SocketAddr {
    text.parse().expect("a valid address")
}

fn udp(tags: &[VlanTag], is_v4: bool, payload: &[u8]) -> Vec<u8> {
    let [source, destination] =
        if is_v4 { ["192.0.2.1:7410", "239.255.0.1:7400"] } else { ["[fd00::1]:7410", "[ff02::1]:7400"] };
    let frame = UdpFrame {
        destination_mac: TO,
        source_mac: FROM,
        tags,
        source: address(source),
        destination: address(destination),
        hop_limit: 9,
        traffic_class: 0xb8,
        payload,
    };
    frame.build().expect("the frame is valid")
}

fn checksum(frame: &[u8]) -> UdpChecksum {
    let (packet, datagram) = Frame::parse(frame).expect("a frame").udp().expect("UDP");
    datagram.checksum(packet.pseudo_sum(packet.payload().len() as u16))
}

/// Inserts octets after the fixed IP header of an untagged frame, and sets the lengths.
fn with_headers(is_v4: bool, octets: &[u8], first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = udp(&[], is_v4, payload);
    let at = 14 + if is_v4 { 20 } else { 40 };
    frame.splice(at..at, octets.iter().copied());
    if is_v4 {
        frame[14] = 0x40 | ((20 + octets.len()) / 4) as u8;
        let len = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&len.to_be_bytes());
        set_header_checksum(&mut frame);
    } else {
        frame[20] = first;
        let len = (frame.len() - 54) as u16;
        frame[18..20].copy_from_slice(&len.to_be_bytes());
    }
    frame
}

fn set_header_checksum(frame: &mut [u8]) {
    let len = usize::from(frame[14] & 0xf) * 4;
    frame[24..26].fill(0);
    let mut sum = takt_packet::Sum::default();
    sum.add(&frame[14..14 + len]);
    let checksum = sum.checksum().to_be_bytes();
    frame[24..26].copy_from_slice(&checksum);
}

#[test]
fn udp_frames_of_both_ip_versions_and_any_tags_round_trip() {
    for is_v4 in [true, false] {
        for tags in [&TAGS[..0], &TAGS[..1], &TAGS] {
            let built = udp(tags, is_v4, b"payload");
            let mut padded = built.clone();
            padded.extend([0xee; 20]);
            let frame = Frame::parse(&padded).expect("a frame");
            assert_eq!((frame.destination(), frame.source(), frame.tags()), (TO, FROM, tags));
            assert_eq!(frame.vlan(), tags.first().map_or(0, |tag| tag.vid));
            let (packet, datagram) = frame.udp().expect("UDP");
            assert_eq!((datagram.source_port(), datagram.destination_port()), (7410, 7400));
            assert_eq!(datagram.payload(), b"payload");
            assert_eq!((packet.hop_limit(), packet.traffic_class(), packet.fragment()), (9, 0xb8, None));
            assert_eq!(packet.bytes().len() + frame.header_len(), built.len(), "without the padding");
            assert_eq!(checksum(&padded), UdpChecksum::Right);
        }
    }
}

#[test]
fn truncated_frame_has_no_udp_datagram() {
    for is_v4 in [true, false] {
        let built = udp(&TAGS, is_v4, b"payload");
        for cut in 0..built.len() {
            assert!(Frame::parse(&built[..cut]).ok().and_then(|frame| frame.udp()).is_none(), "{cut}");
        }
    }
}

#[test]
fn rewritten_payload_has_its_lengths_and_checksums_and_the_rest_stays() {
    let mut random = Random(1);
    for is_v4 in [true, false] {
        for tags in [&TAGS[..0], &TAGS] {
            let old = udp(tags, is_v4, b"the first payload");
            for _ in 0..200 {
                let new: Vec<u8> = (0..random.below(1500)).map(|_| random.next() as u8).collect();
                let frame = Frame::parse(&old).expect("a frame");
                let out = replace_udp_payload(&frame, &new).expect("UDP");
                assert_eq!(out, udp(tags, is_v4, &new), "as built with it");
            }
        }
    }
}

#[test]
fn options_and_extension_headers_survive_a_payload_rewrite() {
    let options = with_headers(true, &[0x94, 4, 0, 0, 1, 1, 1, 0], 0, b"old");
    // Hop-by-hop options, destination options of 16 octets, a fragment header of an unfragmented
    // packet.
    let mut extensions = vec![60, 0, 1, 4, 0, 0, 0, 0];
    extensions.extend([44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    extensions.extend([17, 0, 0, 0, 0, 0, 0, 7]);
    let extensions = with_headers(false, &extensions, 0, b"old");
    for (built, header_len) in [(options, 28), (extensions, 72)] {
        let frame = Frame::parse(&built).expect("a frame");
        let (packet, datagram) = frame.udp().expect("UDP");
        assert_eq!((packet.header_len(), datagram.payload()), (header_len, &b"old"[..]));
        let out = replace_udp_payload(&frame, b"something new").expect("UDP");
        let (packet, datagram) = Frame::parse(&out).expect("a frame").udp().expect("UDP");
        assert_eq!((packet.header_len(), datagram.payload()), (header_len, &b"something new"[..]));
        assert_eq!(checksum(&out), UdpChecksum::Right);
        let at = 14 + if header_len == 28 { 20 } else { 40 };
        assert_eq!(out[at..14 + header_len], built[at..14 + header_len]);
    }
}

#[test]
fn fragments_are_detected_and_never_parsed_as_datagrams() {
    for (word, offset, more) in [(0x2000_u16, 0, true), (0x2001, 8, true), (0x0003, 24, false)] {
        let mut v4 = udp(&[], true, b"part");
        v4[18..20].copy_from_slice(&0x1234_u16.to_be_bytes());
        v4[20..22].copy_from_slice(&word.to_be_bytes());
        set_header_checksum(&mut v4);
        let word = (offset as u16) | u16::from(more);
        let mut header = vec![17, 0];
        header.extend(word.to_be_bytes());
        header.extend(0x1234_u32.to_be_bytes());
        let v6 = with_headers(false, &header, 44, b"part");
        for frame in [v4, v6] {
            let frame = Frame::parse(&frame).expect("a frame");
            let Ok(Network::Ip(packet)) = frame.network() else { panic!("IP") };
            assert_eq!(packet.fragment(), Some(Fragment { identification: 0x1234, offset, more }));
            assert!(packet.is_udp_fragment() && packet.udp().is_none());
            assert_eq!(replace_udp_payload(&frame, b"x"), Err(CannotRewrite::NotUdp));
        }
    }
}

#[test]
fn packets_that_would_be_too_long_are_refused() {
    let old = udp(&[], true, b"x");
    let frame = Frame::parse(&old).expect("a frame");
    assert_eq!(replace_udp_payload(&frame, &vec![0; 65_508]), Err(CannotRewrite::TooLong));
    let longest = replace_udp_payload(&frame, &vec![0; 65_507]).expect("the frame is valid");
    assert_eq!(checksum(&longest), UdpChecksum::Right);
}

#[test]
fn damaged_ipv4_header_is_malformed() {
    let mut frame = udp(&[], true, b"x");
    frame[26] ^= 1;
    assert!(Frame::parse(&frame).expect("a frame").network().is_err());
}

#[test]
fn arp_and_other_frame_types_are_distinguished() {
    let packet = ArpPacket {
        operation: ArpOperation::Request,
        sender: (FROM, Ipv4Addr::new(192, 0, 2, 1)),
        target: (MacAddress::default(), Ipv4Addr::new(192, 0, 2, 2)),
    };
    let built = arp_frame(MacAddress::BROADCAST, FROM, &TAGS[1..], &packet);
    let frame = Frame::parse(&built).expect("a frame");
    assert!(matches!(frame.network(), Ok(Network::Arp(found)) if found == packet));
    // A length field of IEEE 802.3, as the spanning tree protocol uses it.
    let length = [&[1; 12][..], &[0, 38], &[0x42; 38]].concat();
    assert!(matches!(Frame::parse(&length).expect("a frame").network(), Ok(Network::Other)));
}

fn lldp_frame() -> Vec<u8> {
    let built = LldpFrame {
        source: FROM,
        chassis: Identifier { kind: lldp::LOCAL_CHASSIS, value: b"datapath" },
        port: Identifier { kind: lldp::LOCAL_PORT, value: b"\0\0\0\x07" },
        ttl: 120,
        organization: &[([1, 2, 3], 4, b"first"), ([1, 2, 3], 5, b"second")],
    };
    built.build().expect("short")
}

#[test]
fn lldp_round_trips() {
    let built = lldp_frame();
    let mut padded = built.clone();
    padded.extend([0; 30]);
    let Ok(Network::Lldp(unit)) = Frame::parse(&padded).expect("a frame").network() else { panic!("LLDP") };
    assert_eq!((unit.chassis().value, unit.port().value, unit.ttl()), (&b"datapath"[..], &b"\0\0\0\x07"[..], 120));
    assert_eq!(unit.organization([1, 2, 3], 5), Some(&b"second"[..]));
    assert_eq!(unit.organization([1, 2, 4], 5), None);
    // The unit is valid without its end TLV of two octets; a cut within a TLV makes it malformed.
    for cut in 14..built.len() {
        let network = Frame::parse(&built[..cut]).expect("a frame").network();
        let is_boundary = [built.len() - 2, built.len() - 14, built.len() - 14 - 11].contains(&cut);
        assert_eq!(network.is_ok(), is_boundary, "{cut}");
    }
    let long = [0; 600];
    let unit = LldpFrame {
        source: FROM,
        chassis: Identifier { kind: 7, value: &long },
        port: Identifier { kind: 7, value: b"1" },
        ttl: 1,
        organization: &[],
    };
    assert_eq!(unit.build(), None);
}

/// Parses everything in the octets.
fn read_all(octets: &[u8]) {
    let Ok(frame) = Frame::parse(octets) else { return };
    let _ = (frame.vlan(), frame.payload());
    if let Ok(Network::Ip(packet)) = frame.network() {
        assert!(packet.payload().len() + packet.header_len() <= octets.len());
        let _ = packet.is_udp_fragment();
    }
    if let Ok(Network::Lldp(unit)) = frame.network() {
        let _ = unit.organization([1, 2, 3], 4);
    }
    if let Ok(out) = replace_udp_payload(&frame, b"new") {
        let rewritten = Frame::parse(&out).expect("the frame is valid");
        let (packet, datagram) = rewritten.udp().expect("the frame remains UDP");
        assert_eq!(datagram.payload(), b"new");
        assert_eq!(datagram.checksum(packet.pseudo_sum(datagram_len(&datagram))), UdpChecksum::Right);
    }
}

fn datagram_len(datagram: &UdpDatagram<'_>) -> u16 {
    (datagram.payload().len() + 8) as u16
}

#[test]
fn arbitrary_octets_parse_without_panic() {
    let hop = with_headers(false, &[17, 0, 1, 4, 0, 0, 0, 0], 0, b"x");
    let options = with_headers(true, &[1, 1, 1, 0], 0, b"x");
    let samples =
        [udp(&[], true, b"abc"), udp(&TAGS, false, b"abc"), lldp_frame(), hop, options, udp(&TAGS, true, &[0; 64])];
    for sample in &samples {
        for cut in 0..=sample.len() {
            read_all(&sample[..cut]);
        }
        for at in 0..sample.len() * 8 {
            let mut octets = sample.clone();
            octets[at / 8] ^= 1 << (at % 8);
            read_all(&octets);
        }
    }
    let mut random = Random(7);
    for _ in 0..60_000 {
        let mut octets = samples[random.below(samples.len())].clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(octets.len());
            octets[at] = random.next() as u8;
        }
        octets.truncate(octets.len() - random.below(octets.len() / 2));
        // With a valid header checksum, the damage reaches the inner parsers.
        if octets.len() > 74 && octets[12..14] == [8, 0] {
            set_header_checksum(&mut octets);
        }
        read_all(&octets);
    }
}
