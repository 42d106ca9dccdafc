//! Incompatible QoS: the endpoints do not match, both sides report it, and Takt gives the reason.

use takt_interop::peer::{Durability, Endpoint, Kind, Peer, Representation};
use takt_interop::programs::Program;

use crate::scene::Scene;

/// Policy ids of DDS.
const DURABILITY: i64 = 2;
const DEADLINE: i64 = 4;
const OWNERSHIP: i64 = 6;
const LIVELINESS: i64 = 8;
const RELIABILITY: i64 = 11;
const DATA_REPRESENTATION: i64 = 23;

/// A writer that offers less than a reader requests.
struct Mismatch {
    policy: i64,
    writer: Endpoint,
    reader: Endpoint,
    /// Words of Takt's reason: policy, offered and requested value.
    words: [&'static str; 3],
}

fn mismatches(topic: &str) -> Vec<Mismatch> {
    let endpoint = |id: &str, n| Endpoint::new(format!("{topic}{n}-{id}"), format!("{topic}{n}"), Kind::Key);
    let pair = |n| (endpoint("w", n), endpoint("r", n));
    let (writer, reader) = pair(0);
    let reliability = Mismatch {
        policy: RELIABILITY,
        writer: Endpoint { reliable: false, ..writer },
        reader,
        words: ["RELIABILITY", "BEST_EFFORT", "RELIABLE"],
    };
    let (writer, reader) = pair(1);
    let durability = Mismatch {
        policy: DURABILITY,
        writer,
        reader: Endpoint { durability: Durability::TransientLocal, ..reader },
        words: ["DURABILITY", "VOLATILE", "TRANSIENT_LOCAL"],
    };
    let (writer, reader) = pair(2);
    let representation = Mismatch {
        policy: DATA_REPRESENTATION,
        writer: Endpoint { representation: Representation::Xcdr2, ..writer },
        reader,
        words: ["DATAREPRESENTATION", "XCDR2", "XCDR1"],
    };
    let (writer, reader) = pair(3);
    let deadline = Mismatch {
        policy: DEADLINE,
        writer: Endpoint { deadline_ms: 60_000, ..writer },
        reader: Endpoint { deadline_ms: 30_000, ..reader },
        words: ["DEADLINE", "60", "30"],
    };
    let (writer, reader) = pair(4);
    let ownership = Mismatch {
        policy: OWNERSHIP,
        writer: Endpoint { strength: Some(7), ..writer },
        reader,
        words: ["OWNERSHIP", "EXCLUSIVE", "SHARED"],
    };
    let (writer, reader) = pair(5);
    let liveliness = Mismatch {
        policy: LIVELINESS,
        writer: Endpoint { lease_ms: 60_000, ..writer },
        reader: Endpoint { lease_ms: 30_000, ..reader },
        words: ["LIVELINESS", "60", "30"],
    };
    vec![reliability, durability, representation, deadline, ownership, liveliness]
}

/// Creates both endpoints and checks the report of Takt. Returns the policy number that the peer
/// reports.
fn refused(takt: &mut Peer, peer: &mut Peer, mismatch: &Mismatch, takt_writes: bool) -> i64 {
    let Mismatch { policy, writer, reader, words } = mismatch;
    let (own, other) = if takt_writes { (writer, reader) } else { (reader, writer) };
    match takt_writes {
        true => peer.reader(reader).and_then(|()| takt.writer(writer)),
        false => peer.writer(writer).and_then(|()| takt.reader(reader)),
    }
    .expect("both are created");
    let (reported, reasons) = takt.incompatible(&own.id).expect("Takt refuses");
    assert_eq!(reported, *policy);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(words.iter().all(|word| reasons[0].contains(word)), "{words:?} in {reasons:?}");
    let (reported, _) = peer.incompatible(&other.id).expect("the peer refuses");
    reported
}

#[test]
fn both_sides_report_incompatible_qos_and_takt_gives_the_reason() {
    for peer in [Program::Takt, Program::Cyclone10, Program::Cyclone11, Program::FastDds2, Program::FastDds3] {
        let Some(mut scene) = Scene::new(Program::Takt, peer) else { return };
        for takt_writes in [true, false] {
            for mismatch in mismatches(if takt_writes { "forth" } else { "back" }) {
                let representation = mismatch.policy == DATA_REPRESENTATION;
                // INTEROP(Fast DDS 2.9.1): neither announces nor checks DATA_REPRESENTATION.
                if representation && peer == Program::FastDds2 {
                    continue;
                }
                let reported = refused(&mut scene.left, &mut scene.right, &mismatch, takt_writes);
                // INTEROP(CycloneDDS 0.10.2, 11.0.1): numbers DATA_REPRESENTATION as 25.
                let renumbered = representation && matches!(peer, Program::Cyclone10 | Program::Cyclone11);
                assert_eq!(reported, if renumbered { 25 } else { mismatch.policy }, "{peer}, {:?}", mismatch.words);
            }
        }
    }
}

/// INTEROP(Fast DDS 2.9.1): does not announce DATA_REPRESENTATION. Its readers therefore count as
/// XCDR1 readers, whatever their configuration.
#[test]
fn fast_dds_xcdr2_reader_counts_as_xcdr1_reader() {
    let Some(mut scene) = Scene::new(Program::Takt, Program::FastDds2) else { return };
    let xcdr2 = |id: &str| Endpoint { representation: Representation::Xcdr2, ..Endpoint::new(id, "T", Kind::Key) };
    scene.right.reader(&xcdr2("r")).expect("created");
    scene.left.writer(&xcdr2("w")).expect("created");
    let (policy, reasons) = scene.left.incompatible("w").expect("Takt refuses");
    assert_eq!(policy, DATA_REPRESENTATION);
    assert!(reasons[0].contains("requests XCDR1"), "{reasons:?}");
}
