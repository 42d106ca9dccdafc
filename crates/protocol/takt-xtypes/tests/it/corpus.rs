//! Replay of the committed corpora of the fuzz targets `xcdr`, `types` and `sql`.

use std::fs;
use std::path::PathBuf;

#[path = "../../../../../lab/fuzz/src/sql.rs"]
mod sql;
#[path = "../../../../../lab/fuzz/src/types.rs"]
mod types;
#[path = "../../../../../lab/fuzz/src/xcdr.rs"]
mod xcdr;

fn replay(target: &str, run: fn(&[u8])) -> usize {
    let directory: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "lab", "fuzz", "corpus", target].iter().collect();
    let mut count = 0;
    for entry in fs::read_dir(directory).expect("the corpus is in the repository") {
        let path = entry.expect("the corpus can be read").path();
        run(&fs::read(path).expect("the corpus can be read"));
        count += 1;
    }
    count
}

#[test]
fn xcdr_corpus_round_trips() {
    let count = replay("xcdr", xcdr::run);
    assert!(count >= 60, "{count} inputs");
}

#[test]
fn types_corpus_round_trips() {
    let count = replay("types", types::run);
    assert!(count >= 25, "{count} inputs");
}

#[test]
fn sql_corpus_filters_agree_on_payloads_and_data() {
    let count = replay("sql", sql::run);
    assert!(count >= 30, "{count} inputs");
}

#[test]
fn sql_dictionary_contains_every_keyword() {
    let dictionary = include_str!("../../../../../lab/fuzz/sql.dict");
    for word in "AND OR NOT BETWEEN LIKE MATCH TRUE FALSE ORDER BY SELECT FROM WHERE AS INNER NATURAL JOIN".split(' ') {
        assert!(dictionary.contains(&format!("{word} ")) || dictionary.contains(&format!("{word}\"")), "{word}");
    }
}
