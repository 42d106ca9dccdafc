//! Completions that a shell requests while a line is typed, by the protocol of bash.

use crate::process::Takt;
use std::process::Command;
use takt_testkit::domain::domain;

/// Returns the completions of the last of these words.
fn complete(words: &[&str]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takt"));
    let last = (words.len() - 1).to_string();
    command.args(["--", "takt"]).args(&words[1..]).env("TAKT_COMPLETE", "bash");
    // The variables of the script that the command prints for bash.
    command.envs([("_CLAP_COMPLETE_INDEX", last.as_str()), ("_CLAP_COMPLETE_COMP_TYPE", "9"), ("_CLAP_IFS", "\n")]);
    let output = command.output().expect("takt can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "a message would disturb the line");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn topics_of_the_domain_of_the_line_are_completed() {
    let domain = domain();
    let options = format!("--interface lo --peer 127.0.0.1 --domain {domain}");
    let writer = Takt::start(&format!("pub Square {{}} --type ShapeType --rate 10 --count 100000 {options}"));
    let (_, status) = Takt::start(&format!("echo Square --count 1 --timeout 30 {options}")).finish();
    assert!(status.success(), "the writer runs");
    let options: Vec<&str> = options.split(' ').collect();
    for command in ["echo", "sub", "hz", "type"] {
        let line = [&["takt", command][..], &options, &["Sq"]].concat();
        assert_eq!(complete(&line), ["Square"], "{command}");
    }
    let other = [&["takt", "echo"][..], &options, &["Circ"]].concat();
    assert_eq!(complete(&other), Vec::<String>::new());
    drop(writer);
}

#[test]
fn interfaces_and_commands_are_completed() {
    assert!(complete(&["takt", "ls", "--interface", ""]).contains(&"lo".to_owned()));
    assert!(complete(&["takt", "capture", "f.pcapng", "--interface", "l"]).contains(&"lo".to_owned()));
    assert!(complete(&["takt", "transport", "probe", ""]).contains(&"lo".to_owned()));
    assert_eq!(complete(&["takt", "discovery"]), ["discovery-server"]);
    assert!(complete(&["takt", "echo", "--no-"]).contains(&"--no-arr".to_owned()));
}

#[test]
fn script_of_a_shell_requests_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let takt = Takt::start_in("", &[("TAKT_COMPLETE", shell.to_owned())]);
        let (text, status) = takt.finish();
        assert!(status.success() && text.contains("TAKT_COMPLETE"), "{shell}: {text}");
    }
    let (text, _, code) = Takt::start_in("", &[("TAKT_COMPLETE", "tcsh".to_owned())]).ending();
    assert!(code != Some(0), "{text}");
}
