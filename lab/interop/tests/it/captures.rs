//! Tests of captures: tshark recognizes RTPS messages on any port, and a capture is complete.

use std::net::Ipv4Addr;

use takt_interop::capture::{Capture, analyze_file};

use crate::scene::{hosts, possible};

/// Ports in the ephemeral range of Linux that tshark assigns to other protocols.
const PORTS_OF_OTHERS: [u16; 7] = [34962, 34980, 37008, 41170, 44818, 47000, 54328];
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// Returns an RTPS message with one HEARTBEAT.
fn heartbeat() -> Vec<u8> {
    let mut message = b"RTPS\x02\x05\x01\xfa".to_vec();
    message.extend([7; 12]);
    message.extend([0x07, 1, 28, 0, 0, 0, 0, 7, 0, 0, 1, 2]);
    for word in [0_u32, 1, 0, 5, 3] {
        message.extend(word.to_le_bytes());
    }
    message
}

/// Returns an Ethernet frame with a UDP datagram from [`LEFT`], without checksums.
fn frame(source_port: u16, payload: &[u8]) -> Vec<u8> {
    let udp_len = 8 + payload.len() as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend([0x45, 0]);
    frame.extend((20 + udp_len).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend(LEFT.octets());
    frame.extend([10, 77, 0, 2]);
    for word in [source_port, 7411, udp_len, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

/// Returns a file in libpcap format.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [1, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

#[test]
fn rtps_messages_are_recognized_on_ports_of_other_protocols() {
    let frames = PORTS_OF_OTHERS.map(|port| frame(port, &heartbeat()));
    let path = std::env::temp_dir().join(format!("takt-ports-{}.pcap", std::process::id()));
    std::fs::write(&path, pcap(&frames)).expect("written");
    let verdict = analyze_file(&path).expect("tshark reads the capture");
    std::fs::remove_file(&path).expect("it was written");
    assert_eq!(verdict.errors, []);
    assert_eq!(verdict.rtps[&LEFT], PORTS_OF_OTHERS.len() as u64);
}

#[test]
fn capture_contains_datagram_sent_just_before_its_end() {
    let Some(network) = hosts() else { return };
    for _ in 0..3 {
        let Some(capture) = possible(Capture::start(&network)) else { return };
        let message: String = heartbeat().iter().map(|octet| format!("\\x{octet:02x}")).collect();
        let send = format!("printf '{message}' > /dev/udp/{}/7411", network.right.address());
        let mut command = network.left.command("bash".as_ref());
        assert!(command.args(["-c", &send]).status().expect("bash runs").success());
        let verdict = capture.analyze().expect("tshark reads the capture");
        assert_eq!(verdict.errors, []);
        assert_eq!(verdict.rtps[&network.left.address()], 1);
    }
}
