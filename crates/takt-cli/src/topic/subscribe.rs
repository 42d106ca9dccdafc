//! `takt sub`: prints the samples of a topic, with policies and optionally a type that the user
//! chooses.

use super::learning::{Endpoints, find, learn};
use super::policies::{PolicyOptions, reader_for};
use super::receive::{Limits, Selection, receive};
use super::type_source::TypeSource;
use crate::domain::Domain;
use clap::Args;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt sub Square --type ShapeType                        a type that takt has
  takt sub Square --reliable --transient-local            a type that is learned; exactly these policies
  takt sub State --idl robots.idl --type robots::State    a type of a file of IDL
  takt sub Square --partition left --partition right --json --count 1

Without options a reader is BEST_EFFORT, VOLATILE and KEEP_LAST 256, in no partition. takt echo asks for what there is.";

/// `takt sub`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Sub {
    /// The topic
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
    /// One JSON object a line instead of text
    #[arg(long)]
    json: bool,
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
        self.policies.apply_to_reader(&mut qos, &mut subscriber);
        receive(&participant, topic, type_, (qos, subscriber), &self.selection, &self.limits, self.json)
    }
}

fn with_hint(error: Error) -> Error {
    match error {
        Error::Dds(takt::Error::TypeUnavailable(reason)) => Error::NoType {
            what: reason.to_string(),
            hint: "--idl FILE reads the type from IDL, --type NAME is a type that takt has; takt echo --raw prints the bytes",
        },
        error => error,
    }
}
