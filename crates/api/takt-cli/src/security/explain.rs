//! `takt security explain`: the permissions of a participant on a topic, the rules that grant them,
//! and the protection of the topic.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use takt_bench::Result;
use takt_bench::report::to_json;
use takt_security::documents::{AccessControl, Action, Decision, Permissions, Query, format_date_time};
use takt_security::identity::{SubjectName, UnixSeconds};

use super::enclave::{Enclave, GOVERNANCE};
use super::files::read;
use super::protection::{Layer, Samples, layers, samples};
use super::refused;
use super::time::{now, parse_time};
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security explain keys/enclaves/talker --topic HelloWorld
  takt security explain keys/enclaves/talker --topic HelloWorld --publish --json
  takt security explain keys/enclaves/arm --topic Pose --subscribe --partition left --domain 3
Line numbers refer to permissions.xml.";

/// `takt security explain`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Enclave of the participant
    #[arg(value_name = "ENCLAVE")]
    enclave: PathBuf,
    /// Topic name
    #[arg(long, value_name = "TOPIC")]
    topic: String,
    /// Explain only writing
    #[arg(long)]
    publish: bool,
    /// Explain only reading
    #[arg(long)]
    subscribe: bool,
    /// Partition of the publisher or subscriber; may be repeated [default: the default partition]
    #[arg(long, value_name = "PARTITION")]
    partition: Vec<String>,
    /// Domain ID [default: the first of the governance]
    #[arg(long, value_name = "ID")]
    domain: Option<u32>,
    /// Time of the evaluation [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<UnixSeconds>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Explanation {
    subject: String,
    domain: u32,
    topic: String,
    /// Time at which the permissions are evaluated.
    at: String,
    answers: Vec<Answer>,
    /// Protection of the topic. `None` if the governance has no rule for it.
    protection: Option<Protection>,
}

#[derive(Serialize)]
struct Answer {
    question: &'static str,
    is_allowed: bool,
    reason: String,
}

#[derive(Serialize)]
struct Protection {
    topic_rule: String,
    layers: [Layer; 5],
    samples: Samples,
}

impl Answer {
    fn new(question: &'static str, decision: takt_security::Result<Decision>) -> Self {
        match decision {
            Ok(Decision { is_allowed, reason }) => Self { question, is_allowed, reason },
            Err(error) => Self { question, is_allowed: false, reason: error.to_string() },
        }
    }
}

impl Explain {
    /// Prints the permissions and the protection of the topic.
    ///
    /// # Errors
    /// A file of the enclave is missing or wrong, or the governance has no rule for the domain.
    pub fn run(&self) -> Result<()> {
        let explanation = self.explanation(&Enclave::at(&self.enclave).existing()?)?;
        if self.json {
            return outln!("{}", to_json(&explanation)?);
        }
        print(&explanation)
    }

    fn explanation(&self, enclave: &Enclave) -> Result<Explanation> {
        let now = self.at.unwrap_or_else(now);
        let certificate = enclave.certificate()?;
        let subject = certificate.subject();
        let authority = enclave.permissions_authority()?;
        let permissions = enclave.permissions(&authority, now)?;
        let governance = enclave.governance(&authority, now)?;
        let first = governance.domain_rules.first().and_then(|rule| rule.domains.0.first());
        let domain = self.domain.unwrap_or_else(|| first.map_or(0, |(low, _)| *low));
        let path = enclave.file(GOVERNANCE);
        let access =
            AccessControl::new(authority, &read(&path)?, domain, now).map_err(|error| refused(&path, error))?;
        let identity = enclave.identity_authority()?.check(&certificate, now).map(|()| Decision {
            is_allowed: true,
            reason: format!(
                "certificate of the identity CA, valid until {}",
                format_date_time(certificate.not_after())
            ),
        });
        let mut answers = vec![Answer::new("authenticate", identity)];
        answers.push(Answer::new("join", join(&access, &permissions, subject, domain, now)));
        let partitions: Vec<&str> = self.partition.iter().map(String::as_str).collect();
        for action in self.actions() {
            let query =
                Query { action, domain_id: domain, topic_name: &self.topic, partitions: &partitions, data_tags: &[] };
            answers.push(Answer::new(action.name(), access.decide(&permissions, subject, query, now)));
        }
        let rule = access.domain_rule();
        let protection = rule.topic_rule(&self.topic).map(|topic| Protection {
            topic_rule: topic.topic_expression.clone(),
            layers: layers(rule, topic),
            samples: samples(rule, topic),
        });
        let (topic, at) = (self.topic.clone(), format_date_time(now));
        Ok(Explanation { subject: subject.to_string(), domain, topic, at, answers, protection: protection.ok() })
    }

    /// Returns the actions to explain: both, unless an option selects one.
    fn actions(&self) -> Vec<Action> {
        match (self.publish, self.subscribe) {
            (true, false) => vec![Action::Publish],
            (false, true) => vec![Action::Subscribe],
            _ => vec![Action::Publish, Action::Subscribe],
        }
    }
}

fn join(
    access: &AccessControl,
    permissions: &Permissions,
    subject: &SubjectName,
    domain: u32,
    now: UnixSeconds,
) -> takt_security::Result<Decision> {
    access.check_participant(permissions, subject, now)?;
    let reason = if access.domain_rule().enable_join_access_control {
        let grant = permissions.grant(subject, now)?;
        format!("grant \"{}\" has an allow_rule for domain {domain}", grant.name)
    } else {
        format!("the governance does not restrict joining of domain {domain}")
    };
    Ok(Decision { is_allowed: true, reason })
}

fn print(explanation: &Explanation) -> Result<()> {
    let Explanation { subject, domain, topic, answers, protection, .. } = explanation;
    outln!("participant \"{subject}\", topic \"{topic}\", domain {domain}")?;
    for Answer { question, is_allowed, reason } in answers {
        outln!("  {question:<13} {:<8} {reason}", if *is_allowed { "allowed" } else { "denied" })?;
    }
    let Some(Protection { topic_rule, layers, samples }) = protection else {
        return outln!("no topic_rule of the governance matches the topic: no endpoint of it can be created");
    };
    outln!("on the wire, by topic_rule \"{topic_rule}\"")?;
    for Layer { layer, kind, covers, effect } in layers {
        outln!("  {layer:<11} {kind:<8} {effect}: {covers}")?;
    }
    outln!("  {}", samples.sentence())
}
