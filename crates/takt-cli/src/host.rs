//! `takt host`: the machine made fit for real-time traffic, and taken back. `takt doctor`: what is in the way.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use takt_bench::{Error, Result};
use takt_host::apply::Failure;
use takt_host::{Facts, Journal, Machine, Plan, Wish, apply, revert, verify};

const EXAMPLES: &str = "\
Examples:
  takt host inspect
  takt host plan --cpus 3 --interface eth0 > host.json     changes nothing
  takt host apply host.json
  takt host verify host.json
  takt host revert                                         as it was before the first apply
docs/host.md explains what is changed and why.";

/// `takt host`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Host {
    #[command(subcommand)]
    command: Command,
    /// Files below this directory in place of the machine's
    #[arg(long, global = true, hide = true, value_name = "DIRECTORY")]
    root: Option<PathBuf>,
    /// Where what was there before is written down
    #[arg(long, global = true, value_name = "FILE", default_value = Journal::PATH)]
    journal: PathBuf,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Print what is there, as JSON
    Inspect,
    /// Print the changes that a wish takes and what cannot be had, as JSON
    Plan(WishArgs),
    /// Make all changes of a plan, or none
    Apply {
        /// The plan; - for standard input
        plan: PathBuf,
    },
    /// Look whether everything is as the plan says
    Verify {
        /// The plan; - for standard input
        plan: PathBuf,
    },
    /// Restore what was there before the first apply
    Revert,
}

/// What real-time traffic is to have.
#[derive(Args, Clone, Debug)]
pub struct WishArgs {
    /// Processors that nothing else is to use
    #[arg(long, value_name = "N,N...", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// The interface that it comes and goes by
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
}

impl WishArgs {
    fn plan(&self, machine: &Machine) -> Result<Plan> {
        let wish = Wish { cpus: self.cpus.clone(), interface: self.interface.clone() };
        Plan::new(machine, &Facts::of(machine), &wish).map_err(|why| Error::Usage(why.to_string()))
    }
}

impl Host {
    pub fn run(&self) -> Result<()> {
        let machine = self.root.as_ref().map_or_else(Machine::default, Machine::below);
        match &self.command {
            Command::Inspect => print_json(&Facts::of(&machine)),
            Command::Plan(wish) => print_json(&wish.plan(&machine)?),
            Command::Apply { plan } => {
                let plan = read_plan(plan)?;
                let mut journal = self.open_journal()?;
                apply(&machine, &plan, &mut journal).map_err(|why| Error::NotKept { what: why.to_string() })?;
                println!("{} changes are made; takt host revert takes them back", plan.changes.len());
                Ok(())
            }
            Command::Verify { plan } => {
                let plan = read_plan(plan)?;
                all_well(&verify(&machine, &plan))?;
                println!("all {} are as planned", plan.changes.len());
                Ok(())
            }
            Command::Revert => {
                let journal = self.open_journal()?;
                let count = journal.formers().len();
                let left = revert(&machine, journal).map_err(|source| self.journal_error(source))?;
                all_well(&left)?;
                println!("{count} settings are as they were");
                Ok(())
            }
        }
    }

    fn open_journal(&self) -> Result<Journal> {
        Journal::open(&self.journal).map_err(|source| self.journal_error(source))
    }

    fn journal_error(&self, source: io::Error) -> Error {
        Error::Os { op: self.journal.display().to_string(), source }
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(value).expect("it has nothing that JSON has not"));
    Ok(())
}

fn read_plan(path: &Path) -> Result<Plan> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|source| Error::Os { op: path.display().to_string(), source })?;
    serde_json::from_str(&text).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}

fn all_well(failures: &[Failure]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = failures.iter().map(ToString::to_string).collect();
    Err(Error::NotKept { what: lines.join("\n") })
}

/// `takt doctor`
#[derive(Args, Clone, Debug)]
pub struct Doctor {
    #[command(flatten)]
    wish: WishArgs,
    /// Files below this directory in place of the machine's
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    root: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Something that is in the way.
#[derive(serde::Serialize)]
struct Finding {
    what: String,
    why: String,
    mend: String,
}

impl Doctor {
    pub fn run(&self) -> Result<()> {
        let machine = self.root.as_ref().map_or_else(Machine::default, Machine::below);
        let plan = self.wish.plan(&machine)?;
        let changes = plan.changes.iter().map(|change| Finding {
            what: format!("{} is {:?}", change.knob, change.from),
            why: change.why.clone(),
            mend: mend(&change.knob, &change.to),
        });
        let lacks = plan.lacks.iter().map(|lack| Finding {
            what: lack.what.clone(),
            why: lack.why.clone(),
            mend: lack.instead.clone(),
        });
        let findings: Vec<_> = changes.chain(lacks).collect();
        if self.json {
            return print_json(&findings);
        }
        for Finding { what, why, mend } in &findings {
            println!("{what}\n    {why}\n    -> {mend}");
        }
        match findings.len() {
            0 => println!("nothing is in the way"),
            count => println!("{count} findings; takt host plan and apply mend what can be set"),
        }
        Ok(())
    }
}

/// The command that sets a knob.
fn mend(knob: &takt_host::Knob, to: &str) -> String {
    match knob {
        takt_host::Knob::File(path) => match path.strip_prefix("/proc/sys") {
            Ok(name) => format!("sysctl -w {}={to}", name.display().to_string().replace('/', ".")),
            Err(_) => format!("echo {to} > {}", path.display()),
        },
        takt_host::Knob::Ethtool(interface, parameter) => {
            let parameter = parameter.to_string();
            match parameter.strip_suffix("-channels") {
                Some(queues) => format!("ethtool -L {interface} {queues} {to}"),
                None => format!(
                    "ethtool -C {interface} {parameter} {}",
                    if parameter.starts_with("adaptive") { "off" } else { to }
                ),
            }
        }
    }
}
