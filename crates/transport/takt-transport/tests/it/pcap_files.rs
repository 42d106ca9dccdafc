//! Tests of capture files: datagrams of both directions, within the size limit.

use std::path::PathBuf;

use takt_transport::udp::UdpConfig;
use takt_transport::{FlowId, FlowSpec, PcapTap, Transport};

use super::{loopback, open, receive, send, user_locator};

struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("takt-{}-{name}.pcap", std::process::id())))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("the file was written");
    }
}

/// Returns source port, destination port and payload of each record.
fn records(file: &TemporaryFile) -> Vec<(u16, u16, Vec<u8>)> {
    let bytes = std::fs::read(&file.0).expect("the file was written");
    let (header, mut rest) = bytes.split_at(24);
    assert_eq!(header[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    assert_eq!(header[20..], 101u32.to_le_bytes());
    let mut records = Vec::new();
    while !rest.is_empty() {
        let u32_at = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("4"));
        let len = u32_at(8) as usize;
        assert_eq!(u32_at(12) as usize, len);
        let packet = &rest[16..16 + len];
        rest = &rest[16 + len..];
        let ip_len = if packet[0] >> 4 == 4 { 20 } else { 40 };
        let udp = &packet[ip_len..];
        let u16_at = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
        assert_eq!(usize::from(u16_at(4)), udp.len());
        records.push((u16_at(0), u16_at(2), udp[8..].to_vec()));
    }
    records
}

#[test]
fn both_directions_are_recorded() {
    for ipv6 in [false, true] {
        let config = UdpConfig { ipv4: !ipv6, ipv6, ..loopback(80) };
        let file = TemporaryFile::new(if ipv6 { "v6" } else { "v4" });
        let mut a = PcapTap::create(open(&config), &file.0, 1 << 20).expect("a file");
        let mut b = open(&config);
        let (at_a, at_b) = (user_locator(&a), user_locator(&b));
        let spec = FlowSpec { own_port: true, transport_priority: 0 };
        let (flow, own) = a.open_flow(&spec).expect("a port is free");
        send(&mut a, b"ping", FlowId::DEFAULT, &[at_b, at_b]);
        send(&mut a, b"own port", flow, &[at_b]);
        send(&mut b, &[9; 65_507], FlowId::DEFAULT, &[at_a]);
        assert_eq!(receive(&mut a).0.len(), 65_507);
        assert_eq!(a.observer().recorded(), 4);
        drop(a);
        let (a, b, own) = (at_a.port as u16, at_b.port as u16, own[0].port as u16);
        let ping = (a, b, b"ping".to_vec());
        let expected = [ping.clone(), ping, (own, b, b"own port".to_vec()), (b, a, vec![9; 65_507])];
        assert!(records(&file) == expected);
    }
}

#[test]
fn idle_transport_has_written_everything() {
    let file = TemporaryFile::new("idle");
    let mut a = PcapTap::create(open(&loopback(81)), &file.0, 1 << 20).expect("a file");
    let to = user_locator(&a);
    send(&mut a, b"to myself", FlowId::DEFAULT, &[to]);
    receive(&mut a);
    assert!(super::drain(&mut a).is_empty());
    assert_eq!(records(&file).len(), 2);
}

#[test]
fn size_limit_is_kept() {
    let file = TemporaryFile::new("limit");
    let mut a = PcapTap::create(open(&loopback(82)), &file.0, 10_000).expect("a file");
    let mut b = open(&loopback(82));
    let to = user_locator(&b);
    for _ in 0..100 {
        send(&mut a, &[1; 1000], FlowId::DEFAULT, &[to]);
        assert_eq!(receive(&mut b).0.len(), 1000, "the transport is unaffected");
    }
    let (recorded, omitted) = (a.observer().recorded(), a.observer().omitted());
    assert_eq!((recorded, omitted), (9, 91));
    assert!(a.observer().failure().is_none());
    drop(a);
    assert_eq!(records(&file).len(), 9);
}

#[test]
fn only_regular_files_are_accepted() {
    let error = PcapTap::create(open(&loopback(83)), "/dev/null".as_ref(), 1000);
    assert!(error.expect_err("a device").to_string().contains("/dev/null"));
    let error = PcapTap::create(open(&loopback(83)), "/no/such/place".as_ref(), 1000);
    assert!(error.is_err());
}
