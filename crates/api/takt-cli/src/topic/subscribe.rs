//! `takt sub`: prints the samples of a topic, with policies and optionally a type that the user
//! chooses.

use super::learning::{Endpoints, find, learn};
use super::output::Format;
use super::policies::{PolicyOptions, reader_for};
use super::receive::{Limits, Selection, receive};
use super::type_source::TypeSource;
use crate::completion::topics;
use crate::domain::Domain;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt sub Square --type ShapeType                        a built-in type
  takt sub Square --reliable --transient-local            the announced type; exactly these policies
  takt sub State --idl robots.idl --type robots::State    a type in an IDL file
  takt sub Square --partition left --partition right --json --count 1

Without options: BEST_EFFORT, VOLATILE, KEEP_LAST 256, default partition. takt echo adopts the QoS of the writers.";

/// `takt sub`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Sub {
    /// Topic name
    #[arg(add = ArgValueCompleter::new(topics))]
    topic: String,
    #[command(flatten)]
    source: TypeSource,
    #[command(flatten)]
    policies: PolicyOptions,
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    format: Format,
}

impl Sub {
    /// Prints samples until a limit is reached or a signal arrives.
    ///
    /// # Errors
    /// There is no type, no sample arrives in time, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let own = self.source.load()?;
        let participant = self.source.file.join(&self.domain, "takt sub")?;
        let topic = &self.source.file.topic(&self.topic);
        let type_ = match own {
            Some(type_) => type_,
            None => {
                find(&participant, topic, self.limits.deadline())?;
                learn(&participant, topic, self.limits.deadline()).map_err(with_hint)?
            }
        };
        let (mut qos, mut subscriber) = reader_for(&Endpoints { writers: Vec::new(), readers: Vec::new() });
        qos.history = takt::qos::History::KeepLast(256);
        self.policies.apply(&mut qos, &mut subscriber);
        receive(&participant, topic, type_, (qos, subscriber), &self.selection, &self.limits, &self.format)
    }
}

fn with_hint(error: Error) -> Error {
    match error {
        Error::Dds(takt::Error::TypeUnavailable(reason)) => Error::NoType {
            what: reason.to_string(),
            hint: "use --idl FILE, --type NAME (built-in type), or takt echo --raw to print payloads in hexadecimal",
        },
        error => error,
    }
}
