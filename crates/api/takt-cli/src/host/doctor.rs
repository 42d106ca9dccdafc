//! `takt doctor`: obstacles to discovery and to real-time traffic, each with the command that
//! removes it.

use crate::progress::during;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_host::clock::Source;
use takt_host::plan::MissingFeature;
use takt_host::{ClockQuality, Facts, Machine};

use super::{RequestArgs, print_json, remedy};
use crate::domain::{Domain, DomainConfig, seconds};
use crate::finding::{Finding, count};
use crate::network;
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt doctor                          checks the network of domain 0 and this machine
  takt doctor --domain 7 --peer 192.0.2.7 --wait 5
  takt doctor --interface eth0 --dscp 46 --queue 3
  takt doctor --no-network             only this machine; sends nothing

Findings that begin with 'hint:' are hints.";

/// `takt doctor`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    domain: DomainConfig,
    /// Peer whose participants are expected to answer; may be repeated, or separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    peer: Vec<String>,
    /// Discovery server that is expected to answer; may be repeated, or separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    server: Vec<String>,
    /// Time to listen for participants, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    wait: Duration,
    /// Skip the network checks: join no domain, send nothing
    #[arg(long)]
    no_network: bool,
    /// Root directory of /proc, /sys and other files, instead of /
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    root: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Largest clock offset at which one-way latencies within a network are still meaningful.
const CLOCK_OFF_MAX_NS: u64 = 1_000_000;

/// Returns the finding for a clock whose offset is too large or unknown.
fn of_clock(clock: &ClockQuality, facts: &Facts, interface: Option<&str>) -> Option<Finding> {
    let own = interface.and_then(|name| facts.interface(name)).filter(|facts| facts.clock.is_some());
    let (remedy, is_command) = match own {
        Some(facts) => (format!("ptp4l -i {0} -m & phc2sys -s {0} -w -m &", facts.name), true),
        None => ("apt-get install chrony".to_owned(), true),
    };
    let why =
        "timestamps of other hosts are not comparable; one-way latencies need clock echoes: takt perf sub --clock";
    let what = match clock.offset_uncertainty_ns {
        None => "the system clock is not synchronized".to_owned(),
        Some(ns) if ns > CLOCK_OFF_MAX_NS => {
            format!("the offset of the system clock can be up to {:.1} ms", ns as f64 / 1e6)
        }
        Some(_) => return None,
    };
    let finding = |remedy, is_command| {
        let finding = Finding::of_network("clock-offset", what.as_str(), why, remedy);
        let finding = finding.with("offset_uncertainty_ns", clock.offset_uncertainty_ns);
        Finding { is_command, ..finding }.into_hint()
    };
    if clock.source == Source::Chrony && own.is_none() {
        let remedy =
            "configure a nearer server in chrony.conf, or PTP on an interface with a hardware clock".to_owned();
        return Some(finding(remedy, false));
    }
    Some(finding(remedy, is_command))
}

/// Reports whether a user can do something about a missing feature.
fn has_remedy(feature: &MissingFeature) -> bool {
    !feature.alternative.starts_with("nothing")
}

impl Doctor {
    pub fn run(&self) -> Result<()> {
        let mut findings = during("checking this machine", || self.of_machine())?;
        if !self.no_network {
            findings.extend(during("checking the network", || self.of_network())?);
        }
        if stopped() {
            return Err(Error::Stopped);
        }
        findings.sort_by_key(|finding| !finding.is_error);
        let errors = findings.iter().filter(|finding| finding.is_error).count();
        if self.json {
            print_json(&findings)?;
        } else {
            for finding in &findings {
                outln!("{}{finding}", if finding.is_error { "" } else { "hint: " })?;
            }
            match (errors, findings.len()) {
                (0, 0) => outln!("no findings")?,
                (errors, all) => outln!(
                    "{}, {}; takt host plan and apply make the changes to this machine",
                    count(errors, "finding"),
                    count(all - errors, "hint")
                )?,
            }
        }
        match errors {
            0 => Ok(()),
            errors => Err(Error::NotKept { what: format!("{} to correct", count(errors, "finding")) }),
        }
    }

    /// Finds what impairs real-time traffic on this machine.
    fn of_machine(&self) -> Result<Vec<Finding>> {
        let machine = self.root.as_ref().map_or_else(Machine::default, Machine::below);
        let facts = Facts::of(&machine);
        let plan = self.request.plan(&machine, &facts)?;
        let changes = plan.changes.iter().map(|change| {
            let what = format!("{} is {:?}", change.setting, change.from);
            let remedy = remedy::command(&change.setting, &change.to);
            let finding = Finding::of_network("host-setting", what, change.why.as_str(), remedy);
            let finding = finding.with("setting", change.setting.to_string());
            let finding = finding.with("from", change.from.as_str()).with("to", change.to.as_str());
            Finding { is_command: true, ..finding }
        });
        let missing = plan.missing_features.iter().filter(|feature| has_remedy(feature)).map(|feature| {
            let (what, why) = (feature.what.as_str(), feature.why.as_str());
            Finding::of_network("missing-feature", what, why, feature.alternative.as_str()).into_hint()
        });
        let clock = of_clock(&ClockQuality::now(), &facts, self.request.interface.as_deref());
        Ok(changes.chain(missing).chain(clock).collect())
    }

    /// Finds what keeps participants from communicating.
    fn of_network(&self) -> Result<Vec<Finding>> {
        let domain = Domain {
            configuration: self.domain.clone(),
            interface: self.request.interface.iter().cloned().collect(),
            peer: self.peer.clone(),
            server: self.server.clone(),
            transport: Vec::new(),
        };
        let settings = domain.settings()?;
        let participant = domain.join("takt doctor")?;
        let warnings = network::warnings(&participant);
        network::spin(&[&participant], self.wait)?;
        let on_loopback = network::on_loopback(&participant, &settings)?;
        let mut findings = network::unresponsive(&participant)?;
        findings.extend(network::unresponsive_peers(&participant, &settings)?);
        findings.extend(network::presentation(
            &participant.discovered_publications()?,
            &participant.discovered_subscriptions()?,
        ));
        findings.extend(network::multicast(&participant, &settings)?);
        findings.extend(network::ipv6_alone(&settings));
        findings.extend(on_loopback);
        findings.extend(warnings);
        findings.extend(network::mtu(&settings));
        if participant.discovered_participants()?.is_empty() {
            findings.extend(network::other_domains(participant.domain_id(), &settings)?);
        }
        participant.close().map_err(Error::Dds)?;
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_a_finding_unless_its_offset_is_known_well() {
        let facts = Facts::of(&Machine::default());
        let of = |source, offset_uncertainty_ns| {
            of_clock(&ClockQuality { source, offset_uncertainty_ns, cards: Vec::new() }, &facts, None)
        };
        assert!(of(Source::Kernel, Some(CLOCK_OFF_MAX_NS)).is_none());
        let finding = of(Source::None, None).expect("a finding");
        assert_eq!((finding.remedy.as_str(), finding.is_command), ("apt-get install chrony", true));
        let finding = of(Source::Chrony, Some(2_500_000)).expect("a finding");
        assert_eq!(
            (finding.what.as_str(), finding.is_command),
            ("the offset of the system clock can be up to 2.5 ms", false)
        );
    }
}
