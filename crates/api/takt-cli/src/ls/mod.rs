//! `takt ls`: the participants of a domain, their writers and readers, and the pairs that do not
//! match, with the reason.
//!
//! The command joins the domain with a participant without endpoints, receives discovery data for a
//! while, and leaves. It derives from the announced QoS whether two remote endpoints match, with
//! the check that endpoints apply themselves. If types of the same name differ, it requests and
//! compares their definitions. The list ends with the reasons why participants do not communicate
//! (`crate::network`).

mod catalogue;
#[cfg(feature = "security")]
mod secured;

use crate::domain::{Domain, seconds};
use crate::finding::Finding;
use crate::network;
use crate::output::out;
use crate::paint::Paint;
use crate::progress::during;
use catalogue::Catalogue;
use clap::Args;
use std::io::IsTerminal;
use std::time::Duration;
use takt::dynamic::TypeComparison;
use takt::{DomainParticipant, PublicationData, SubscriptionData};
use takt_bench::report::to_json;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_config::Settings;

/// Maximum time to wait for the definitions of two types that differ.
const TYPE_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between two lists with `--watch`.
const WATCH_PERIOD: Duration = Duration::from_secs(1);
/// Clears a terminal and moves the cursor to its first line.
const CLEAR_SCREEN: &str = "\x1b[2J\x1b[H";

const EXAMPLES: &str = "\
Examples:
  takt ls                              participants and topics of domain 0, on all interfaces
  takt ls --domain 7 --wait 5          listens longer
  takt ls --all                        lists every pair, not only those that do not match
  takt ls --watch                      prints the list again whenever it changes
  takt ls --interface lo --json
  takt ls --peer 192.0.2.7             includes a host that multicast does not reach

The findings at the end explain why participants do not communicate.";

/// `takt ls`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    #[command(flatten)]
    domain: Domain,
    /// Time to listen, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    wait: Duration,
    /// List every pair of a writer and a reader
    #[arg(long)]
    all: bool,
    /// Print the list again whenever it changes, until a signal arrives
    #[arg(long)]
    watch: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// View of the domain by the participant of the command.
struct DomainView<'a> {
    participant: &'a DomainParticipant,
    /// Comparisons of types so far: a writer and a reader for each pair of types, and the result.
    compared: Vec<(PublicationData, SubscriptionData, TypeComparison)>,
}

impl DomainView<'_> {
    /// Returns the entities that are known now, with these findings.
    fn catalogue(&mut self, findings: Vec<Finding>) -> Result<Catalogue> {
        let participant = self.participant;
        let (writers, readers) = (participant.discovered_publications()?, participant.discovered_subscriptions()?);
        let catalogue = Catalogue::new(
            participant.domain_id(),
            &participant.discovered_participants()?,
            &writers,
            &readers,
            |writer, reader| self.compare_types(writer, reader),
        );
        Ok(catalogue.with_findings(&participant.diagnostics().silent_participants()?, findings))
    }

    /// Compares the types of a writer and a reader, once for each pair of types.
    fn compare_types(&mut self, writer: &PublicationData, reader: &SubscriptionData) -> TypeComparison {
        let is_known = |(w, r, _): &&(PublicationData, SubscriptionData, TypeComparison)| {
            w.type_information == writer.type_information
                && r.type_information == reader.type_information
                && w.qos.data_representation == writer.qos.data_representation
                && r.qos.type_consistency == reader.qos.type_consistency
        };
        if let Some((_, _, comparison)) = self.compared.iter().find(is_known) {
            return comparison.clone();
        }
        // The definition of a type is not available if its participant has left meanwhile. The
        // types then count as compatible.
        let timeout = if stopped() { Duration::ZERO } else { TYPE_TIMEOUT };
        let comparison = self.participant.compare_types(writer, reader, timeout);
        let comparison = comparison.unwrap_or(TypeComparison::Compatible);
        self.compared.push((writer.clone(), reader.clone(), comparison.clone()));
        comparison
    }
}

impl Ls {
    /// Listens to discovery and prints the domain.
    ///
    /// # Errors
    /// The domain cannot be joined, or the output cannot be written.
    pub fn run(&self) -> Result<()> {
        let settings = self.domain.settings()?;
        let participant = self.domain.join("takt ls")?;
        during("listening for announcements", || network::spin(&[&participant], self.wait))?;
        let mut view = DomainView { participant: &participant, compared: Vec::new() };
        let findings = during("checking the network", || self.findings(&participant, &settings))?;
        let shown = self.text(&view.catalogue(findings)?)?;
        out!("{shown}")?;
        if self.watch {
            self.print_changes(&mut view, shown)?;
        }
        participant.close().map_err(Error::Dds)
    }

    /// Prints the list whenever it changes, until a signal arrives. Of the findings, only
    /// unresponsive participants are checked again.
    fn print_changes(&self, view: &mut DomainView<'_>, mut shown: String) -> Result<()> {
        loop {
            match network::spin(&[view.participant], WATCH_PERIOD) {
                Err(Error::Stopped) => return Ok(()),
                result => result?,
            }
            if stopped() {
                return Ok(());
            }
            let text = self.text(&view.catalogue(network::unresponsive(view.participant)?)?)?;
            if text != shown {
                // A terminal shows the present list only; a file contains all lists.
                out!("{}{text}", if std::io::stdout().is_terminal() { CLEAR_SCREEN } else { "\n" })?;
                shown = text;
            }
        }
    }

    fn text(&self, catalogue: &Catalogue) -> Result<String> {
        if self.json {
            Ok(format!("{}\n", to_json(catalogue)?))
        } else {
            Ok(catalogue.display(self.all, Paint::of_output()))
        }
    }

    /// Returns the reasons why participants do not communicate. If no participant is discovered,
    /// it also tests multicast and searches other domains.
    fn findings(&self, participant: &DomainParticipant, settings: &Settings) -> Result<Vec<Finding>> {
        // This check runs first: it takes time, in which slow participants may still answer.
        let on_loopback = network::on_loopback(participant, settings)?;
        let mut findings = network::unresponsive(participant)?;
        findings.extend(network::unresponsive_peers(participant, settings)?);
        let participants = participant.discovered_participants()?;
        #[cfg(feature = "security")]
        {
            findings.extend(secured::refused(participant)?);
            findings.extend(secured::unauthenticated_pairs(&participants));
        }
        let none_discovered = participants.is_empty();
        findings.extend(network::ipv6_alone(settings).into_iter().filter(|one| one.is_error || none_discovered));
        findings.extend(on_loopback);
        if none_discovered {
            findings.extend(network::multicast(participant, settings)?);
            findings.extend(network::other_domains(participant.domain_id(), settings)?);
        }
        Ok(findings)
    }
}
