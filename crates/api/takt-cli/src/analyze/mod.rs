//! `takt analyze`: response-time bounds of flows over executors and links, and the flows that
//! exceed their limits.
//!
//! It also writes and checks certificates of these bounds.

mod report;

use crate::output::{out, outln};
use crate::progress::during;
use std::path::{Path, PathBuf};

use clap::Args;
use takt_bench::{Error, Result};
use takt_calculus::{Certificate, verify};
use takt_config::read_system;

const EXAMPLES: &str = "\
Examples:
  takt analyze system.toml
  takt analyze system.toml --what-if
  takt analyze system.toml --certificate system.json
  takt analyze system.toml --measured sub.json --margin 2
  takt analyze --verify system.json                    verifies a certificate, does not compute bounds
docs/guide/analysis.md explains the file.";

/// `takt analyze`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Analyze {
    /// System file: executors, links and flows, in TOML
    #[arg(required_unless_present = "verify")]
    system: Option<PathBuf>,
    /// Verify this certificate instead of analyzing a system file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["system", "certificate", "what_if", "measured", "margin"])]
    verify: Option<PathBuf>,
    /// Job statistics of executors, for stages with measured times; added to those that the system file names
    #[arg(long, value_name = "FILE", num_args = 1..)]
    measured: Vec<PathBuf>,
    /// Factor for measured times, at least 1 [default: that of the system file, or 1.5]
    #[arg(long, value_name = "FACTOR")]
    margin: Option<f64>,
    /// Write the certificate, the bounds with their proofs, in JSON, if all limits are kept
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Also print the headroom of all times and the shortest period of each flow
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
        let path = self.system.as_deref().expect("clap requires SYSTEM without --verify");
        let file = read_system(path, &self.measured, self.margin).map_err(|error| Error::Usage(error.to_string()))?;
        let certificate = during("computing bounds", || file.analyze())
            .map_err(|error| Error::NotKept { what: error.to_string() })?;
        let what_if = self.what_if.then(|| during("computing headroom", || report::WhatIf::of(file.system())));
        if self.json {
            outln!("{}", report::json(&certificate, what_if.as_ref()))?;
        } else {
            out!("{}", report::table(&certificate, what_if.as_ref()))?;
        }
        if let Some(what) = file.not_kept(&certificate) {
            return Err(Error::NotKept { what });
        }
        self.certificate.as_deref().map_or(Ok(()), |path| write(path, &certificate))
    }
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::Os { op: path.display().to_string(), source })
}

fn write(path: &Path, certificate: &Certificate) -> Result<()> {
    let json = serde_json::to_string_pretty(certificate).expect("a certificate is valid JSON");
    std::fs::write(path, json + "\n").map_err(|source| Error::Os { op: path.display().to_string(), source })
}

fn verify_file(path: &Path) -> Result<()> {
    let wrong = |what: &dyn std::fmt::Display| Error::NotKept { what: format!("{}: {what}", path.display()) };
    let certificate: Certificate = serde_json::from_str(&text(path)?).map_err(|error| wrong(&error))?;
    during("verifying bounds", || verify(&certificate)).map_err(|unproven| wrong(&unproven))?;
    let limits = certificate.system.flows.iter().filter(|flow| flow.limit_ns.is_some()).count();
    outln!(
        "proven: {} flows over {} resources, {limits} limits kept",
        certificate.flows.len(),
        certificate.system.resources.len()
    )?;
    Ok(())
}
