//! Replay of the committed corpus of the fuzz target `discovery_interceptor`. `TAKT_WRITE_CORPUS=1`
//! writes the corpus from exchanges of two engines.

use std::fs;
use std::path::PathBuf;

use takt_sdn::discovery::Config;

use crate::discovery_network::{Network, OFFER, REQUEST};

#[path = "../../../../../lab/fuzz/src/discovery_interceptor.rs"]
mod discovery_interceptor;

/// Marks a step that contains a frame.
const IS_FRAME: u8 = 0x80;

fn directory() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "lab", "fuzz", "corpus", "discovery_interceptor"].iter().collect()
}

/// Returns the frames of an exchange as a script; verdicts of the given kinds follow the match.
fn script(of_writer: &str, verdicts: &[u8]) -> Vec<u8> {
    let mut network = Network::new(2, 1, Config::default());
    network.writer(0, "Topic", of_writer);
    network.reader(1, "Topic", REQUEST);
    assert!(network.run_until(10_000, |network| network.interceptor.pairs().next().is_some()), "the pair matches");
    let found = network.seen.len();
    network.run(1_000);
    let mut script = Vec::new();
    let mut step = |head: u8, octets: &[u8]| {
        script.push(head);
        script.extend_from_slice(&(octets.len() as u16).to_le_bytes());
        script.extend_from_slice(octets);
    };
    // The announcements, and the frames after the match.
    let first = found.saturating_sub(30);
    let announcements = (0..first).filter(|index| network.seen[*index].1.len() > 200).take(4);
    let steps: Vec<usize> = announcements.chain(first..network.seen.len().min(found + 20)).collect();
    for index in steps {
        let (node, frame) = &network.seen[index];
        step(IS_FRAME | *node as u8, frame);
        if index == found {
            verdicts.iter().for_each(|kind| step(kind << 1, b"full"));
        }
    }
    script
}

fn scripts() -> Vec<(&'static str, Vec<u8>)> {
    let long = format!("{OFFER};{}", "x".repeat(3_000));
    vec![
        ("released", script(OFFER, &[1])),
        ("refused-and-released", script(OFFER, &[2, 1, 2, 1])),
        ("fragments", script(&long, &[2, 3])),
        ("no-contract", script("", &[])),
    ]
}

#[test]
fn committed_discovery_corpus_matches_the_exchanges_and_replays_without_panic() {
    let write = std::env::var_os("TAKT_WRITE_CORPUS").is_some();
    for (name, octets) in scripts() {
        if write {
            fs::create_dir_all(directory()).expect("the corpus can be written");
            fs::write(directory().join(name), &octets).expect("the corpus can be written");
        }
        discovery_interceptor::run(&octets);
    }
    let mut count = 0;
    for entry in fs::read_dir(directory()).expect("the corpus is committed") {
        let path = entry.expect("the corpus can be read").path();
        discovery_interceptor::run(&fs::read(path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= scripts().len());
}

#[test]
fn damaged_discovery_scripts_replay_without_panic() {
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    let mut roll = move |sides: usize| {
        dice ^= dice >> 12;
        dice ^= dice << 25;
        dice ^= dice >> 27;
        (dice >> 11) as usize % sides
    };
    let scripts = scripts();
    for _ in 0..1_000 {
        let (_, mut script) = scripts[roll(scripts.len())].clone();
        for _ in 0..1 + roll(12) {
            let at = roll(script.len());
            script[at] ^= 1 << roll(8);
        }
        discovery_interceptor::run(&script);
    }
}
