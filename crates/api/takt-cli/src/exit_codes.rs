//! Exit codes of each command in its help.
//!
//! Every command has 0, 2 for wrong usage, and the codes of signals. [`ROWS`] says what 0, 1, 3 and 4
//! mean where a command has a meaning of its own.

use clap::Command;
use std::fmt::Write as _;

/// Meaning of the exit codes of a command: its path, and the meaning of 0, 1, 3 and 4. An empty
/// meaning is that of [`COMMON`]; `-` means that the command has no such code.
type Row = (&'static str, [&'static str; 4]);

/// Meanings of 0, 1, 3 and 4 without a row.
const COMMON: [&str; 4] = ["done", "failure of configuration, machine or network", "-", "-"];

/// Exit codes of a command that a signal stops.
const STOPPED: &str = "130  stopped by SIGINT\n  143  stopped by SIGTERM";

const NO_SAMPLE: &str = "no writer or no sample in time";
const NO_TYPE: &str = "type not available";
const NO_CONTROLLER: &str = "no controller answers";

const ROWS: &[Row] = &[
    ("echo", ["--count samples were printed", "", NO_SAMPLE, NO_TYPE]),
    ("sub", ["--count samples were printed", "", NO_SAMPLE, NO_TYPE]),
    (
        "pub",
        ["written, and acknowledged by all reliable readers", "", "no reader, or no acknowledgment, in time", NO_TYPE],
    ),
    ("type", ["printed", "", "no endpoint of the topic in time", NO_TYPE]),
    ("hz", ["--count samples were measured", "", NO_SAMPLE, "-"]),
    ("bw", ["--count samples were measured", "", NO_SAMPLE, "-"]),
    ("delay", ["--count samples were measured", "", NO_SAMPLE, "-"]),
    (
        "capture",
        [
            "ended by --seconds, --count or --bytes-max",
            "an interface cannot be captured, or the file cannot be written",
            "-",
            "-",
        ],
    ),
    ("ls", ["printed, also without participants and with findings", "", "-", "-"]),
    ("ps", ["printed, also without participants", "", "-", "-"]),
    ("perf ping", ["measured", "", "no matching endpoint, or no answer, in time", "-"]),
    ("perf pong", ["done", "", "no matching endpoint in time", "-"]),
    ("perf pub", ["written", "", "no matching endpoint in time", "-"]),
    ("perf sub", ["measured", "", "no matching endpoint, or no sample, in time", "-"]),
    (
        "perf compare",
        ["measured", "a column could not be measured", "no matching endpoint, or no answer, in time", "-"],
    ),
    (
        "perf transports",
        ["measured", "a column could not be measured", "no matching endpoint, or no answer, in time", "-"],
    ),
    ("perf topics", ["measured", "", "no matching endpoint, or no answer, in time", "-"]),
    ("perf within", ["measured", "", "no matching endpoint, or no answer, in time", "-"]),
    ("bench run", ["every cell is measured", "a cell is not measured", "-", "-"]),
    ("bench executor", ["every critical sample kept its bound", "a critical sample exceeded its bound", "-", "-"]),
    ("bench isolation", ["measured", "a permission or program is missing, or a process failed", "-", "-"]),
    ("bench sdn-overload", ["measured", "a permission or program is missing, or a process failed", "-", "-"]),
    ("bench compare", ["no value is worse", "a value is worse", "-", "-"]),
    ("daemon status", ["printed", "no daemon runs", "-", "-"]),
    ("transport probe", ["a transport can use the interface", "no transport can use the interface", "-", "-"]),
    ("config check", ["the files are valid", "a file is invalid", "-", "-"]),
    ("host apply", ["all changes are applied", "a change is refused", "-", "-"]),
    ("host verify", ["all settings are as planned", "a setting differs", "-", "-"]),
    ("host revert", ["all settings are restored", "a setting could not be restored", "-", "-"]),
    ("doctor", ["no findings, or only hints", "at least one finding that is not a hint", "-", "-"]),
    ("lab up", ["the lab is up, and no check failed", "the lab cannot be created, or a check failed", "-", "-"]),
    ("lab check", ["all checks passed, or had nothing to measure", "a check failed", "-", "-"]),
    ("lab exec", ["that of the program", "the program cannot be started", "-", "-"]),
    ("analyze", ["all limits are kept", "a limit is exceeded, or a bound is not proven", "-", "-"]),
    ("sdn status", ["printed", "", NO_CONTROLLER, "-"]),
    ("sdn topology", ["printed", "", NO_CONTROLLER, "-"]),
    ("sdn flows", ["printed", "", NO_CONTROLLER, "-"]),
    ("sdn explain", ["printed", "", NO_CONTROLLER, "-"]),
    ("sdn admit", ["the pair would be admitted", "the pair would be refused", NO_CONTROLLER, "-"]),
    ("sdn export", ["printed", "a certificate does not verify", NO_CONTROLLER, "-"]),
    ("sdn register", ["registered", "refused", NO_CONTROLLER, "-"]),
    ("sdn unregister", ["removed", "refused", NO_CONTROLLER, "-"]),
    ("security check", ["no findings, or only warnings", "at least one finding that is not a warning", "-", "-"]),
];

/// Adds the exit codes to the help of each command that has no subcommands.
pub fn with_exit_codes(command: Command) -> Command {
    add(command, "")
}

fn add(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    if names.is_empty() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let separator = if help.is_empty() { "" } else { "\n\n" };
        return command.after_help(format!("{help}{separator}{}", text(path)));
    }
    for name in names {
        let inner = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command = command.mut_subcommand(&name, |one| add(one, &inner));
    }
    command
}

/// Returns the exit codes of a command.
fn text(path: &str) -> String {
    let own = ROWS.iter().find(|(name, _)| *name == path).map_or(COMMON, |(_, meanings)| *meanings);
    let mut text = "Exit codes:".to_owned();
    for (at, code) in [0, 1, 2, 3, 4].into_iter().enumerate() {
        let meaning = match at {
            0 | 1 if own[at].is_empty() => COMMON[at],
            0 | 1 => own[at],
            2 => "wrong usage",
            at => own[at - 1],
        };
        if meaning != "-" {
            write!(text, "\n  {code:<5}{meaning}").expect("writing to a String cannot fail");
        }
    }
    write!(text, "\n  {STOPPED}").expect("writing to a String cannot fail");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    fn visit<'c>(command: &'c Command, path: &str, leaves: &mut Vec<(String, &'c Command)>) {
        if !command.has_subcommands() {
            leaves.push((path.to_owned(), command));
        }
        for one in command.get_subcommands() {
            let inner = if path.is_empty() { one.get_name().to_owned() } else { format!("{path} {}", one.get_name()) };
            visit(one, &inner, leaves);
        }
    }

    #[test]
    fn help_of_every_command_has_its_exit_codes() {
        let command = with_exit_codes(Cli::command());
        let mut leaves = Vec::new();
        visit(&command, "", &mut leaves);
        assert!(leaves.len() > 50, "{} commands", leaves.len());
        for (path, leaf) in &leaves {
            let help = leaf.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert_eq!(help.matches("Exit codes:").count(), 1, "{path}: {help}");
            let codes = ["\n  0    ", "\n  1    ", "\n  2    wrong usage", "\n  130  ", "\n  143  "];
            assert!(codes.iter().all(|code| help.contains(code)), "{path}: {help}");
        }
        let known: BTreeSet<&str> = leaves.iter().map(|(path, _)| path.as_str()).collect();
        let is_unknown = |name: &&str| !known.contains(name) && !name.starts_with("security");
        assert_eq!(ROWS.iter().map(|(name, _)| *name).filter(is_unknown).collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn codes_without_a_meaning_are_omitted() {
        assert!(text("ls").contains("  0    printed, also") && !text("ls").contains("\n  3    "));
        assert!(text("echo").contains("\n  4    type not available"));
        assert!(text("man").contains("\n  0    done\n  1    failure of configuration"));
    }
}
