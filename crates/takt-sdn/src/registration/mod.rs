//! Registrations: pairs that discovery does not show, admitted at the request of an authenticated caller.
//!
//! DDS Security encrypts announcements of endpoints, so that the interceptor cannot read them. An endpoint, an operator or a gateway registers
//! such a pair instead: addresses, UDP ports and contract. The controller admits it as a discovered pair, by the same proof
//! and the same flow entries. It cannot withhold a match that it does not see: samples of a refused registration go in the lowest class.
//!
//! A registration ends with its lease. The same registration again renews it. It belongs to the credential that made it ([`Owner`]). The
//! controller refuses one whose addresses and ports are in use by an admitted pair or by a registration of another owner, one that isolation
//! denies, and one for a port of discovery, whose entries would let discovery pass unseen.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takt_wire::{EntityId, Guid, GuidPrefix};

use crate::contract::{Contract, Source, Sourced};
use crate::discovery::Pair;

/// Registrations at once, of all owners.
pub const REGISTRATIONS_MAX: usize = 1024;
/// Characters of a topic, and of the names of writer and reader.
pub const NAME_MAX: usize = 128;
/// Seconds of a lease.
pub const LEASE_S: RangeInclusive<u32> = 5..=86_400;
/// Seconds of a lease that is not given.
pub const LEASE_DEFAULT_S: u32 = 60;
/// Octets that security may append to a datagram.
pub const OVERHEAD_MAX: u32 = 1_024;
/// Octets that DDS Security appends to a datagram with one receiver, if AES-GCM protects payload (44), submessage (76) and message (100), rounded up to
/// a multiple of 8.
pub const OVERHEAD_DEFAULT: u32 = 224;
/// New and removed registrations of an owner in a second, on average.
pub const CHANGES_PER_SECOND: u64 = 20;
/// The same, at once.
pub const CHANGES_AT_ONCE: u64 = 100;

/// The first octets of the GUID prefixes of registered pairs. Discovery believes no participant with such a prefix.
const MARK: [u8; 4] = [0xff, 0xff, b'T', b'R'];

/// What a caller registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// The topic, for people.
    pub topic: String,
    /// The writer: a GUID or any name.
    pub writer: String,
    /// The reader: a GUID or any name.
    pub reader: String,
    /// The address that the writer sends from.
    pub from: IpAddr,
    /// The address where the reader receives.
    pub to: IpAddr,
    /// The UDP port where the reader receives samples.
    pub port: u16,
    /// The UDP port where the writer receives ACKNACKs; none of a best-effort pair.
    #[serde(default)]
    pub answer_port: Option<u16>,
    /// The multicast group by which the writer may send its samples as well.
    #[serde(default)]
    pub group: Option<SocketAddr>,
    /// Least time between two samples.
    pub separation_ns: u64,
    /// How late a sample may come to the interface of its host; one separation by default.
    #[serde(default)]
    pub jitter_ns: Option<u64>,
    /// Octets of the longest serialised sample.
    pub size: u32,
    /// Longest time from writing to delivery.
    pub limit_ns: u64,
    /// Flows of higher importance are kept when not all fit.
    #[serde(default)]
    pub importance: i32,
    /// Whether second ways are reserved, by which samples go on when a link fails.
    #[serde(default)]
    pub protected: bool,
    /// Octets that security adds to each datagram.
    #[serde(default = "overhead_default")]
    pub overhead: u32,
    /// Seconds after which it ends, unless the caller renews it.
    #[serde(default = "lease_default")]
    pub lease_s: u32,
}

fn overhead_default() -> u32 {
    OVERHEAD_DEFAULT
}

fn lease_default() -> u32 {
    LEASE_DEFAULT_S
}

/// The credential of a caller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Owner {
    /// The control socket.
    Operator,
    /// A token for writing, by the name of its file.
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

/// Identifies a registration, also after a restart with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegistrationId(pub u64);

impl fmt::Display for RegistrationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is decided of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is not decided yet.
    Waiting,
    /// It fits, and its entries are not all in force.
    Installing,
    /// It has a proven bound, and its entries are in force.
    Admitted,
    /// It does not fit. It is tried again when the network or other pairs change.
    Refused,
    /// It was admitted, and is no longer served. It is tried again as a refused one.
    Withdrawn,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Installing, Self::Admitted, Self::Refused, Self::Withdrawn];

    /// As it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Installing => "installing",
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether the controller has an answer for the caller.
    pub const fn is_decided(self) -> bool {
        !matches!(self, Self::Waiting | Self::Installing)
    }
}

/// Why a registration is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrationError {
    /// A value is out of its range.
    Invalid(String),
    /// There is no such registration.
    Unknown,
    /// The controller has no description of the network, and admits nothing.
    NoNetwork,
    /// It belongs to another credential.
    NotOwner(RegistrationId),
    /// The policy of isolation denies it.
    Denied(String),
    /// Addresses and ports are in use, or the registration exists with other values.
    Conflict(String),
    /// A limit is reached.
    Limit(String),
    /// This controller is not the leader.
    Standby,
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) | Self::Denied(what) | Self::Conflict(what) | Self::Limit(what) => f.write_str(what),
            Self::Unknown => f.write_str("there is no such registration; its lease may have ended"),
            Self::NoNetwork => f.write_str(
                "the controller has no description of the network, and admits nothing; start it with --network",
            ),
            Self::NotOwner(id) => write!(f, "registration {id} belongs to another token; use the one that made it"),
            Self::Standby => f.write_str("this controller is a standby; ask the leader"),
        }
    }
}

impl std::error::Error for RegistrationError {}

/// An address and port where datagrams of a registration go, and the address that they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// Where they come from.
    pub source: IpAddr,
    /// Where they go.
    pub destination: SocketAddr,
}

fn invalid<T>(what: impl Into<String>) -> Result<T, RegistrationError> {
    Err(RegistrationError::Invalid(what.into()))
}

fn check_name(what: &str, name: &str) -> Result<(), RegistrationError> {
    if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
        return invalid(format!("{what} has 1 to {NAME_MAX} characters, without control characters"));
    }
    Ok(())
}

impl Registration {
    /// Checks ranges and versions of IP.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self) -> Result<(), RegistrationError> {
        check_name("topic", &self.topic)?;
        check_name("writer", &self.writer)?;
        check_name("reader", &self.reader)?;
        let is_unicast = |ip: IpAddr| {
            let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
            !(ip.is_multicast() || ip.is_unspecified() || ip.is_loopback() || is_broadcast)
        };
        if !is_unicast(self.from) || !is_unicast(self.to) {
            return invalid("from and to are unicast addresses of hosts of the network");
        }
        if self.from == self.to || self.from.is_ipv4() != self.to.is_ipv4() {
            return invalid("from and to are two addresses of one version of IP");
        }
        if self.port == 0 || self.answer_port == Some(0) {
            return invalid("port and answer_port are above 0");
        }
        if let Some(group) = self.group
            && (!group.ip().is_multicast() || group.is_ipv4() != self.from.is_ipv4() || group.port() == 0)
        {
            return invalid("group is a multicast address of the version of IP of from, with a UDP port");
        }
        if self.separation_ns == 0 || self.size == 0 || self.limit_ns == 0 {
            return invalid("separation_ns, size and limit_ns are above 0");
        }
        if self.overhead > OVERHEAD_MAX {
            return invalid(format!("overhead is {OVERHEAD_MAX} octets at most"));
        }
        if !LEASE_S.contains(&self.lease_s) {
            return invalid(format!("lease_s is from {} to {}", LEASE_S.start(), LEASE_S.end()));
        }
        Ok(())
    }

    /// Whether both are about the same endpoints.
    pub fn has_names_of(&self, other: &Self) -> bool {
        (&self.topic, &self.writer, &self.reader) == (&other.topic, &other.writer, &other.reader)
    }

    /// Whether both say the same, but for the lease.
    pub fn is_same(&self, other: &Self) -> bool {
        *self == Self { lease_s: self.lease_s, ..other.clone() }
    }

    /// Where samples go, then ACKNACKs and samples by multicast, if there are any.
    pub fn sockets(&self) -> impl Iterator<Item = Socket> {
        let samples = Socket { source: self.from, destination: (self.to, self.port).into() };
        let answers = self.answer_port.map(|port| Socket { source: self.to, destination: (self.from, port).into() });
        let group = self.group.map(|destination| Socket { source: self.from, destination });
        std::iter::once(samples).chain(answers).chain(group)
    }

    /// How long it lasts.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_s.into())
    }

    /// Its contract.
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

/// The pair of a registration: its own number identifies the reader, that of the writer's first registration the writer.
pub(crate) fn pair_of(number: u64, writer: u64) -> Pair {
    let guid = |number: u64, entity_id| {
        let mut prefix = [0; 12];
        prefix[..4].copy_from_slice(&MARK);
        prefix[4..].copy_from_slice(&number.to_be_bytes());
        Guid { prefix: GuidPrefix(prefix), entity_id }
    };
    // User-defined entities without a key (RTPS 2.5 §9.3.1.2).
    Pair { writer: guid(writer, EntityId([0, 0, 1, 3])), reader: guid(number, EntityId([0, 0, 1, 4])) }
}

/// Whether a prefix is that of a registered pair.
pub(crate) fn is_reserved(prefix: GuidPrefix) -> bool {
    prefix.0.starts_with(&MARK)
}

/// The number of a registered pair.
pub(crate) fn number_of(pair: Pair) -> Option<u64> {
    let octets: [u8; 8] = pair.reader.prefix.0.last_chunk().copied()?;
    is_reserved(pair.reader.prefix).then_some(u64::from_be_bytes(octets))
}

/// How many changes an owner may still make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    left: u64,
    since_ns: u64,
}

impl Budget {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self { left: CHANGES_AT_ONCE, since_ns: now_ns }
    }

    /// Takes one; whether there was one.
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
