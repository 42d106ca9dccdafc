//! `takt analyze`: bounds of what flows take over executors and links, or which one does not fit; certificates, and their check.

mod description;
mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use takt_bench::{Error, Result};
use takt_calculus::{Certificate, System, advice, analyse, verify};

const EXAMPLES: &str = "\
Examples:
  takt analyze system.toml
  takt analyze system.toml --what-if
  takt analyze system.toml --certificate system.json
  takt analyze --verify system.json                    checks each number of a certificate, computes none
docs/analysis.md explains the file.";

/// `takt analyze`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Analyze {
    /// Executors, links and flows, in TOML
    #[arg(required_unless_present = "verify")]
    system: Option<PathBuf>,
    /// Check this certificate instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["system", "certificate", "what_if"])]
    verify: Option<PathBuf>,
    /// Write the bounds with what proves them, in JSON, if all limits are kept
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Also say how much slower all may become, and how often each flow may come
    #[arg(long)]
    what_if: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Analyze {
    pub fn run(&self) -> Result<()> {
        if let Some(path) = &self.verify {
            return verify_file(path);
        }
        let path = self.system.as_deref().expect("the command line has one of them");
        let system =
            description::read(&text(path)?).map_err(|what| Error::Usage(format!("{}: {what}", path.display())))?;
        let certificate = analyse(&system).map_err(|why| Error::NotKept { what: report::infeasible(&system, &why) })?;
        let what_if = self.what_if.then(|| report::WhatIf::of(&system));
        if self.json {
            println!("{}", report::json(&certificate, what_if.as_ref()));
        } else {
            print!("{}", report::table(&certificate, what_if.as_ref()));
        }
        if !certificate.is_kept() {
            return Err(Error::NotKept { what: not_kept(&system, &certificate) });
        }
        self.certificate.as_deref().map_or(Ok(()), |path| write(path, &certificate))
    }
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::Os { op: path.display().to_string(), source })
}

fn write(path: &Path, certificate: &Certificate) -> Result<()> {
    let json = serde_json::to_string_pretty(certificate).expect("it has nothing that JSON has not");
    std::fs::write(path, json + "\n").map_err(|source| Error::Os { op: path.display().to_string(), source })
}

/// Which flows are later than they may be, and which one was too much.
fn not_kept(system: &System, certificate: &Certificate) -> String {
    let late: Vec<_> = certificate.violations().map(|at| system.flows[at].name.as_str()).collect();
    let misfit = match advice::first_misfit(system) {
        Ok(Some(at)) => format!("; {} is the first that does not fit with those before it", system.flows[at].name),
        Ok(None) | Err(_) => String::new(),
    };
    format!("not within their limits: {}{misfit}", late.join(", "))
}

fn verify_file(path: &Path) -> Result<()> {
    let wrong = |what: &dyn std::fmt::Display| Error::NotKept { what: format!("{}: {what}", path.display()) };
    let certificate: Certificate = serde_json::from_str(&text(path)?).map_err(|error| wrong(&error))?;
    verify(&certificate).map_err(|unproven| wrong(&unproven))?;
    let limits = certificate.system.flows.iter().filter(|flow| flow.limit_ns.is_some()).count();
    println!(
        "proven: {} flows over {} resources, {limits} limits kept",
        certificate.flows.len(),
        certificate.system.resources.len()
    );
    Ok(())
}
