//! Help, versions, wrong usage and exit codes of `takt`.

use crate::file::File;
use crate::process::Takt;
use takt_testkit::{not_run, require};

#[test]
fn version_is_that_of_the_package() {
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
fn help_of_a_command_has_its_exit_codes() {
    for (line, code) in [
        ("echo --help", "  3    no writer or no sample in time"),
        ("analyze --help", "  1    a limit is exceeded, or a bound is not proven"),
        ("help sdn admit", "  3    no controller answers"),
    ] {
        let (text, status) = Takt::start(line).finish();
        assert!(status.success() && text.contains("Exit codes:") && text.contains(code), "{line}: {text}");
    }
}

#[test]
fn wrong_usage_exits_with_code_2_and_names_the_mistake() {
    for (line, hint) in [
        ("perf ping --size 3", "at least 16 bytes"),
        ("perf ping --spin --block", "cannot be used with"),
        ("perf ping --interface nowhere0", "nowhere0"),
        ("perf ping --transport raw-udp --size 70000", "at most 65507"),
        ("perf agent dance", "unknown role dance"),
        ("perf compare --peer nonsense", "NAME=PROGRAM"),
        ("perf compare --runtime shared --spin --fifo 1", "never yields"),
        ("perf ping --runtime shared --spin --fifo 1 --cpu 0", "never yields"),
    ] {
        let (text, code) = Takt::start(line).error_text();
        assert_eq!(code, Some(2), "{line}: {text}");
        assert!(text.contains(hint), "{line}: {text}");
    }
}

#[test]
fn missing_core_is_a_failure_with_its_cause() {
    let (text, code) = Takt::start("perf ping --cpu 1023").error_text();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("bind to core 1023"), "{text}");
}

#[test]
fn signal_during_a_wait_has_its_own_exit_code() {
    for (signal, expected) in [("TERM", 143), ("INT", 130)] {
        let ping = Takt::start("perf ping --domain 190");
        ping.await_complaint("waiting for");
        ping.signal(signal);
        let (text, code) = ping.error_text();
        assert_eq!(code, Some(expected), "{text}");
        assert!(text.contains("stopped by a signal"), "{text}");
    }
}

/// Commands that run until a signal arrives report the signal in their exit code.
#[test]
fn services_and_streams_exit_with_the_code_of_their_signal() {
    let service = Takt::start("durability --interface lo --domain 212");
    service.await_complaint("takt: durability service of domain 212");
    service.terminate();
    assert_eq!(service.error_text().1, Some(143));
    let pong = Takt::start("perf pong --domain 212");
    Takt::start("perf ping --domain 212 --samples 10 --warmup 0 --json").json();
    pong.terminate();
    assert_eq!(pong.error_text().1, Some(143));
    let server = Takt::start("discovery-server --listen 127.0.0.1:17523 --domain 212");
    assert!(server.line().is_some_and(|line| line.starts_with("listening domain 212")));
    server.signal("INT");
    assert_eq!(server.error_text().1, Some(130));
}

/// System file that `takt analyze` accepts.
const SYSTEM: &str = "[[executor]]\nname = \"a\"\n[[flow]]\nname = \"f\"\nmin_separation = \"1 ms\"\n\
    stages = [{ on = \"a\", priority = 1, time = \"1 us\" }]\n";

/// Commands that write to standard output and end without a signal.
const WRITING: [&str; 12] = [
    "ls --interface lo --domain 213 --wait 0.1",
    "ls --interface lo --domain 213 --wait 0.1 --json",
    "doctor --interface lo --wait 0.1",
    "config show",
    "config explain history.depth",
    "transport ls",
    "transport probe lo",
    "host inspect",
    "host plan",
    "lab status --json",
    "type --own ShapeType",
    "pub Square {} --type ShapeType --no-wait --interface lo --domain 213 --json",
];

#[test]
fn closed_standard_output_ends_every_command_without_a_message() {
    let system = File::new("closed-pipe.toml", SYSTEM);
    for line in WRITING.into_iter().chain([format!("analyze {}", system.path()).as_str()]) {
        let (text, code) = Takt::start_without_reader(line).error_text();
        assert!(
            code == Some(0) && !text.contains("panicked") && !text.contains("Broken pipe"),
            "{line}: {code:?} {text}"
        );
    }
}

#[test]
fn failed_write_to_standard_output_is_a_failure_with_its_cause() {
    let system = File::new("full-disk.toml", SYSTEM);
    for line in WRITING.into_iter().chain([format!("analyze {}", system.path()).as_str()]) {
        let (text, code) = Takt::start_on_full_disk(line).error_text();
        let cause = "takt: write to standard output: No space left on device";
        assert!(code == Some(1) && text.lines().any(|line| line.starts_with(cause)), "{line}: {code:?} {text}");
    }
}

#[test]
fn help_and_version_fail_like_other_output_if_standard_output_cannot_be_written() {
    for line in ["--help", "-h", "--version", "help", "perf --help", "perf ping --help", "help sdn run", "ls --version"]
    {
        let (text, code) = Takt::start_on_full_disk(line).error_text();
        assert_eq!(text, "takt: write to standard output: No space left on device (os error 28)", "{line}");
        assert_eq!(code, Some(1), "{line}");
        let (text, code) = Takt::start_without_reader(line).error_text();
        assert_eq!((text.as_str(), code), ("", Some(0)), "{line}");
    }
}

/// Services write events to standard output. Without it they continue, and report once that events
/// are lost.
#[test]
fn services_report_once_that_events_cannot_be_written_and_continue() {
    let sdn = "sdn run --listen 127.0.0.1:0 --control";
    let socket = std::env::temp_dir().join(format!("takt-it-{}-full.sock", std::process::id()));
    let sdn = format!("{sdn} {}", socket.display());
    for line in ["discovery-server --listen 127.0.0.1:17524 --domain 220", sdn.as_str()] {
        for (start, cause) in [
            (Takt::start_on_full_disk as fn(&str) -> Takt, "No space left on device (os error 28)"),
            (Takt::start_without_reader, "Broken pipe (os error 32)"),
        ] {
            let service = start(line);
            let expected =
                format!("takt: warning: write to standard output: {cause}; events are lost, the service continues");
            assert_eq!(service.error_line(), Some(expected), "{line}");
            service.terminate();
            let (text, code) = service.error_text();
            assert_eq!(code, Some(143), "{line}: {text}");
            assert!(!text.contains("standard output"), "{line}: {text}");
        }
    }
}

/// Returns all commands and subcommands that the help lists, each with its words.
fn all_commands(words: &str) -> Vec<String> {
    let (help, _) = Takt::start(&format!("{words} --help")).finish();
    // The top level has several groups of commands, each with a heading of its own.
    let others = ["Arguments:", "Options:", "Examples:", "Exit codes:"];
    let mut is_command = false;
    let listed = help.lines().filter(|line| {
        if line.ends_with(':') && !line.starts_with(' ') {
            is_command = *line == "Commands:" || (words.is_empty() && !others.contains(line));
        }
        is_command && line.starts_with("  ")
    });
    // A line with more indentation continues the description above it.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|name| !name.starts_with(' ')));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let below: Vec<String> = names.flat_map(|name| all_commands(format!("{words} {name}").trim())).collect();
    if below.is_empty() { vec![words.to_owned()] } else { below }
}

#[test]
fn unknown_options_and_surplus_arguments_are_named_by_every_command() {
    let commands = all_commands("");
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands {
        let (text, code) = Takt::start(&format!("{command} --nonsense")).error_text();
        assert!(code == Some(2) && text.contains("'--nonsense'"), "{command}: {code:?} {text}");
        // These commands take any number of files, and no file has this name.
        let takes_files = (command.starts_with("config") && command != "config convert") || command == "bench run";
        let expected = if takes_files { 1 } else { 2 };
        let (text, code) = Takt::start(&format!("{command} nonsense nonsense nonsense")).error_text();
        assert!(code == Some(expected) && text.contains("nonsense"), "{command}: {code:?} {text}");
    }
}

#[test]
fn unknown_configuration_key_is_named_with_file_and_line_by_every_command() {
    let file = File::new("unknown-key.toml", "[participant]\ndomain = 1\nnmae = \"x\"\n");
    for command in [
        "ls",
        "doctor",
        "echo Square",
        "sub Square --type ShapeType",
        "pub Square {} --type ShapeType",
        "type Square",
        "discovery-server --listen 127.0.0.1:17599",
        "durability",
        "perf ping",
        "perf pub",
    ] {
        let (text, code) = Takt::start(&format!("{command} --config {}", file.path())).error_text();
        let named = format!("{}:3: participant.nmae: unknown", file.path());
        assert!(code == Some(1) && text.contains(&named), "{command}: {code:?} {text}");
    }
}

#[test]
fn invalid_address_is_refused_with_the_expected_form() {
    for line in ["discovery-server --listen nonsense", "sdn run --listen nonsense", "sdn run --api nonsense"] {
        let (text, code) = Takt::start(line).error_text();
        let expected = "'nonsense' for '--";
        let form = "<ADDRESS:PORT>': expected an IP address and a port, such as 0.0.0.0:7400";
        assert!(code == Some(2) && text.contains(expected) && text.contains(form), "{line}: {code:?} {text}");
    }
}

#[test]
fn forbidden_real_time_priority_is_refused_with_the_needed_privilege() {
    if let Err(why) = require::program("setpriv") {
        return not_run(why);
    }
    let (text, code) = Takt::start_without_privileges("perf ping --fifo 50 --interface lo --domain 208").error_text();
    let expected = "SCHED_FIFO priority 50, which needs root, CAP_SYS_NICE, or RLIMIT_RTPRIO (ulimit -r)";
    assert!(code == Some(1) && text.contains(expected) && text.contains("Operation not permitted"), "{code:?} {text}");
}

#[test]
fn help_lists_the_exit_codes() {
    let (text, _) = Takt::start("--help").finish();
    assert!(text.contains("Exit codes:") && text.contains("143  stopped by SIGTERM"), "{text}");
}
