//! Tests of secured processes whose files change while they run.

use takt_testkit::directory::Directory;

use crate::process::Takt;
use crate::security::done;

/// Starts a process that records its matches, with the enclave of this participant.
fn secured(directory: &Directory, name: &str, line: &str) -> Takt {
    let enclave = directory.path().join("keys/enclaves").join(name).display().to_string();
    let environment = [("TAKT_SECURITY", enclave), ("TAKT_LOG", "debug".to_owned())];
    Takt::start_in(&format!("{line} --interface lo --peer 127.0.0.1 --domain 227"), &environment)
}

/// Reads records of a process until one contains all of these words; returns the records before it.
fn records_until(process: &Takt, words: &[&str]) -> Vec<String> {
    let mut before = Vec::new();
    loop {
        let line = process.error_line().unwrap_or_else(|| panic!("it ended without {words:?}: {before:#?}"));
        if words.iter().all(|word| line.contains(word)) {
            return before;
        }
        before.push(line);
    }
}

#[test]
fn running_pair_stays_matched_with_renewed_files_and_ends_by_a_revocation_list() {
    let directory = Directory::new("security-renewal");
    let keys = directory.text("keys");
    done(&format!("security init {keys} --domain 227"));
    done(&format!("security participant {keys} talker --publish Square"));
    done(&format!("security participant {keys} listener --subscribe Square"));
    let value = r#"{"color":"RED","x":3,"y":-4,"shapesize":5}"#;
    let publish = format!("pub Square {value} --type ShapeType --count 0 --rate 20");
    let talker = secured(&directory, "talker", &publish);
    let listener = secured(&directory, "listener", "sub Square --type ShapeType --json");
    records_until(&listener, &["1 writers"]);
    assert!(listener.line().is_some_and(|line| line.contains("RED")));

    done(&format!("security participant {keys} talker --renew"));
    let before = records_until(&listener, &["CN=talker", "uses another certificate"]);
    assert!(before.iter().all(|line| !line.contains("writers")), "the match stays: {before:#?}");
    listener.new_lines();
    assert!(listener.line().is_some_and(|line| line.contains("RED")), "samples go on");

    done(&format!("security revoke {keys} talker"));
    records_until(&listener, &["CN=talker", "revoked"]);
    records_until(&talker, &["not applied", "CN=talker", "revoked"]);

    done(&format!("security participant {keys} talker --renew"));
    records_until(&listener, &["1 writers"]);
    listener.new_lines();
    assert!(listener.line().is_some_and(|line| line.contains("RED")), "samples come again");
    for process in [talker, listener] {
        process.terminate();
        process.finish();
    }
}
