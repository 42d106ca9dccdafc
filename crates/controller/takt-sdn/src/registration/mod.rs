//! Registrations: pairs that are not discovered, admitted at the request of an authenticated
//! client.
//!
//! DDS Security encrypts announcements of endpoints, so that the interceptor cannot read them. An
//! endpoint, an operator or a gateway registers such a pair instead, with addresses, UDP ports and
//! contract. The controller admits it like a discovered pair, by the same proof and the same flow
//! entries. It cannot withhold the match of a pair that it does not discover: samples of a refused
//! registration are sent in the lowest class.
//!
//! A registration ends with its lease, which an identical registration renews. It belongs to the
//! credential that created it ([`Owner`]). The controller refuses a registration whose addresses
//! and ports are in use by an admitted pair or by a registration of another owner. It also refuses
//! one that isolation denies, and one for a discovery port, whose entries would let discovery pass
//! unseen.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takt_wire::{EntityId, Guid, GuidPrefix};

use crate::contract::{Contract, Source, Sourced};
use crate::discovery::Pair;

/// Maximum number of registrations of all owners.
pub const REGISTRATIONS_MAX: usize = 1024;
/// Maximum length in characters of a topic, and of the names of writer and reader.
pub const NAME_MAX: usize = 128;
/// Range of a lease in seconds.
pub const LEASE_S: RangeInclusive<u32> = 5..=86_400;
/// Default lease in seconds.
pub const LEASE_DEFAULT_S: u32 = 60;
/// Maximum number of octets that security may append to a datagram.
pub const OVERHEAD_MAX: u32 = 1_024;
/// Default number of octets that DDS Security appends to a datagram with one receiver. AES-GCM
/// protects payload (44), submessage (76) and message (100); the sum is rounded up to a multiple of
/// 8.
pub const OVERHEAD_DEFAULT: u32 = 224;
/// Average number of new and removed registrations of an owner per second.
pub const CHANGES_PER_SECOND: u64 = 20;
/// Burst of new and removed registrations of an owner.
pub const CHANGES_AT_ONCE: u64 = 100;

/// First octets of the GUID prefixes of registered pairs. Discovery rejects participants with such
/// a prefix.
const MARK: [u8; 4] = [0xff, 0xff, b'T', b'R'];

/// Content of a registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// Name of the topic, for display.
    pub topic: String,
    /// Writer: a GUID or any name.
    pub writer: String,
    /// Reader: a GUID or any name.
    pub reader: String,
    /// Source address of the writer.
    pub from: IpAddr,
    /// Address at which the reader receives.
    pub to: IpAddr,
    /// UDP port at which the reader receives samples.
    pub port: u16,
    /// UDP port at which the writer receives ACKNACKs; `None` for a best-effort pair.
    #[serde(default)]
    pub answer_port: Option<u16>,
    /// Multicast group by which the writer may also send its samples.
    #[serde(default)]
    pub group: Option<SocketAddr>,
    /// Minimum time between two samples.
    pub separation_ns: u64,
    /// Jitter: maximum delay of a sample, relative to its nominal time, at the interface of its
    /// host; one separation by default.
    #[serde(default)]
    pub jitter_ns: Option<u64>,
    /// Length in octets of the longest serialized sample.
    pub size: u32,
    /// Limit of the time from writing to delivery.
    pub limit_ns: u64,
    /// Importance: flows of higher importance are kept when not all fit.
    #[serde(default)]
    pub importance: i32,
    /// Whether backup paths are reserved, which carry the samples when a link fails.
    #[serde(default)]
    pub protected: bool,
    /// Number of octets that security adds to each datagram.
    #[serde(default = "overhead_default")]
    pub overhead: u32,
    /// Lease in seconds, after which the registration ends unless the client renews it.
    #[serde(default = "lease_default")]
    pub lease_s: u32,
}

fn overhead_default() -> u32 {
    OVERHEAD_DEFAULT
}

fn lease_default() -> u32 {
    LEASE_DEFAULT_S
}

/// Credential of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Owner {
    /// The control socket.
    Operator,
    /// A write token, by the name of its file.
    Token(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("control socket"),
            Self::Token(name) => write!(f, "token {name}"),
        }
    }
}

/// Id of a registration, which persists across restarts with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistrationId(pub u64);

impl fmt::Display for RegistrationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// State of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not decided yet.
    Waiting,
    /// Admitted, but not all entries are in force.
    Installing,
    /// Admitted with a proved bound, and all entries are in force.
    Admitted,
    /// Refused, because it does not fit. It is tried again when the network or other pairs change.
    Refused,
    /// Admitted before and no longer served. It is tried again like a refused one.
    Withdrawn,
}

impl State {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Installing, Self::Admitted, Self::Refused, Self::Withdrawn];

    /// Returns the serialized name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Installing => "installing",
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Reports whether the controller has decided.
    pub const fn is_decided(self) -> bool {
        !matches!(self, Self::Waiting | Self::Installing)
    }
}

/// Reason why a registration is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrationError {
    /// A value is out of its range.
    Invalid(String),
    /// The registration does not exist.
    Unknown,
    /// The controller has no description of the network and admits nothing.
    NoNetwork,
    /// The registration belongs to another credential.
    NotOwner(RegistrationId),
    /// The isolation policy denies it.
    Denied(String),
    /// Addresses and ports are in use, or the registration exists with other values.
    Conflict(String),
    /// A limit was reached.
    Limit(String),
    /// This controller is not the leader.
    Standby,
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) | Self::Denied(what) | Self::Conflict(what) | Self::Limit(what) => f.write_str(what),
            Self::Unknown => f.write_str("no such registration; its lease may have ended"),
            Self::NoNetwork => f.write_str(
                "the controller has no description of the network and admits nothing; start it with --network",
            ),
            Self::NotOwner(id) => write!(f, "registration {id} belongs to another token; use the one that created it"),
            Self::Standby => f.write_str("this controller is a standby; ask the leader"),
        }
    }
}

impl std::error::Error for RegistrationError {}

/// Source address and destination socket of datagrams of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// Source address.
    pub source: IpAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
}

fn invalid<T>(what: impl Into<String>) -> Result<T, RegistrationError> {
    Err(RegistrationError::Invalid(what.into()))
}

fn check_name(what: &str, name: &str) -> Result<(), RegistrationError> {
    if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
        return invalid(format!("{what} must have 1 to {NAME_MAX} characters, without control characters"));
    }
    Ok(())
}

impl Registration {
    /// Checks value ranges and IP versions.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), RegistrationError> {
        check_name("topic", &self.topic)?;
        check_name("writer", &self.writer)?;
        check_name("reader", &self.reader)?;
        let is_unicast = |ip: IpAddr| {
            let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
            !(ip.is_multicast() || ip.is_unspecified() || ip.is_loopback() || is_broadcast)
        };
        if !is_unicast(self.from) || !is_unicast(self.to) {
            return invalid("from and to must be unicast addresses of hosts of the network");
        }
        if self.from == self.to || self.from.is_ipv4() != self.to.is_ipv4() {
            return invalid("from and to must be two addresses of one version of IP");
        }
        if self.port == 0 || self.answer_port == Some(0) {
            return invalid("port and answer_port must be above 0");
        }
        if let Some(group) = self.group
            && (!group.ip().is_multicast() || group.is_ipv4() != self.from.is_ipv4() || group.port() == 0)
        {
            return invalid("group must be a multicast address of the version of IP of from, with a UDP port");
        }
        if self.separation_ns == 0 || self.size == 0 || self.limit_ns == 0 {
            return invalid("separation_ns, size and limit_ns must be above 0");
        }
        if self.overhead > OVERHEAD_MAX {
            return invalid(format!("overhead must be at most {OVERHEAD_MAX} octets"));
        }
        if !LEASE_S.contains(&self.lease_s) {
            return invalid(format!("lease_s must be from {} to {}", LEASE_S.start(), LEASE_S.end()));
        }
        Ok(())
    }

    /// Reports whether both registrations concern the same endpoints.
    pub fn has_names_of(&self, other: &Self) -> bool {
        (&self.topic, &self.writer, &self.reader) == (&other.topic, &other.writer, &other.reader)
    }

    /// Reports whether both registrations are equal except for the lease.
    pub fn is_same(&self, other: &Self) -> bool {
        *self == Self { lease_s: self.lease_s, ..other.clone() }
    }

    /// Iterates over the sockets of samples, then of ACKNACKs and of samples by multicast, if they
    /// exist.
    pub fn sockets(&self) -> impl Iterator<Item = Socket> {
        let samples = Socket { source: self.from, destination: (self.to, self.port).into() };
        let answers = self.answer_port.map(|port| Socket { source: self.to, destination: (self.from, port).into() });
        let group = self.group.map(|destination| Socket { source: self.from, destination });
        std::iter::once(samples).chain(answers).chain(group)
    }

    /// Returns the lease.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_s.into())
    }

    /// Returns the contract.
    pub fn contract(&self) -> Contract {
        let nanos = |ns, source| Sourced::new(Duration::from_nanos(ns), source);
        let declared = Source::Registration;
        Contract {
            separation: nanos(self.separation_ns, declared),
            jitter: match self.jitter_ns {
                Some(ns) => nanos(ns, declared),
                None => nanos(self.separation_ns, Source::Default),
            },
            size: Sourced::new(self.size, declared),
            limit: nanos(self.limit_ns, declared),
            importance: Sourced::new(self.importance, declared),
            is_protected: Sourced::new(self.protected, declared),
        }
    }
}

/// Returns the pair of a registration: its own number identifies the reader, the number of the
/// writer's first registration the writer.
pub(crate) fn pair_of(number: u64, writer: u64) -> Pair {
    let guid = |number: u64, entity_id| {
        let mut prefix = [0; 12];
        prefix[..4].copy_from_slice(&MARK);
        prefix[4..].copy_from_slice(&number.to_be_bytes());
        Guid { prefix: GuidPrefix(prefix), entity_id }
    };
    // Entity kinds of user-defined entities without a key (RTPS 2.5 §9.3.1.2).
    Pair { writer: guid(writer, EntityId([0, 0, 1, 3])), reader: guid(number, EntityId([0, 0, 1, 4])) }
}

/// Reports whether a prefix is reserved for registered pairs.
pub(crate) fn is_reserved(prefix: GuidPrefix) -> bool {
    prefix.0.starts_with(&MARK)
}

/// Returns the number of a registered pair.
pub(crate) fn number_of(pair: Pair) -> Option<u64> {
    let octets: [u8; 8] = pair.reader.prefix.0.last_chunk().copied()?;
    is_reserved(pair.reader.prefix).then_some(u64::from_be_bytes(octets))
}

/// Rate limit of an owner's changes (token bucket).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    left: u64,
    since_ns: u64,
}

impl Budget {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self { left: CHANGES_AT_ONCE, since_ns: now_ns }
    }

    /// Consumes one change and reports whether one was available.
    pub(crate) fn take(&mut self, now_ns: u64) -> bool {
        let earned = now_ns.saturating_sub(self.since_ns).saturating_mul(CHANGES_PER_SECOND) / 1_000_000_000;
        if earned > 0 {
            (self.left, self.since_ns) = (self.left.saturating_add(earned).min(CHANGES_AT_ONCE), now_ns);
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests;
