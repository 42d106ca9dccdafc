//! Settings of a link. They are part of every report, so that a figure can be reproduced.

use crate::complex::Complex;
use crate::dds::DdsLink;
use crate::error::{Error, Result};
use crate::link::{Idle, Link, Notify};
use crate::machine::interface_ipv4;
use crate::numbered::Numbered;
use crate::pauses::PausingLink;
use crate::payload::{Blob, Form};
use crate::raw_shm::RawShm;
use crate::raw_udp::RawUdp;
use crate::wire::RawWire;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use takt::{DomainParticipantBuilder, TimingPlan};

/// Transport that carries the samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Takt over UDP.
    #[default]
    Udp,
    /// Takt over shared memory, with discovery over UDP.
    Shm,
    /// Plain shared memory without middleware: the baseline of `Shm`.
    RawShm,
    /// Plain UDP sockets without middleware: the baseline of `Udp`.
    RawUdp,
    /// Plain datagrams over a named transport, without middleware: the baseline of `Named`.
    RawNamed(String),
    /// Takt over a named transport, such as `xdp:eth0`; see [`takt::transport::choice`].
    #[serde(untagged)]
    Named(String),
}

/// Thread that drives the participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// Application thread: no other thread, no lock.
    #[default]
    Inline,
    /// Separate receive thread.
    Shared,
}

/// HISTORY of reader and writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// All samples, within the resource limits.
    #[default]
    KeepAll,
    /// Last samples, up to this depth.
    KeepLast(u32),
}

/// DURABILITY of writer and reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// No samples are kept for late joiners.
    #[default]
    Volatile,
    /// The writer keeps samples for late joiners.
    TransientLocal,
    /// A durability service keeps samples in memory.
    Transient,
    /// A durability service keeps samples on disk.
    Persistent,
}

/// Part of a sample that a program writes and reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Touch {
    /// Only the marks.
    #[default]
    Marks,
    /// One octet of each cache line.
    Lines,
    /// Every octet.
    All,
}

/// Default name of a participant.
pub const NAME: &str = "takt-bench";

/// Preparation of a link's participant by settings that a link does not have, such as those of a
/// configuration file.
#[derive(Clone)]
pub struct Preparation {
    /// Creates the builder. The link sets name, interface, runtime, idle behavior and shared memory
    /// on it.
    pub builder: Arc<dyn Fn() -> Result<DomainParticipantBuilder> + Send + Sync>,
    /// Whether the settings name the peers to announce to. Otherwise the link announces to its
    /// other end.
    pub has_peers: bool,
}

impl fmt::Debug for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preparation").field("has_peers", &self.has_peers).finish_non_exhaustive()
    }
}

impl PartialEq for Preparation {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.builder, &other.builder) && self.has_peers == other.has_peers
    }
}

impl Eq for Preparation {}

/// Settings of a link, except its topics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSpec {
    /// Name of the participant and of its executor.
    pub name: String,
    /// Timing plan of topics from a system file.
    #[serde(skip)]
    pub timing_plan: Option<TimingPlan>,
    /// Preparation of the participant; `None`: a new builder of the domain.
    #[serde(skip)]
    pub preparation: Option<Preparation>,
    /// Transport that carries the samples.
    pub transport: Transport,
    /// Thread that drives the participant.
    pub runtime: Runtime,
    /// Behavior of a waiting thread.
    pub idle: Idle,
    /// Method by which the program is notified of data.
    pub notify: Notify,
    /// DDS domain ID.
    pub domain: u32,
    /// Network interface that carries all traffic.
    pub interface: String,
    /// Address of the other end, if that is another host.
    pub peer: Option<Ipv4Addr>,
    /// Discovery server by which participants discover each other, instead of multicast and of
    /// announcements to the other end.
    pub discovery_server: Option<String>,
    /// Directory with the files of DDS Security.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<String>,
    /// Whether threads pause periodically ([`pauses`](crate::pauses)), for spinning with real-time
    /// priority.
    #[serde(rename = "rests")]
    pub pauses: bool,
    /// Whether RELIABILITY is RELIABLE; otherwise BEST_EFFORT.
    pub reliable: bool,
    /// HISTORY.
    pub history: History,
    /// DURABILITY.
    pub durability: Durability,
    /// LATENCY_BUDGET of both sides: maximum time that a sample may wait at the writer to share a
    /// datagram with others.
    pub latency_budget: Duration,
    /// Data type that carries the payload.
    pub form: Form,
    /// Percentage of samples that pass the reader's content filter; only for [`Form::Numbered`].
    pub pass_percent: Option<u8>,
    /// Minimum number of readers for sending to a multicast group; `None`: Takt's default.
    pub multicast_readers_min: Option<usize>,
    /// Part of a loaned sample that is written and read.
    pub touch: Touch,
    /// Maximum size of a payload that will be written, bytes.
    pub size_max: usize,
    /// Number of samples that a stream writes with one call; 1: each separately. A listener takes
    /// as many at once, but at least 64.
    pub batch: usize,
    /// Whether payloads are written into loaned memory and read in place. Only the part given by
    /// `touch` is written and read; the rest of a payload keeps its previous contents.
    pub loan: bool,
}

impl Default for LinkSpec {
    fn default() -> Self {
        Self {
            name: NAME.into(),
            timing_plan: None,
            preparation: None,
            transport: Transport::default(),
            runtime: Runtime::default(),
            idle: Idle::default(),
            notify: Notify::default(),
            domain: 0,
            interface: "lo".into(),
            peer: None,
            discovery_server: None,
            security: None,
            pauses: false,
            reliable: true,
            history: History::default(),
            durability: Durability::default(),
            latency_budget: Duration::ZERO,
            form: Form::default(),
            pass_percent: None,
            multicast_readers_min: None,
            touch: Touch::default(),
            size_max: 64,
            batch: 1,
            loan: false,
        }
    }
}

impl LinkSpec {
    /// Opens the link: a writer on one topic, a reader on another, or only one of them.
    ///
    /// # Errors
    /// The transport does not support the settings, the interface does not exist, or the middleware
    /// refused.
    pub fn open(&self, write: Option<&str>, read: Option<&str>) -> Result<Box<dyn Link>> {
        let link = self.open_without_pauses(write, read)?;
        Ok(if self.pauses { Box::new(PausingLink(link)) } else { link })
    }

    fn open_without_pauses(&self, write: Option<&str>, read: Option<&str>) -> Result<Box<dyn Link>> {
        match &self.transport {
            Transport::Udp | Transport::Shm | Transport::Named(_) => match self.form {
                Form::Octets => Ok(Box::new(DdsLink::<Blob>::new(self, write, read)?)),
                Form::Complex => Ok(Box::new(DdsLink::<Complex>::new(self, write, read)?)),
                Form::Numbered => Ok(Box::new(DdsLink::<Numbered>::new(self, write, read)?)),
            },
            _ if self.form != Form::Octets => {
                Err(Error::Usage("plain datagrams and plain memory carry octets only; set type=octets".into()))
            }
            Transport::RawNamed(name) => Ok(Box::new(RawWire::new(self, name, write.is_some(), read.is_some())?)),
            Transport::RawShm => Ok(Box::new(RawShm::new(self.domain, self.idle, write, read)?)),
            Transport::RawUdp => {
                if self.size_max > crate::raw_udp::DATAGRAM_LEN_MAX {
                    return Err(Error::Usage(format!(
                        "{} bytes do not fit into a datagram: raw-udp carries at most {}",
                        self.size_max,
                        crate::raw_udp::DATAGRAM_LEN_MAX
                    )));
                }
                let own = self.address()?;
                let ends = [own, self.peer.unwrap_or(own)];
                let link = RawUdp::new(self.domain, ends, self.idle, write, read)?;
                Ok(Box::new(link))
            }
        }
    }

    /// Returns the address of the interface.
    ///
    /// # Errors
    /// The interface does not exist, or it has no IPv4 address.
    pub fn address(&self) -> Result<Ipv4Addr> {
        interface_ipv4(&self.interface)
            .ok_or_else(|| Error::Usage(format!("no interface {} with an IPv4 address", self.interface)))
    }

    /// Reports whether samples are sent without middleware.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self.transport, Transport::RawShm | Transport::RawUdp | Transport::RawNamed(_))
    }

    /// Reports whether a listener receives the samples.
    #[must_use]
    pub fn wants_listener(&self) -> bool {
        self.notify == Notify::Listener
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_larger_than_a_datagram_is_refused() {
        let spec = LinkSpec { transport: Transport::RawUdp, size_max: 70_000, ..LinkSpec::default() };
        let error = spec.open(Some("Ping"), None).err().unwrap();
        assert!(error.to_string().contains("at most 65507"), "{error}");
    }

    #[test]
    fn missing_interface_is_named_in_the_error() {
        let spec = LinkSpec { transport: Transport::RawUdp, interface: "nowhere0".into(), ..LinkSpec::default() };
        let error = spec.open(Some("Ping"), None).err().unwrap();
        assert!(error.to_string().contains("nowhere0"), "{error}");
    }
}
