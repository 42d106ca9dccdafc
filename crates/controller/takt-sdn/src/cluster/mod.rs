//! Controller cluster: an elected leader, its records in etcd, and standbys that take over.
//!
//! | module | contents |
//! |---|---|
//! | [`member`] | election, lease and records of one controller, sans-IO |
//! | [`etcd`] | requests in the JSON of etcd's HTTP gateway (API v3) |
//!
//! The leader owns the key `PREFIX/leader`, which exists as long as its lease. The etcd revision at
//! which the key was created is the **generation** of the leader; it grows with each election.
//! Three mechanisms prevent a replaced leader from writing:
//!
//! - It counts its lease from the time of its request, and steps down before etcd ends the lease.
//! - Each transaction of records succeeds only while the key has its generation.
//! - Switches get the generation in ROLE_REQUEST of OpenFlow, and make each earlier master a slave.

pub mod etcd;
pub mod member;

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

pub use member::{Event, Member};

/// Maximum number of etcd members in a cluster's description.
const ENDPOINTS_MAX: usize = 16;

/// An etcd member: host and port of its client URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// Returns host and port.
    pub fn authority(&self) -> &str {
        &self.0
    }

    /// Resolves the addresses.
    ///
    /// # Errors
    /// The name cannot be resolved.
    pub fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        Ok(self.0.to_socket_addrs()?.collect())
    }
}

/// Location and timing of a cluster's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Members of etcd; each is tried when the previous one does not answer.
    pub endpoints: Vec<Endpoint>,
    /// Prefix of all keys.
    pub prefix: String,
    /// Lease of the leader in whole seconds: the time for which a silent leader stays leader. The
    /// minimum of etcd is 2 s.
    pub lease: Duration,
    /// Interval at which a standby tries to become leader.
    pub retry: Duration,
}

/// Error of a text that describes no cluster.
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
            return Err(fail(format!("{} members of etcd exceed the maximum of {ENDPOINTS_MAX}", endpoints.len())));
        }
        let (lease, retry) = (Duration::from_secs(3), Duration::from_millis(200));
        Ok(Self { endpoints, prefix: "takt-sdn".to_owned(), lease, retry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_is_parsed_from_its_urls() {
        let cluster: Cluster = "etcd:http://10.0.0.1:2379,http://[fd00::2]:2379/".parse().expect("valid");
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
