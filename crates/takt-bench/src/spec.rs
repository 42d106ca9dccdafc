//! What a link is to be made of. Part of every report, so that a figure says how it came about.

use crate::complex::Complex;
use crate::dds::DdsLink;
use crate::error::{Error, Result};
use crate::link::{Idle, Link, Notify};
use crate::machine::interface_ipv4;
use crate::numbered::Numbered;
use crate::payload::{Blob, Form};
use crate::raw_shm::RawShm;
use crate::raw_udp::RawUdp;
use crate::rest::Resting;
use crate::wire::RawWire;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use takt::{DomainParticipantBuilder, TimingPlan};

/// What carries the samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Takt over UDP.
    #[default]
    Udp,
    /// Takt over shared memory; its discovery over UDP.
    Shm,
    /// Plain shared memory, no middleware: the baseline of that.
    RawShm,
    /// Plain UDP sockets, no middleware: the baseline.
    RawUdp,
    /// Plain datagrams over what is asked for by name, no middleware: the baseline of that.
    RawNamed(String),
    /// Takt over what is asked for by name, such as `xdp:eth0`; see [`takt::transport::choice`].
    #[serde(untagged)]
    Named(String),
}

/// Who drives the participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// The application's thread: no other thread, no lock.
    #[default]
    Inline,
    /// A receive thread of its own.
    Shared,
}

/// How much a reader and a writer keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// Everything, within the resource limits.
    #[default]
    KeepAll,
    /// The last so many samples.
    KeepLast(u32),
}

/// DURABILITY of writer and reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Samples are for readers that are there.
    #[default]
    Volatile,
    /// The writer keeps them.
    TransientLocal,
    /// A service keeps them in memory.
    Transient,
    /// A service keeps them on disk.
    Persistent,
}

/// How much of a sample a program writes and reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Touch {
    /// The marks.
    #[default]
    Marks,
    /// One octet of each cache line.
    Lines,
    /// Each octet.
    All,
}

/// What a participant is called unless something else is said.
pub const NAME: &str = "takt-bench";

/// Prepares the participant of a link by settings that a link does not have, such as those of a configuration file.
#[derive(Clone)]
pub struct Preparation {
    /// Makes the builder. The link sets name, interface, runtime, idle and shared memory on it.
    pub builder: Arc<dyn Fn() -> Result<DomainParticipantBuilder> + Send + Sync>,
    /// The settings say which peers to announce to. Else the link announces to its other end.
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

/// Everything about a link but its topics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSpec {
    /// What the participant is called, and by that its executor.
    pub name: String,
    /// What the system file says of topics.
    #[serde(skip)]
    pub timing_plan: Option<TimingPlan>,
    /// Prepares the participant; a fresh builder of the domain without it.
    #[serde(skip)]
    pub preparation: Option<Preparation>,
    /// What carries the samples.
    pub transport: Transport,
    /// Who drives the participant.
    pub runtime: Runtime,
    /// What a waiting thread does.
    pub idle: Idle,
    /// How the program learns of data.
    pub notify: Notify,
    /// DDS domain.
    pub domain: u32,
    /// Network interface that all traffic is on.
    pub interface: String,
    /// Address of the other end, where that is another host.
    pub peer: Option<Ipv4Addr>,
    /// The discovery server by which participants meet, in place of multicast and of looking for the other end.
    pub discovery_server: Option<String>,
    /// Directory with the files of DDS Security.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<String>,
    /// Pauses now and then ([`rest`](crate::rest)), for who spins in real time.
    pub rests: bool,
    /// RELIABLE, or BEST_EFFORT.
    pub reliable: bool,
    /// HISTORY.
    pub history: History,
    /// DURABILITY.
    pub durability: Durability,
    /// LATENCY_BUDGET of both sides: so long a sample may wait at the writer for others to share a datagram with.
    pub latency_budget: Duration,
    /// The type that carries the payload.
    pub form: Form,
    /// A reader has a content filter that lets so many percent of the samples pass, of [`Form::Numbered`] alone.
    pub pass_percent: Option<u8>,
    /// From how many readers on samples go to a multicast group; `None`: what Takt does by default.
    pub multicast_readers_min: Option<usize>,
    /// Of a sample that is lent, how much is written and read.
    pub touch: Touch,
    /// Biggest payload that will be written, bytes.
    pub size_max: usize,
    /// Samples that a stream writes with one call; 1: each alone. A listener takes as many at once, or 64.
    pub batch: usize,
    /// Payloads are written where readers are lent them, and of what is received the marks alone are read. The rest of a payload
    /// is what was there.
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
            rests: false,
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
    /// Makes the link: a writer on one topic, a reader on another, or only one of them.
    ///
    /// # Errors
    /// The transport cannot do what is asked, there is no such interface, or the middleware refused.
    pub fn open(&self, write: Option<&str>, read: Option<&str>) -> Result<Box<dyn Link>> {
        let link = self.open_restless(write, read)?;
        Ok(if self.rests { Box::new(Resting(link)) } else { link })
    }

    fn open_restless(&self, write: Option<&str>, read: Option<&str>) -> Result<Box<dyn Link>> {
        match &self.transport {
            Transport::Udp | Transport::Shm | Transport::Named(_) => match self.form {
                Form::Octets => Ok(Box::new(DdsLink::<Blob>::new(self, write, read)?)),
                Form::Complex => Ok(Box::new(DdsLink::<Complex>::new(self, write, read)?)),
                Form::Numbered => Ok(Box::new(DdsLink::<Numbered>::new(self, write, read)?)),
            },
            _ if self.form != Form::Octets => {
                Err(Error::Usage("plain datagrams and plain memory have octets alone: type=octets".into()))
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

    /// Address of the interface.
    ///
    /// # Errors
    /// There is no such interface, or it has no IPv4 address.
    pub fn address(&self) -> Result<Ipv4Addr> {
        interface_ipv4(&self.interface)
            .ok_or_else(|| Error::Usage(format!("no interface {} with an IPv4 address", self.interface)))
    }

    /// Whether samples go without middleware.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self.transport, Transport::RawShm | Transport::RawUdp | Transport::RawNamed(_))
    }

    /// Whether a listener is wanted.
    #[must_use]
    pub fn wants_listener(&self) -> bool {
        self.notify == Notify::Listener
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_too_big_for_a_datagram_is_refused() {
        let spec = LinkSpec { transport: Transport::RawUdp, size_max: 70_000, ..LinkSpec::default() };
        let error = spec.open(Some("Ping"), None).err().unwrap();
        assert!(error.to_string().contains("at most 65507"), "{error}");
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let spec = LinkSpec { transport: Transport::RawUdp, interface: "nowhere0".into(), ..LinkSpec::default() };
        let error = spec.open(Some("Ping"), None).err().unwrap();
        assert!(error.to_string().contains("nowhere0"), "{error}");
    }
}
