//! `takt echo`: prints the samples of a topic. It learns the type and chooses policies that match
//! the writers.

use super::learning::{find_writer, hint, learn};
use super::policies::reader_for;
use super::receive::{Limits, Selection, receive};
use super::type_source::TypeSource;
use crate::domain::Domain;
use crate::finding::count;
use crate::output::note;
use clap::Args;
use takt::dynamic::DynamicTypeSupport;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt echo Square                      what anybody writes to Square, as it comes
  takt echo Square --json --count 10    ten samples, one JSON object a line
  takt echo Square --filter 'x > 5'     those samples only; writers that can do not send the rest
  takt echo Square --raw                the bytes, whatever the type
  takt echo State --idl robots.idl --type robots::State
  takt echo /chatter --msg std_msgs/msg/String
  takt echo Square --interface lo --peer 127.0.0.1 --timeout 5

It waits for the first writer of the topic: the type is learned from the topic's endpoints, reliability, durability and
partitions are those of the writers that are there then. Peers that announce no type (Fast DDS 2 without type information, for one) can be read with --raw, with
--idl, or with --type if takt has the type.";

/// `takt echo`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Echo {
    /// The topic
    topic: String,
    #[command(flatten)]
    source: TypeSource,
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    limits: Limits,
    /// Print bytes in hexadecimal, without learning the type
    #[arg(long, conflicts_with_all = ["filter", "type_name", "source"])]
    raw: bool,
    /// One JSON object a line instead of text
    #[arg(long)]
    json: bool,
}

impl Echo {
    /// Prints samples until a limit is reached or a signal arrives.
    ///
    /// # Errors
    /// The topic has no writer in time, its type cannot be learned, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let given = self.source.load()?;
        let participant = self.source.file.join(&self.domain, "takt echo")?;
        let topic = &self.source.file.topic(&self.topic);
        let endpoints = find_writer(&participant, topic, self.limits.deadline())?;
        let Some(writer) = endpoints.writers.first() else {
            let what = match endpoints.readers.len() {
                0 => format!("nobody writes or reads {topic}{}", hint(&participant, topic)?),
                readers => format!("nobody writes {topic}, which has {}", count(readers, "reader")),
            };
            return Err(Error::NoAnswer { what });
        };
        let type_name = writer.type_name.as_str();
        let type_ = match given {
            Some(type_) => type_,
            None if self.raw => DynamicTypeSupport::opaque(type_name, writer.guid.entity_id.has_key()),
            None => learn(&participant, topic, self.limits.deadline()).map_err(with_hint)?,
        };
        if type_.type_name() != type_name {
            note!("takt: warning: {topic} has the type {type_name}, {} does not match it", type_.type_name());
        }
        receive(&participant, topic, type_, reader_for(&endpoints), &self.selection, &self.limits, self.json)
    }
}

fn with_hint(error: Error) -> Error {
    match error {
        Error::Dds(takt::Error::TypeUnavailable(reason)) => Error::NoType {
            what: reason.to_string(),
            hint: "--raw prints the bytes, --idl FILE reads the type from IDL, --type NAME is a type that takt has",
        },
        error => error,
    }
}
