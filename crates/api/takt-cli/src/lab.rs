//! `takt lab`: networks of hosts and switches on this machine.

use crate::output::outln;
use crate::progress::during;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;
use std::process::Command as Program;
use takt_bench::report::to_json;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_lab::{Check, Lab, LabFile, Outcome, Status};

const EXAMPLES: &str = "\
Examples:
  takt lab up examples/lab/two-switches.toml
  takt lab up examples/lab/bridge.toml             a kernel bridge, without Open vSwitch
  takt lab check examples/lab/two-switches.toml    repeats the checks
  takt lab status
  takt lab exec talker -- takt pub ...             with the /sys of the namespace
  takt lab exec switches -- ovs-ofctl dump-flows unix:/run/takt/lab/two-switches/west.mgmt
  takt lab down
Needs root, and Open vSwitch (apt install openvswitch-switch) for its switches. docs/guide/lab.md describes the file.";

/// `takt lab`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LabCommand {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// Create the network of a file and check it; it exists until takt lab down
    Up {
        /// Network file, in TOML
        file: PathBuf,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Repeat the checks of a running lab with its file; its switches have to forward
    Check {
        /// Network file, in TOML
        file: PathBuf,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Remove a lab, also one that a killed process left behind
    Down {
        /// Name of the lab; may be omitted if exactly one is up
        name: Option<String>,
    },
    /// Show labs: namespaces, processes, switches and their controllers
    Status {
        /// Name of the lab [default: all labs]
        name: Option<String>,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Run a program on a host of a lab; `switches` is the host of the switches
    Exec {
        /// Name of the lab; may be omitted if exactly one is up
        #[arg(long, value_name = "NAME")]
        lab: Option<String>,
        /// Host name
        host: String,
        /// Program and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
}

#[derive(Serialize)]
struct Made<'a> {
    name: &'a str,
    checks: &'a [Check],
}

#[derive(Serialize)]
struct Labs {
    labs: Vec<Status>,
}

impl LabCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// The file describes no network, the process is not root, a check failed, or the lab does not
    /// exist.
    pub fn run(&self) -> Result<()> {
        match &self.command {
            Action::Up { file, json } => up(&LabFile::read(file).map_err(failure)?, *json),
            Action::Check { file, json } => check(&LabFile::read(file).map_err(failure)?, *json),
            Action::Down { name } => {
                let name = chosen(name.as_deref())?;
                during("removing the lab", || Lab::down(&name)).map_err(failure)
            }
            Action::Status { name, json } => status(name.as_deref(), *json),
            Action::Exec { lab, host, command } => exec(lab.as_deref(), host, command),
        }
    }
}

fn failure(error: takt_lab::Error) -> Error {
    match error {
        takt_lab::Error::File(_) | takt_lab::Error::NoHost { .. } => Error::Usage(error.to_string()),
        error => Error::NotKept { what: error.to_string() },
    }
}

/// Returns the name of the selected lab.
fn chosen(name: Option<&str>) -> Result<String> {
    let names = Status::names();
    match (name, names.as_slice()) {
        (Some(name), _) => Ok(name.to_owned()),
        (None, [one]) => Ok(one.clone()),
        (None, []) => Err(Error::Usage("no lab is up".to_owned())),
        (None, names) => Err(Error::Usage(format!("several labs are up; name one of {}", names.join(", ")))),
    }
}

fn up(file: &LabFile, json: bool) -> Result<()> {
    let lab = during("creating and measuring the lab", || Lab::up(file)).map_err(failure)?;
    if stopped() {
        lab.remove().map_err(failure)?;
        return Err(Error::Stopped);
    }
    let (name, checks) = (lab.name().to_owned(), lab.checks().to_vec());
    lab.keep().map_err(failure)?;
    if json {
        return outln!("{}", to_json(&Made { name: &name, checks: &checks })?);
    }
    outln!("lab {name} is up")?;
    print_checks(&checks)
}

fn check(file: &LabFile, json: bool) -> Result<()> {
    let checks = during("measuring the lab", || Lab::check_running(file)).map_err(failure)?;
    if json {
        outln!("{}", to_json(&Made { name: &file.name, checks: &checks })?)?;
    } else {
        print_checks(&checks)?;
    }
    match checks.iter().filter(|check| check.outcome == Outcome::Failed).count() {
        0 => Ok(()),
        count => Err(Error::NotKept { what: format!("{count} checks of lab {} failed", file.name) }),
    }
}

fn print_checks(checks: &[Check]) -> Result<()> {
    checks.iter().try_for_each(|Check { name, outcome, detail }| {
        let word = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::NotMeasured => "not measured",
        };
        outln!("  {name:<15} {word:<13} {detail}")
    })
}

fn status(name: Option<&str>, json: bool) -> Result<()> {
    let names = name.map_or_else(Status::names, |name| vec![name.to_owned()]);
    let labs: Vec<_> = names.iter().map(|name| Status::read(name)).collect::<takt_lab::Result<_>>().map_err(failure)?;
    if json {
        return outln!("{}", to_json(&Labs { labs })?);
    }
    if labs.is_empty() {
        return outln!("no lab is up");
    }
    labs.iter().try_for_each(print)
}

fn print(lab: &Status) -> Result<()> {
    let state = match (lab.is_complete, lab.has_builder) {
        (true, _) => "up".to_owned(),
        (false, true) => "being created".to_owned(),
        (false, false) => format!("incomplete; remove it with takt lab down {}", lab.name),
    };
    outln!("lab {}: {state}", lab.name)?;
    for node in &lab.nodes {
        let state = if node.exists { format!("{} processes", node.processes.len()) } else { "gone".to_owned() };
        outln!("  {:<15} {:<40} {state}", node.name, node.namespace)?;
    }
    for switch in &lab.switches {
        let state = if switch.exists { "" } else { "Open vSwitch does not answer" };
        let word = |is_connected: &bool| if *is_connected { "connected" } else { "not connected" };
        let controllers = switch.controllers.iter().map(|(target, is)| format!("{target} {}", word(is)));
        let words: Vec<_> =
            std::iter::once(state.to_owned()).filter(|word| !word.is_empty()).chain(controllers).collect();
        outln!(
            "  switch {:<8} {}",
            switch.name,
            if words.is_empty() { "no controller".to_owned() } else { words.join(", ") }
        )?;
    }
    Ok(())
}

/// Replaces this process by the program. Returns only on failure.
fn exec(lab: Option<&str>, host: &str, command: &[String]) -> Result<()> {
    let [program, arguments @ ..] = command else { return Err(Error::Usage("clap requires a program".to_owned())) };
    let namespace = Status::namespace(&chosen(lab)?, host).map_err(failure)?;
    let source = namespace.exec(Program::new(program).args(arguments));
    Err(Error::Os { op: format!("run {program} on {host}"), source })
}
