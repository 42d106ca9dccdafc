//! What a service is told when it starts.

use std::path::PathBuf;
use std::time::Duration;

/// Which domain, where to keep things, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// DDS domain.
    pub domain: u32,
    /// Network interfaces; all if empty.
    pub interfaces: Vec<String>,
    /// Hosts to ask directly.
    pub peers: Vec<String>,
    /// Directory of the store. Without one nothing is kept on disk: PERSISTENT writers are left alone.
    pub store: Option<PathBuf>,
    /// Topics to serve, `*` for any part of a name; all if empty.
    pub topics: Vec<String>,
    /// Payload bytes on disk at most, of all topics.
    pub disk_bytes_max: u64,
    /// Payload bytes in memory at most, of each topic.
    pub memory_bytes_max: u64,
    /// Samples of each topic at most, whatever DURABILITY_SERVICE says.
    pub samples_max: u32,
    /// Topics at most.
    pub topics_max: usize,
    /// How long to look for another service before a topic is served.
    pub settling_time: Duration,
    /// How long writers believe in the service after its death, and are held up if they keep all.
    pub lease_duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            domain: 0,
            interfaces: Vec::new(),
            peers: Vec::new(),
            store: None,
            topics: Vec::new(),
            disk_bytes_max: 1 << 30,
            memory_bytes_max: 64 << 20,
            samples_max: 65_536,
            topics_max: 256,
            settling_time: Duration::from_secs(1),
            lease_duration: Duration::from_secs(5),
        }
    }
}

impl Options {
    /// Whether a topic is to be served.
    #[must_use]
    pub fn serves(&self, topic_name: &str) -> bool {
        self.topics.is_empty() || self.topics.iter().any(|pattern| matches(pattern, topic_name))
    }
}

/// Whether `name` fits a pattern in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<_> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, fits) in [
            ("Square", "Square", true),
            ("Square", "Squares", false),
            ("Sq*", "Square", true),
            ("*are", "Square", true),
            ("S*a*e", "Square", true),
            ("S*x*e", "Square", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
