//! Several controllers of one network: an elected leader, its records in etcd, and standbys that take over.
//!
//! | module | what it is |
//! |---|---|
//! | [`member`] | election, lease and records of one controller, sans-IO |
//! | [`etcd`] | its requests as JSON of etcd's HTTP gateway (API v3) |
//!
//! The leader has the key `PREFIX/leader`, which lives as long as its lease. The revision of etcd at which the key was made is the **generation** of
//! the leader: it grows with each election. Three things keep a leader that was replaced from writing:
//!
//! - It counts its lease from the moment when it asked for it, and steps down before etcd ends it.
//! - Each transaction of records holds only while the key is that of its generation.
//! - Switches know the generation from ROLE_REQUEST of OpenFlow, and make each earlier master a slave.

pub mod etcd;
pub mod member;

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

pub use member::{Event, Member};

/// Members of etcd that are named at most.
const ENDPOINTS_MAX: usize = 16;

/// A member of etcd: host and port of its clients' URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// Its host and port.
    pub fn authority(&self) -> &str {
        &self.0
    }

    /// Its addresses.
    ///
    /// # Errors
    /// The name is not known.
    pub fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        Ok(self.0.to_socket_addrs()?.collect())
    }
}

/// Where a cluster keeps its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The members of etcd; each is asked when the one before does not answer.
    pub endpoints: Vec<Endpoint>,
    /// Keys begin with it.
    pub prefix: String,
    /// How long a leader that says nothing stays leader; whole seconds. etcd has 2 s at least.
    pub lease: Duration,
    /// How often a standby tries to become leader.
    pub retry: Duration,
}

/// A text that names no cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterError(String);

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(what) = self;
        write!(f, "{what}; expected etcd:http://HOST:PORT, with commas between several members of etcd")
    }
}

impl std::error::Error for ClusterError {}

impl std::str::FromStr for Cluster {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let fail = |what: String| ClusterError(what);
        let urls = text.strip_prefix("etcd:").ok_or_else(|| fail(format!("{text:?} does not begin with etcd:")))?;
        let endpoint = |url: &str| {
            let authority = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
            let authority = authority.ok_or_else(|| fail(format!("{url:?} does not begin with http://")))?;
            let port =
                authority.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
            match port {
                Some(Ok(_)) => Ok(Endpoint(authority.to_owned())),
                _ => Err(fail(format!("{url:?} has no host and port"))),
            }
        };
        let endpoints = urls.split(',').map(endpoint).collect::<Result<Vec<_>, _>>()?;
        if endpoints.len() > ENDPOINTS_MAX {
            return Err(fail(format!("{} members of etcd are more than {ENDPOINTS_MAX}", endpoints.len())));
        }
        let (lease, retry) = (Duration::from_secs(3), Duration::from_millis(200));
        Ok(Self { endpoints, prefix: "takt-sdn".to_owned(), lease, retry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_is_read_from_its_urls() {
        let cluster: Cluster = "etcd:http://10.0.0.1:2379,http://[fd00::2]:2379/".parse().expect("it is well-formed");
        let authorities: Vec<&str> = cluster.endpoints.iter().map(Endpoint::authority).collect();
        assert_eq!(authorities, ["10.0.0.1:2379", "[fd00::2]:2379"]);
        for (text, expected) in [
            ("http://a:1", "does not begin with etcd:"),
            ("etcd:https://a:1", "does not begin with http://"),
            ("etcd:http://a", "has no host and port"),
            ("etcd:http://:2379", "has no host and port"),
            ("etcd:http://a:99999", "has no host and port"),
            ("etcd:", "does not begin with http://"),
        ] {
            let error = text.parse::<Cluster>().expect_err(text).to_string();
            assert!(error.contains(expected) && error.contains("expected etcd:http://HOST:PORT"), "{error}");
        }
    }
}
