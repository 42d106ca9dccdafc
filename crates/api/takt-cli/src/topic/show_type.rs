//! `takt type`: prints the type of a topic or of a file as IDL or as Rust.

use super::learning::{find, hint, learn};
use super::library;
use super::type_source::TypeFile;
use crate::completion::topics;
use crate::domain::{Domain, seconds};
use crate::output::outln;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;
use std::time::{Duration, Instant};
use takt::xtypes::dynamic::DynamicType;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt type Square                 the type of topic Square, as its endpoints announce it
  takt type Square --rust          as Rust with #[derive(takt::DdsType)]
  takt type --own ShapeType        a built-in type
  takt type --idl robots.idl --type robots::State --rust
  takt type --msg std_msgs/msg/String
  takt type Square --json";

/// `takt type`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ShowType {
    /// Topic name
    #[arg(add = ArgValueCompleter::new(topics), required_unless_present_any = ["own", "source"], conflicts_with = "source")]
    topic: Option<String>,
    /// Print a built-in type instead: ShapeType, takt::Text
    #[arg(long, value_name = "NAME", conflicts_with_all = ["topic", "source"])]
    own: Option<String>,
    #[command(flatten)]
    file: TypeFile,
    /// Type in the file of --idl [default: the only one that no other type contains]
    #[arg(long = "type", value_name = "NAME", requires = "idl")]
    type_name: Option<String>,
    #[command(flatten)]
    domain: Domain,
    /// Time to wait for the topic and its type, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// Print Rust with #[derive(takt::DdsType)] instead of IDL; the type identifier stays the same
    #[arg(long)]
    rust: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    topic: Option<&'a str>,
    #[serde(rename = "type")]
    type_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    type_hash: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idl: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rust: Option<&'a str>,
}

impl ShowType {
    /// Finds the type and prints it.
    ///
    /// # Errors
    /// The type cannot be learned, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let type_ = match (self.file.load(self.type_name.as_deref())?, &self.own, &self.topic) {
            (Some(type_), ..) => type_,
            (None, Some(name), _) => library::find(name)?,
            (None, None, topic) => {
                let topic = topic.as_deref().unwrap_or_default();
                let participant = self.domain.join("takt type")?;
                let deadline = Some(Instant::now() + self.timeout);
                let endpoints = find(&participant, topic, deadline)?;
                if endpoints.writers.is_empty() && endpoints.readers.is_empty() {
                    return Err(Error::NoAnswer {
                        what: format!("topic {topic} has no writer or reader{}", hint(&participant, topic)?),
                    });
                }
                learn(&participant, topic, deadline)?
            }
        };
        let print = |type_: &DynamicType| if self.rust { type_.to_rust() } else { type_.to_idl() };
        let text = type_.dynamic_type().map(print).unwrap_or_default();
        let type_hash = self.file.type_hash()?;
        if self.json {
            let type_hash = type_hash.as_deref();
            let (idl, rust) = if self.rust { (None, Some(text.as_str())) } else { (Some(text.as_str()), None) };
            let report = Report { topic: self.topic.as_deref(), type_name: type_.type_name(), type_hash, idl, rust };
            outln!("{}", takt_bench::report::to_json(&report)?)?;
        } else {
            if let Some(type_hash) = type_hash {
                outln!("// {type_hash}")?;
            }
            outln!("{}", text.trim_end())?;
        }
        Ok(())
    }
}
