//! Replay of the committed corpus of the fuzz target `idl`.

use std::fs;
use std::path::PathBuf;

#[path = "../../../../../lab/fuzz/src/idl.rs"]
mod idl;

#[test]
fn accepted_texts_round_trip_through_printing() {
    let directory: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "lab", "fuzz", "corpus", "idl"].iter().collect();
    let mut count = 0;
    for entry in fs::read_dir(directory).expect("the corpus is in the repository") {
        let path = entry.expect("the corpus can be read").path();
        idl::run(&fs::read(path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= 7, "{count} inputs");
}
