//! `takt echo`: prints the samples of a topic. It learns the type and chooses policies that match
//! the writers.

use super::learning::{find_writer, hint, learn};
use super::output::Format;
use super::policies::reader_for;
use super::receive::{Limits, Selection, receive};
use super::several::{is_pattern, receive_all};
use super::type_source::TypeSource;
use crate::completion::topics;
use crate::domain::Domain;
use crate::finding::count;
use crate::output::note;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use takt::dynamic::DynamicTypeSupport;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt echo Square                      the samples of all writers of Square
  takt echo Square --json --count 10    ten samples, one JSON object a line
  takt echo Square --filter 'x > 5'     only matching samples; filtered by the writer if possible
  takt echo 'rt/*'                      samples of all topics that match, with the name of each
  takt echo Pose --field position.x     one member of each sample
  takt echo Square --raw                payloads in hexadecimal, of any type
  takt echo State --idl robots.idl --type robots::State
  takt echo /chatter --msg std_msgs/msg/String
  takt echo Square --interface lo --peer 127.0.0.1 --timeout 5

It waits for the first writer of the topic, obtains the type from the endpoints of the topic, and uses reliability,
durability and partitions of the writers discovered by then. If writers announce no type (such as Fast DDS 2 without
type information), use --raw, --idl, or --type with a built-in type.";

/// `takt echo`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Echo {
    /// Topic name, or a pattern with * and ?
    #[arg(add = ArgValueCompleter::new(topics))]
    topic: String,
    #[command(flatten)]
    source: TypeSource,
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    limits: Limits,
    /// Print payloads in hexadecimal, without the type
    #[arg(long, conflicts_with_all = ["filter", "type_name", "source"])]
    raw: bool,
    #[command(flatten)]
    format: Format,
}

impl Echo {
    /// Prints samples until a limit is reached or a signal arrives.
    ///
    /// # Errors
    /// The topic has no writer in time, its type cannot be learned, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        if is_pattern(&self.topic) {
            if self.raw || self.source.is_given() || self.selection.is_given() {
                let what = "--type, --idl, --msg, --filter and --raw are for one topic, not for a pattern";
                return Err(Error::Usage(what.to_owned()));
            }
            let participant = self.source.file.join(&self.domain, "takt echo")?;
            return receive_all(&participant, &self.topic, &self.limits, &self.format);
        }
        let given = self.source.load()?;
        let participant = self.source.file.join(&self.domain, "takt echo")?;
        let topic = &self.source.file.topic(&self.topic);
        let endpoints = find_writer(&participant, topic, self.limits.deadline())?;
        let Some(writer) = endpoints.writers.first() else {
            let what = match endpoints.readers.len() {
                0 => format!("topic {topic} has no writer or reader{}", hint(&participant, topic)?),
                readers => format!("topic {topic} has no writer, only {}", count(readers, "reader")),
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
            note!("takt: warning: topic {topic} has the type {type_name}; {} does not match", type_.type_name());
        }
        receive(&participant, topic, type_, reader_for(&endpoints), &self.selection, &self.limits, &self.format)
    }
}

fn with_hint(error: Error) -> Error {
    match error {
        Error::Dds(takt::Error::TypeUnavailable(reason)) => Error::NoType {
            what: reason.to_string(),
            hint: "use --raw to print payloads in hexadecimal, --idl FILE or --type NAME (built-in type)",
        },
        error => error,
    }
}
