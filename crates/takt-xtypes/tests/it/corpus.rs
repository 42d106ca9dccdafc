//! The committed corpus of the fuzz target `xcdr`, replayed.

use std::fs;
use std::path::PathBuf;

#[path = "../../../../fuzz/src/xcdr.rs"]
mod xcdr;

#[test]
fn what_was_read_can_be_written_and_read_again() {
    let directory: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "fuzz", "corpus", "xcdr"].iter().collect();
    let mut count = 0;
    for entry in fs::read_dir(directory).expect("the corpus is committed") {
        let path = entry.expect("the corpus can be read").path();
        xcdr::run(&fs::read(path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= 60, "{count} inputs");
}
