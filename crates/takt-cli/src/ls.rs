//! `takt ls`: who is in a domain, what they write and read, and which of them match, or why they do not.
//!
//! It joins the domain as a participant without endpoints, listens to discovery for a while, and leaves. That two
//! endpoints of others match is concluded from what they announce, by the check that they are to make themselves; where
//! the types of one name differ, their definitions are asked for and compared.

mod catalogue;

use crate::domain::{Domain, STEP, seconds};
use crate::output::{out, outln};
use catalogue::Catalogue;
use clap::Args;
use std::time::{Duration, Instant};
use takt::{DomainParticipant, PublicationData, SubscriptionData};
use takt_bench::report::to_json;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

/// How long to wait for the definitions of two types that differ.
const TYPE_TIMEOUT: takt::Duration = takt::Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  takt ls                              what is in domain 0, on all interfaces
  takt ls --domain 7 --wait 5          look for longer
  takt ls --interface lo --json
  takt ls --peer 192.0.2.7             ask a host that multicast does not reach";

/// `takt ls`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    #[command(flatten)]
    domain: Domain,
    /// How long to listen
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    wait: Duration,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Compares types, each pair of types once.
struct Types<'a> {
    participant: &'a DomainParticipant,
    /// What was compared before, and what came of it.
    compared: Vec<(PublicationData, SubscriptionData, Option<String>)>,
}

impl Types<'_> {
    fn difference(&mut self, writer: &PublicationData, reader: &SubscriptionData) -> Option<String> {
        let is_known = |(w, r, _): &&(PublicationData, SubscriptionData, Option<String>)| {
            w.type_information == writer.type_information
                && r.type_information == reader.type_information
                && w.qos.data_representation == writer.qos.data_representation
                && r.qos.type_consistency == reader.qos.type_consistency
        };
        if let Some((_, _, difference)) = self.compared.iter().find(is_known) {
            return difference.clone();
        }
        // Who has left meanwhile has no difference with anybody.
        let difference = self.participant.type_difference(writer, reader, TYPE_TIMEOUT).unwrap_or_default();
        self.compared.push((writer.clone(), reader.clone(), difference.clone()));
        difference
    }
}

impl Ls {
    /// Looks and prints.
    ///
    /// # Errors
    /// The domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let participant = self.domain.join("takt ls")?;
        let deadline = Instant::now() + self.wait;
        while !stopped() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            participant.spin_once(left.min(STEP).into())?;
        }
        let (publications, subscriptions) =
            (participant.discovered_publications()?, participant.discovered_subscriptions()?);
        let mut types = Types { participant: &participant, compared: Vec::new() };
        let catalogue = Catalogue::new(
            participant.domain_id(),
            &participant.discovered_participants()?,
            &publications,
            &subscriptions,
            |writer, reader| types.difference(writer, reader),
        );
        participant.close().map_err(Error::Dds)?;
        if self.json {
            outln!("{}", to_json(&catalogue)?)?;
        } else {
            out!("{catalogue}")?;
        }
        Ok(())
    }
}
