//! Encoded messages, read by tshark's OpenFlow dissectors: a capture of every sample, and the
//! fields that tshark prints.
//!
//! The tests use 1.3 and 1.4 only. The dissector of 1.0 in tshark 4.0 leaves most messages
//! undissected and reads lists of actions beyond their end. The dissector of 1.5 reports every
//! match as malformed.

use std::fs;
use std::process::Command;

use takt_openflow::multipart::ReplyBody;
use takt_openflow::{Message, Version};
use takt_testkit::{not_run, require};

use crate::samples::{XID, usual};

/// Link type "exported PDU": the name of a dissector, followed by its data.
const EXPORTED_PDU: u32 = 252;
/// Tag of a dissector's name.
const DISSECTOR_NAME: u16 = 12;

/// Versions and the names of their dissectors.
const DISSECTORS: [(Version, &str); 2] = [(Version::V1_3, "openflow_v4"), (Version::V1_4, "openflow_v5")];

/// INTEROP(tshark 4.0.17): shows bundles of 1.3 as the octets of an experimenter message. It
/// reports queue counters and queue descriptions of 1.4 as malformed, although os-ken's vectors and
/// Open vSwitch have the same form.
fn is_unknown_to_tshark(version: Version, message: &Message) -> bool {
    match message {
        Message::BundleControl(_) | Message::BundleAdd(_) => version == Version::V1_3,
        Message::MultipartReply(reply) => {
            version == Version::V1_4 && matches!(reply.body, ReplyBody::Queue(_) | ReplyBody::QueueDesc(_))
        }
        _ => false,
    }
}

/// Returns a capture file of messages for one dissector.
fn capture(dissector: &str, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 2 << 16 | 4, 0, 0, 0x4_0000, EXPORTED_PDU] {
        file.extend(word.to_be_bytes());
    }
    let name = dissector.as_bytes();
    let padded = name.len().next_multiple_of(4);
    for octets in messages {
        let mut packet = [DISSECTOR_NAME, u16::try_from(padded).expect("short")].map(u16::to_be_bytes).concat();
        packet.extend(name);
        packet.resize(4 + padded, 0);
        packet.extend([0; 4]);
        packet.extend(octets);
        let len = u32::try_from(packet.len()).expect("short");
        file.extend([0, 0, len, len].map(u32::to_be_bytes).concat());
        file.extend(packet);
    }
    file
}

/// Returns the lines that tshark prints for a capture.
fn tshark(path: &std::path::Path, arguments: &[&str]) -> Vec<String> {
    let output = Command::new("tshark").arg("-r").arg(path).args(arguments).output().expect("tshark is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn tshark_reads_every_message_and_its_fields() {
    if let Err(why) = require::program("tshark") {
        return not_run(why);
    }
    let directory = std::env::temp_dir().join(format!("takt-openflow-tshark-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("the directory for temporary files can be written");
    let mut wrong = Vec::new();
    for (version, prefix) in DISSECTORS {
        let messages = usual(version);
        let octets: Vec<Vec<u8>> =
            messages.iter().map(|message| message.encode(version, XID).expect("samples can be encoded")).collect();
        let path = directory.join(format!("{}.pcap", version.octet()));
        fs::write(&path, capture(prefix, &octets)).expect("the capture can be written");
        let fields = ["type", "xid", "flowmod.priority"].map(|field| format!("{prefix}.{field}"));
        let mut arguments = vec!["-T", "fields", "-E", "occurrence=f"];
        for field in [fields[0].as_str(), &fields[1], &fields[2], "_ws.malformed", "_ws.expert.message"] {
            arguments.extend(["-e", field]);
        }
        let lines = tshark(&path, &arguments);
        assert_eq!(lines.len(), messages.len(), "packets of {version}");
        for ((message, octets), line) in messages.iter().zip(&octets).zip(&lines) {
            let mut columns = line.split('\t').map(str::to_owned);
            let mut column = || columns.next().unwrap_or_default();
            let (kind, xid, priority, malformed, expert) = (column(), column(), column(), column(), column());
            let is_flow_mod = matches!(message, Message::FlowMod(_));
            let is_right = kind == octets[1].to_string()
                && (xid == XID.to_string() || xid == format!("{XID:#010x}"))
                && (!is_flow_mod || priority == "200")
                && malformed.is_empty();
            if (!is_right || !expert.is_empty()) && !is_unknown_to_tshark(version, message) {
                wrong.push(format!("{version}: {line:?} of {message:?}"));
            }
        }
    }
    fs::remove_dir_all(&directory).expect("the test created the directory");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
