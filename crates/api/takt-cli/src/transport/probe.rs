//! `takt transport probe`: reports which transports can use a network interface, and what they
//! lack.

use crate::completion::interfaces;
use crate::output::outln;
use crate::progress::during;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;
use serde_json::{Value, json};
use takt_bench::report::to_json;
use takt_bench::{Error, Result};
use takt_transport::choice::probe::{Finding, Grade};
use takt_transport::choice::{Link, factories};

/// `takt transport probe`
#[derive(Args)]
pub struct Probe {
    /// Network interface
    #[arg(add = ArgValueCompleter::new(interfaces))]
    interface: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    interface: &'a str,
    /// Properties of the interface; absent if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<Value>,
    transports: Vec<Judged>,
}

#[derive(Serialize)]
struct Judged {
    name: &'static str,
    /// Name that selects the transport.
    transport: String,
    /// Whether all requirements are met.
    usable: bool,
    findings: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    what: &'static str,
    grade: &'static str,
    detail: String,
}

fn word(grade: Grade) -> &'static str {
    match grade {
        Grade::Good => "good",
        Grade::Lesser => "lesser",
        Grade::Unknown => "unknown",
        Grade::Missing => "missing",
    }
}

impl From<Finding> for Line {
    fn from(finding: Finding) -> Self {
        Self { what: finding.what, grade: word(finding.grade), detail: finding.detail }
    }
}

impl Probe {
    /// Probes the interface and prints the result.
    ///
    /// # Errors
    /// No transport can use the interface.
    pub fn run(&self) -> Result<()> {
        let mut transports = Vec::new();
        for factory in factories() {
            let findings = during("probing the interface", || factory.probe(&self.interface));
            if findings.is_empty() {
                continue;
            }
            let usable = findings.iter().all(|finding| finding.grade != Grade::Missing);
            let findings = findings.into_iter().map(Line::from).collect();
            let transport = factory.at(&self.interface);
            transports.push(Judged { name: factory.name(), transport, usable, findings });
        }
        // Without such an interface, the findings of each transport say so.
        let link = Link::query(&self.interface).map(|link| properties(&link)).ok(); // tidy-allow(dropped-cause): as above
        let report = Report { interface: &self.interface, link, transports };
        if self.json {
            outln!("{}", to_json(&report)?)?;
        } else {
            report.transports.iter().try_for_each(print)?;
        }
        if report.transports.iter().any(|judged| judged.usable) {
            return Ok(());
        }
        let source = std::io::Error::new(std::io::ErrorKind::Unsupported, "no transport supports this interface");
        Err(Error::Os { op: format!("probe {}", self.interface), source })
    }
}

/// Returns the properties of an interface on which the findings rest.
fn properties(link: &Link) -> Value {
    let xdp = link.xdp.map(|xdp| {
        json!({
            "native": xdp.native,
            "zero_copy": xdp.zero_copy,
            "several_parts": xdp.several_parts,
            "zero_copy_parts_max": xdp.zero_copy_parts_max,
        })
    });
    json!({
        "index": link.index,
        "driver": link.driver,
        "is_ethernet": link.is_ethernet,
        "is_up": link.is_up,
        "has_carrier": link.has_carrier,
        "mtu_bytes": link.mtu,
        "ipv4": link.ipv4.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rx_queues": link.rx_queues,
        "has_xdp_program": link.has_xdp_program,
        "xdp": xdp,
    })
}

fn print(judged: &Judged) -> Result<()> {
    let verdict = if judged.usable { "can be used" } else { "cannot be used" };
    outln!("{}: {verdict}", judged.transport)?;
    for Line { what, grade, detail } in &judged.findings {
        outln!("  {grade:<8}{what:<14}{detail}")?;
    }
    Ok(())
}
