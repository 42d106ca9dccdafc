//! Decoding of complete, truncated and damaged samples: complete ones round-trip, prefixes are
//! malformed, and no input causes a panic or excessive memory.

use takt_openflow::hello::Hello;
use takt_openflow::{Message, Version};
use takt_testkit::Random;
use takt_testkit::memory::peak_octets;

use crate::samples::{XID, all};

/// Maximum octets of memory for each octet on the wire, including the growth of vectors.
const GROWTH_MAX: usize = 16;

/// Decodes octets. A decoded message must round-trip.
fn read(version: Version, octets: &[u8]) -> bool {
    let Ok((xid, message)) = Message::decode(version, octets) else { return false };
    let written = message.encode(version, xid).expect("a decoded message can be encoded in its version");
    assert_eq!(written.len(), octets.len(), "{message:?}");
    assert_eq!(Message::decode(version, &written), Ok((xid, message)));
    true
}

fn samples() -> Vec<(Version, Vec<u8>)> {
    let encode = |version: Version| {
        let octets =
            move |message: Message| message.encode(version, XID).unwrap_or_else(|e| panic!("{e}: {message:?}"));
        all(version).into_iter().map(move |message| (version, octets(message)))
    };
    Version::ALL.into_iter().flat_map(encode).collect()
}

#[test]
fn samples_round_trip() {
    for version in Version::ALL {
        for message in all(version) {
            let octets = message.encode(version, XID).unwrap_or_else(|error| panic!("{error}: {message:?}"));
            assert_eq!(Message::decode(version, &octets), Ok((XID, message)));
        }
    }
}

#[test]
fn prefixes_are_malformed_and_shortened_lengths_cause_no_panic() {
    for (version, octets) in samples() {
        for len in 0..octets.len() {
            let mut cut = octets[..len].to_vec();
            assert!(Message::decode(version, &cut).is_err());
            if let [_, _, a, b, ..] = cut.as_mut_slice() {
                [*a, *b] = u16::try_from(len).expect("samples are short").to_be_bytes();
            }
            read(version, &cut);
        }
    }
}

#[test]
fn single_bit_errors_cause_no_panic() {
    for (version, mut octets) in samples() {
        for at in 0..octets.len().min(1500) * 8 {
            octets[at / 8] ^= 1 << (at % 8);
            read(version, &octets);
            octets[at / 8] ^= 1 << (at % 8);
        }
    }
}

#[test]
fn random_damage_and_random_octets_cause_no_panic() {
    let mut random = Random(1);
    let samples = samples();
    for _ in 0..60_000 {
        let (version, octets) = &samples[random.below(samples.len())];
        let mut octets = octets.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(octets.len());
            match random.below(5) {
                0 => octets[at] = random.next().to_le_bytes()[0],
                1 => octets[at] = [0, 1, 7, 8, 0x7f, 0xff][random.below(6)],
                2 => octets.insert(at, random.next().to_le_bytes()[0]),
                3 if octets.len() > 9 => {
                    octets.remove(at);
                }
                _ => {
                    let copied = octets[at / 2..at].to_vec();
                    octets.splice(at..at, copied);
                }
            }
        }
        let len = u16::try_from(octets.len()).expect("samples are short");
        octets[2..4].copy_from_slice(&len.to_be_bytes());
        read(*version, &octets);
        let _ = Hello::decode_body(&octets[8..]);
    }
}

#[test]
fn memory_of_a_message_is_bounded_by_its_length() {
    // The densest lists have the shortest entries on the wire with the largest size in memory.
    let repeat = |entry: &[u8], count| entry.repeat(count);
    let dense = [
        (14u8, 48usize, repeat(&[0, 5, 0, 8, 0, 0, 0, 0], 8000)),
        (14, 48, [&[0, 4, 0xf0, 0x08, 0, 0, 0, 0][..], &repeat(&[0, 24, 0, 8, 0, 0, 0, 0], 7680)].concat()),
        (15, 16, repeat(&[0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 4000)),
    ];
    let flow = takt_openflow::flow::FlowMod::default();
    let group = takt_openflow::group::GroupMod::add(1, takt_openflow::group::GroupType::All, vec![]);
    for (kind, header, list) in dense {
        let message = if kind == 14 { Message::FlowMod(flow.clone()) } else { Message::GroupMod(group.clone()) };
        let mut octets = message.encode(Version::V1_3, 1).expect("the version can encode it");
        assert!(octets.len() <= header + 8);
        octets.extend(list);
        let len = u16::try_from(octets.len()).expect("below 64 KiB");
        octets[2..4].copy_from_slice(&len.to_be_bytes());
        let decode = || assert!(Message::decode(Version::V1_3, &octets).is_ok(), "kind {kind}");
        let peak = peak_octets(decode);
        println!("{peak} octets of memory for {} on the wire", octets.len());
        assert!(peak <= GROWTH_MAX * octets.len(), "{peak} octets of memory for {}", octets.len());
    }
}
