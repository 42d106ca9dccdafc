//! SIGTERM and SIGINT end commands that would run for hours, or that wait for an answer.

use crate::process::Takt;
use std::os::unix::net::UnixListener;
use takt_testkit::{not_run, require};

/// Asserts that each signal ends the command, and that it reports no figures.
fn is_ended_by_signals(line: &str) {
    for (signal, expected) in [("TERM", 143), ("INT", 130)] {
        let takt = Takt::start(line);
        takt.await_signal_handler();
        takt.signal(signal);
        let (output, errors, code) = takt.ending();
        assert_eq!((output.as_str(), code), ("", Some(expected)), "{line}: {errors}");
    }
}

#[test]
fn measurements_within_a_process_are_ended_by_signals() {
    is_ended_by_signals("perf topics --domain 218 --topics 10000");
    is_ended_by_signals("perf topics --domain 218 --topics 1 --samples 2000000000");
    is_ended_by_signals("perf within --domain 218 --samples 2000000000");
}

#[test]
fn comparison_is_ended_by_signals_while_its_agents_measure() {
    is_ended_by_signals("perf compare --block --samples 2000000000 --domain 100");
}

#[test]
fn comparison_between_namespaces_is_ended_by_signals() {
    if let Err(why) = require::network_namespaces() {
        return not_run(why);
    }
    is_ended_by_signals("perf transports --only trips --columns raw-udp --samples 2000000000");
}

#[test]
fn doctor_is_ended_by_signals() {
    is_ended_by_signals("doctor --interface lo --wait 100000");
}

#[test]
fn query_to_a_controller_that_does_not_answer_is_ended_by_signals() {
    let path = std::env::temp_dir().join(format!("takt-it-{}-silent.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    for (signal, expected) in [("TERM", 143), ("INT", 130)] {
        let takt = Takt::start(&format!("sdn status --control {}", path.display()));
        let connection = listener.accept().unwrap();
        takt.signal(signal);
        let (output, errors, code) = takt.ending();
        assert_eq!((output.as_str(), code), ("", Some(expected)), "{errors}");
        drop(connection);
    }
    std::fs::remove_file(&path).unwrap();
}

/// SIGSTOP suspends the reader, which stays matched and acknowledges nothing. Samples that a later
/// reader receives were written after that.
#[test]
fn publisher_is_ended_by_a_signal_while_its_reader_does_not_acknowledge() {
    const AT: &str = "--interface lo --peer 127.0.0.1 --domain 219";
    let reader = Takt::start(&format!("sub Square --type ShapeType --reliable {AT}"));
    reader.await_complaint("takt: reading");
    let value = r#"{"color":"RED"}"#;
    let publisher = Takt::start(&format!("pub Square {value} --type ShapeType --count 0 --rate 50 --json {AT}"));
    assert!(reader.line().is_some());
    reader.signal("STOP");
    let later = Takt::start(&format!("sub Square --type ShapeType --count 1 {AT}"));
    assert!(later.line().is_some());
    publisher.terminate();
    let (output, errors, code) = publisher.ending();
    reader.signal("CONT");
    assert_eq!(code, Some(143), "{output} {errors}");
    assert!(output.contains("\"acknowledged\":false"), "{output} {errors}");
}
