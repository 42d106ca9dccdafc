//! `takt sub`: prints the samples of a topic, with policies and, if wanted, a type that the user chooses.

use super::learning::{Endpoints, find, learn};
use super::library;
use super::policies::{PolicyOptions, reader_for};
use super::receive::{Limits, Selection, receive};
use crate::domain::Domain;
use clap::Args;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt sub Square --type ShapeType                        a type that takt has
  takt sub Square --reliable --transient-local            a type that is learned; exactly these policies
  takt sub Square --partition left --partition right --json --count 1

Without options a reader is BEST_EFFORT, VOLATILE and KEEP_LAST 256, in no partition. takt echo asks for what there is.";

/// `takt sub`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Sub {
    /// The topic
    topic: String,
    /// A type that takt has: ShapeType, takt::Text [default: learned]
    #[arg(long = "type", value_name = "NAME")]
    type_name: Option<String>,
    #[command(flatten)]
    policies: PolicyOptions,
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    limits: Limits,
    /// One JSON object a line instead of text
    #[arg(long)]
    json: bool,
}

impl Sub {
    /// Prints until it is time to end.
    ///
    /// # Errors
    /// There is no type, nothing comes in time, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let own = self.type_name.as_deref().map(library::find).transpose()?;
        let participant = self.domain.join("takt sub")?;
        let type_ = match own {
            Some(type_) => type_,
            None => {
                find(&participant, &self.topic, self.limits.deadline())?;
                learn(&participant, &self.topic, self.limits.deadline()).map_err(with_hint)?
            }
        };
        let (mut qos, mut subscriber) = reader_for(&Endpoints { writers: Vec::new(), readers: Vec::new() });
        qos.history = takt::qos::History::KeepLast(256);
        self.policies.apply_to_reader(&mut qos, &mut subscriber);
        receive(&participant, &self.topic, type_, (qos, subscriber), &self.selection, &self.limits, self.json)
    }
}

fn with_hint(error: Error) -> Error {
    match error {
        Error::Dds(takt::Error::TypeUnavailable(reason)) => Error::NoType {
            what: reason.to_string(),
            hint: "--type NAME reads it as a type that takt has; takt echo --raw prints the bytes",
        },
        error => error,
    }
}
