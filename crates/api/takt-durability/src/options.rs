//! Startup options of a durability service.

use std::path::PathBuf;
use std::time::Duration;
use takt_wire::compat::fnmatch;

/// Domain, storage location and limits of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Domain id.
    pub domain: u32,
    /// Network interfaces; all interfaces if empty.
    pub interfaces: Vec<String>,
    /// Peers to which discovery is also sent by unicast.
    pub peers: Vec<String>,
    /// Directory of the store. Without it nothing is stored on disk, and PERSISTENT writers are
    /// ignored.
    pub store: Option<PathBuf>,
    /// Topics to serve; `*` matches any part of a name; all topics if empty.
    pub topics: Vec<String>,
    /// Maximum number of payload bytes on disk, for all topics together.
    pub disk_bytes_max: u64,
    /// Maximum number of payload bytes in memory, per topic.
    pub memory_bytes_max: u64,
    /// Maximum number of samples per topic, regardless of DURABILITY_SERVICE.
    pub samples_max: u32,
    /// Maximum number of topics.
    pub topics_max: usize,
    /// Time for discovering another service before a topic is served.
    pub settling_time: Duration,
    /// Lease duration of the service's participants. After a crash of the service, KEEP_ALL writers
    /// are blocked for this time.
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
    /// Reports whether the topic is served.
    #[must_use]
    pub fn serves(&self, topic_name: &str) -> bool {
        self.topics.is_empty() || self.topics.iter().any(|pattern| fnmatch(pattern, topic_name))
    }
}
