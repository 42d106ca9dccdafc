//! `takt type`: the type of a topic as IDL.

use super::learning::{find, learn};
use super::library;
use crate::domain::{Domain, seconds};
use crate::output::outln;
use clap::Args;
use serde::Serialize;
use std::time::{Duration, Instant};
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt type Square                 the type of topic Square, learned from whoever has it
  takt type --own ShapeType        a type that takt has
  takt type Square --json";

/// `takt type`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ShowType {
    /// The topic
    #[arg(required_unless_present = "own")]
    topic: Option<String>,
    /// Print a type that takt has instead: ShapeType, takt::Text
    #[arg(long, value_name = "NAME", conflicts_with = "topic")]
    own: Option<String>,
    #[command(flatten)]
    domain: Domain,
    /// How long to look for the topic and to wait for its type
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// One JSON object instead of IDL
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    topic: Option<&'a str>,
    #[serde(rename = "type")]
    type_name: &'a str,
    idl: &'a str,
}

impl ShowType {
    /// Learns and prints.
    ///
    /// # Errors
    /// The type cannot be learned, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let type_ = match (&self.own, &self.topic) {
            (Some(name), _) => library::find(name)?,
            (None, topic) => {
                let topic = topic.as_deref().unwrap_or_default();
                let participant = self.domain.join("takt type")?;
                let deadline = Some(Instant::now() + self.timeout);
                let endpoints = find(&participant, topic, deadline)?;
                if endpoints.writers.is_empty() && endpoints.readers.is_empty() {
                    return Err(Error::NoAnswer { what: format!("nobody writes or reads {topic}") });
                }
                learn(&participant, topic, deadline)?
            }
        };
        let idl = type_.dynamic_type().map(|type_| type_.to_idl()).unwrap_or_default();
        if self.json {
            let report = Report { topic: self.topic.as_deref(), type_name: type_.type_name(), idl: &idl };
            outln!("{}", takt_bench::report::to_json(&report)?)?;
        } else {
            outln!("{}", idl.trim_end())?;
        }
        Ok(())
    }
}
