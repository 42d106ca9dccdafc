//! Replay of the committed corpus of the fuzz target `openflow`. `TAKT_WRITE_CORPUS=1` writes the
//! corpus from the samples.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use takt_openflow::Version;

use crate::samples::{XID, all};

#[path = "../../../../../lab/fuzz/src/openflow.rs"]
mod openflow;

fn directory() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "lab", "fuzz", "corpus", "openflow"].iter().collect()
}

/// Returns name and octets of each sample.
fn samples() -> BTreeSet<(String, Vec<u8>)> {
    let encode = |version: Version| {
        let octets = move |(index, message): (usize, takt_openflow::Message)| {
            let octets = message.encode(version, XID).expect("samples can be encoded in their version");
            (format!("{version}-{index:03}"), octets)
        };
        all(version).into_iter().enumerate().map(octets)
    };
    Version::ALL.into_iter().flat_map(encode).collect()
}

#[test]
fn committed_corpus_equals_the_samples_and_causes_no_panic() {
    let write = std::env::var_os("TAKT_WRITE_CORPUS").is_some();
    for (name, octets) in samples() {
        if write {
            fs::write(directory().join(&name), &octets).expect("the corpus can be written");
        }
        let committed = fs::read(directory().join(&name)).unwrap_or_default();
        assert_eq!(committed, octets, "{name}: TAKT_WRITE_CORPUS=1 writes the corpus");
    }
    let mut count = 0;
    for entry in fs::read_dir(directory()).expect("the corpus is committed") {
        let path = entry.expect("the corpus can be read").path();
        openflow::run(&fs::read(path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= samples().len());
}
