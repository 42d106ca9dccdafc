//! Help, versions, wrong usage.

use crate::process::Takt;

#[test]
fn it_says_its_version() {
    let (text, status) = Takt::start("--version").finish();
    assert!(status.success());
    assert_eq!(text, format!("takt {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_has_examples() {
    let (text, status) = Takt::start("perf --help").finish();
    assert!(status.success());
    assert!(text.contains("Examples:") && text.contains("takt perf pong"), "{text}");
}

#[test]
fn wrong_usage_is_exit_code_2_and_says_what_is_wrong() {
    for (line, hint) in [
        ("perf ping --size 3", "at least 16 bytes"),
        ("perf ping --spin --block", "cannot be used with"),
        ("perf ping --interface nowhere0", "nowhere0"),
        ("perf ping --transport raw-udp --size 70000", "at most 65507"),
        ("perf agent dance", "no role dance"),
        ("perf compare --peer nonsense", "NAME=PROGRAM"),
        ("perf compare --runtime shared --spin --fifo 1", "never yields"),
        ("perf ping --runtime shared --spin --fifo 1 --cpu 0", "never yields"),
    ] {
        let (text, code) = Takt::start(line).complaint();
        assert_eq!(code, Some(2), "{line}: {text}");
        assert!(text.contains(hint), "{line}: {text}");
    }
}

#[test]
fn a_core_that_is_not_there_is_a_failure_with_its_cause() {
    let (text, code) = Takt::start("perf ping --cpu 1023").complaint();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("bind to core 1023"), "{text}");
}

#[test]
fn a_signal_while_it_waits_is_an_exit_code_of_its_own() {
    let ping = Takt::start("perf ping --domain 190");
    ping.await_complaint("waiting for");
    ping.terminate();
    let (text, code) = ping.complaint();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("stopped by a signal"), "{text}");
}
