//! The committed corpus of the fuzz target `idl`, replayed.

use std::fs;
use std::path::PathBuf;

#[path = "../../../../fuzz/src/idl.rs"]
mod idl;

#[test]
fn accepted_texts_are_printed_and_read_back_as_the_same_types() {
    let directory: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "fuzz", "corpus", "idl"].iter().collect();
    let mut count = 0;
    for entry in fs::read_dir(directory).expect("the corpus is committed") {
        let path = entry.expect("the corpus can be read").path();
        idl::run(&fs::read(path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count >= 7, "{count} inputs");
}
