//! Values that a shell completes while the command line is typed: topics of the domain, and network
//! interfaces.
//!
//! The shell starts `takt` with the variable [`VARIABLE`] and the words of the line. Topics are
//! those that a participant discovers within [`TOPICS_TIME`] in the domain, and by the options, of
//! the line. A failure completes nothing: a message would disturb the line.

use crate::domain::{Domain, DomainConfig, prepare_observer};
use crate::network::{interface_names, spin};
use clap_complete::engine::CompletionCandidate;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};
use takt::Runtime;
use takt_bench::{Error, Result};

/// Variable by which a shell requests completions.
pub const VARIABLE: &str = "TAKT_COMPLETE";

/// Longest time of the search for topics.
const TOPICS_TIME: Duration = Duration::from_millis(1000);
/// Time without a new topic after which the search ends.
const QUIET_TIME: Duration = Duration::from_millis(250);
/// Step of the search.
const STEP: Duration = Duration::from_millis(50);

/// Returns the topics that begin with what is typed.
pub fn topics(typed: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let Ok(topics) = discover(&domain_of(&words)) else { return Vec::new() };
    candidates(topics, typed)
}

/// Returns the network interfaces that begin with what is typed.
pub fn interfaces(typed: &OsStr) -> Vec<CompletionCandidate> {
    candidates(interface_names(), typed)
}

fn candidates(names: impl IntoIterator<Item = String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let names = names.into_iter().filter(|name| name.starts_with(&*typed) && !name.contains(char::is_control));
    names.map(CompletionCandidate::new).collect()
}

/// Returns the domain of a line that may be incomplete.
fn domain_of(words: &[OsString]) -> Domain {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let values = |option: &str| -> Vec<String> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            match word.strip_prefix(option) {
                Some("") => found.extend(words.get(at + 1).copied()),
                Some(rest) => found.extend(rest.strip_prefix('=')),
                None => {}
            }
        }
        found.iter().flat_map(|text: &&str| text.split(',')).filter(|one| !one.is_empty()).map(str::to_owned).collect()
    };
    Domain {
        configuration: DomainConfig {
            domain: values("--domain").last().and_then(|domain| crate::domain::domain_id(domain).ok()), // tidy-allow(dropped-cause): not typed yet
            config: values("--config").into_iter().map(Into::into).collect(),
        },
        interface: values("--interface"),
        peer: values("--peer"),
        server: values("--server"),
        transport: Vec::new(),
    }
}

/// Returns the topics of a domain that are announced within a short time.
fn discover(domain: &Domain) -> Result<BTreeSet<String>> {
    let participant =
        prepare_observer(&domain.settings()?)?.name("takt completion").runtime(Runtime::Inline).build()?;
    let (begin, mut changed) = (Instant::now(), Instant::now());
    let mut topics = BTreeSet::new();
    while begin.elapsed() < TOPICS_TIME && (topics.is_empty() || changed.elapsed() < QUIET_TIME) {
        spin(&[&participant], STEP)?;
        let (writers, readers) = (participant.discovered_publications()?, participant.discovered_subscriptions()?);
        let names = writers.into_iter().map(|writer| writer.topic_name);
        for name in names.chain(readers.into_iter().map(|reader| reader.topic_name)) {
            if topics.insert(name) {
                changed = Instant::now();
            }
        }
    }
    participant.close().map_err(Error::Dds)?;
    Ok(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_an_incomplete_line_select_the_domain() {
        let words = ["takt", "--", "takt", "echo", "--domain", "7", "--interface=lo,eth0", "--peer", "127.0.0.1", "Sq"];
        let domain = domain_of(&words.map(OsString::from));
        assert_eq!(domain.configuration.domain, Some(7));
        assert_eq!(domain.interface, ["lo", "eth0"]);
        assert_eq!(domain.peer, ["127.0.0.1"]);
        let domain = domain_of(&["takt", "echo", "--domain"].map(OsString::from));
        assert_eq!((domain.configuration.domain, domain.interface), (None, Vec::new()));
    }

    #[test]
    fn candidates_begin_with_what_is_typed() {
        let names = ["Square", "Circle", "Sq\u{1b}uare"].map(str::to_owned);
        let found = candidates(names, OsStr::new("Sq"));
        assert_eq!(found.iter().map(|one| one.get_value().to_owned()).collect::<Vec<_>>(), ["Square"]);
    }
}
