//! `takt --help` with the commands in groups, shell completions and manual pages.

use crate::output::{note, out};
use clap::builder::StyledStr;
use clap::{Args, Command};
use std::fmt::Write as _;
use std::path::PathBuf;
use takt_bench::{Error, Result};

/// Groups of commands, in the order of `takt --help`.
const GROUPS: &[(&str, &[&str])] = &[
    ("See and use topics", &["ls", "ps", "echo", "sub", "pub", "type", "hz", "bw", "delay", "capture"]),
    ("Configure", &["config", "security"]),
    ("Run services", &["discovery-server", "daemon", "durability"]),
    ("Bound and isolate", &["analyze", "sdn", "host", "doctor", "transport"]),
    ("Measure", &["perf", "bench", "lab"]),
    ("Set up the command", &["completions", "man", "help"]),
];

/// Returns the command with its subcommands in groups.
pub fn grouped(command: Command) -> Command {
    let text = groups(&command);
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}\nOptions:\n{{options}}{{after-help}}");
    command.help_template(StyledStr::from(template))
}

/// Returns the groups of subcommands, each with its one-line description.
fn groups(command: &Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let about = |name: &str| {
        let found = command.get_subcommands().find(|subcommand| subcommand.get_name() == name);
        match name {
            "help" => Some("Print this text, or the help of a command".to_owned()),
            _ => found.map(|subcommand| subcommand.get_about().map(ToString::to_string).unwrap_or_default()),
        }
    };
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (title, names) in GROUPS {
        writeln!(text, "{header}{title}:{header:#}").expect("writing to a String cannot fail");
        for name in *names {
            if let Some(about) = about(name) {
                writeln!(text, "  {literal}{name:width$}{literal:#}  {about}").expect("a String accepts text");
            }
        }
        text.push('\n');
    }
    text
}

/// `takt completions`
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  takt completions bash > /usr/share/bash-completion/completions/takt
  takt completions zsh > /usr/share/zsh/site-functions/_takt
  takt completions fish > ~/.config/fish/completions/takt.fish")]
pub struct Completions {
    /// Shell
    shell: clap_complete::Shell,
}

impl Completions {
    /// Prints the completion script of a shell.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn run(&self, mut command: Command) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "takt", &mut script);
        out!("{}", String::from_utf8_lossy(&script))
    }
}

/// `takt man`
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  takt man target/man && man -l target/man/takt-echo.1")]
pub struct Man {
    /// Directory for a page per command, created if missing
    directory: PathBuf,
}

impl Man {
    /// Writes a manual page for each command.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn run(&self, command: Command) -> Result<()> {
        let failed = |source| Error::Os { op: self.directory.display().to_string(), source };
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        clap_mangen::generate_to(command, &self.directory).map_err(failed)?;
        note!("takt: wrote manual pages to {}", self.directory.display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        for name in &names {
            assert_eq!(grouped.iter().filter(|grouped| grouped == &name).count(), 1, "{name}");
        }
        let unknown = |name: &&&str| **name != "help" && **name != "security" && !names.contains(*name);
        assert_eq!(grouped.iter().filter(unknown).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn help_shows_groups_commands_and_exit_codes() {
        let text = super::grouped(Cli::command()).render_help().to_string();
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing in\n{text}"));
        assert!(at("See and use topics:") < at("  echo"), "{text}");
        assert!(at("  echo") < at("Measure:"), "{text}");
        assert!(at("Measure:") < at("Exit codes:"), "{text}");
    }
}
