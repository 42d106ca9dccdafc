//! Trial decision on a pair with a contract, which changes nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takt_openflow::oxm::VLAN_PRESENT;
use takt_wire::{Guid, GuidPrefix};

use super::controller_client::{NoAnswer, Source as StateSource};
use crate::admission::{Admissible, Application, End, Refusal};
use crate::contract::{Contract, Source, Sourced};
use crate::devices::Vlan;
use crate::discovery::Pair;
use crate::model::HostId;
use crate::schedule::PairStages;
use crate::view::{Hop, Host, Remedies, View};

/// A hypothetical pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    /// Address of the writer's host.
    pub from: IpAddr,
    /// Address of the reader's host.
    pub to: IpAddr,
    /// Multicast group by which the writer may also send its samples.
    #[serde(default)]
    pub group: Option<SocketAddr>,
    /// Addresses of the hosts of its other readers, to which it sends by the group.
    #[serde(default)]
    pub others: Vec<IpAddr>,
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
    /// Whether the reader is reliable.
    #[serde(default)]
    pub is_reliable: bool,
    /// Importance: flows of higher importance are kept when not all fit.
    #[serde(default)]
    pub importance: i32,
}

/// Result of a trial decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the pair would be admitted.
    pub is_admitted: bool,
    /// Latency bound that it would have.
    pub bound_ns: Option<u64>,
    /// Queues that its samples would pass.
    pub hops: Vec<Hop>,
    /// Number of admitted pairs whose classes would change for it.
    pub moved: usize,
    /// Reason why it would be refused.
    pub reason: Option<String>,
    /// Bottleneck queue.
    pub binding_hop: Option<Hop>,
    /// Changes that would each make it fit.
    pub remedies: Remedies,
}

impl Verdict {
    fn refused(reason: String) -> Self {
        Self { reason: Some(reason), ..Self::default() }
    }
}

impl From<Admissible> for Verdict {
    fn from(admissible: Admissible) -> Self {
        Self {
            is_admitted: true,
            bound_ns: Some(admissible.bound_ns),
            hops: admissible.routes.first().map(Hop::all_of).unwrap_or_default(),
            moved: admissible.moved,
            ..Self::default()
        }
    }
}

impl From<Refusal> for Verdict {
    fn from(refusal: Refusal) -> Self {
        Self {
            binding_hop: refusal.hop.map(|(port, class)| Hop { sender: port.into(), class }),
            remedies: refusal.remedies.into(),
            ..Self::refused(refusal.reason)
        }
    }
}

/// Reasons why there is no trial decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhatIfError {
    /// The request is invalid.
    Invalid(&'static str),
    /// The controller has no description of the network and admits nothing.
    NoNetwork,
    /// The controller does not answer.
    NoAnswer,
}

impl From<NoAnswer> for WhatIfError {
    fn from(_: NoAnswer) -> Self {
        Self::NoAnswer
    }
}

/// Maximum number of other readers of the hypothetical writer.
const OTHERS_MAX: usize = 64;

/// Lock that allows one decision at a time, because each copies all admitted flows.
static DECISION_LOCK: Mutex<()> = Mutex::new(());

/// Returns the host with an address, preferably one with untagged frames.
fn host_at(view: &View, address: IpAddr) -> Option<&Host> {
    let text = address.to_string();
    view.hosts.iter().filter(|host| host.addresses.contains(&text)).min_by_key(|host| host.vlan)
}

/// Returns a VLAN in the form that OpenFlow matches.
fn vlan_of(host: &Host) -> Vlan {
    host.vlan.map_or(0, |vid| VLAN_PRESENT | vid)
}

/// Parses an Ethernet address.
fn host_id(mac: &str) -> Option<HostId> {
    let octets = mac.split(':').map(|octet| u64::from_str_radix(octet, 16));
    octets.collect::<Result<Vec<_>, _>>().ok()?.into_iter().reduce(|all, octet| all << 8 | octet).map(HostId) // tidy-allow(dropped-cause): the view has well-formed addresses.
}

impl WhatIf {
    fn check(&self) -> Result<(), WhatIfError> {
        let invalid = |what| Err(WhatIfError::Invalid(what));
        if self.separation_ns == 0 || self.size == 0 || self.limit_ns == 0 {
            return invalid("separation_ns, size and limit_ns must be above 0");
        }
        if self.from.is_ipv4() != self.to.is_ipv4() {
            return invalid("from and to must be addresses of one version of IP");
        }
        let is_of_version = |other: IpAddr| other.is_ipv4() == self.from.is_ipv4();
        if self.others.len() > OTHERS_MAX {
            return invalid("others must have at most 64 addresses");
        }
        match self.group {
            None if !self.others.is_empty() => return invalid("others requires a group, which is missing"),
            Some(group) if !group.ip().is_multicast() => {
                return invalid("group must be a multicast address and a UDP port");
            }
            Some(group) if !is_of_version(group.ip()) || !self.others.iter().all(|other| is_of_version(*other)) => {
                return invalid("group and others must have the same version of IP as from");
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the admission request of the pair with a reader at this address.
    fn application(&self, (writer, vlan): (HostId, Vlan), (reader, address): (HostId, IpAddr)) -> Application {
        let declared = Source::Default;
        Application {
            pair: Pair {
                writer: Guid { prefix: GuidPrefix([0; 12]), ..Guid::UNKNOWN },
                reader: Guid { prefix: GuidPrefix([0; 12]), ..Guid::UNKNOWN },
            },
            name: "the pair".to_owned(),
            contract: Contract {
                separation: Sourced::new(Duration::from_nanos(self.separation_ns), declared),
                jitter: Sourced::new(Duration::from_nanos(self.jitter_ns.unwrap_or(self.separation_ns)), declared),
                size: Sourced::new(self.size, declared),
                limit: Sourced::new(Duration::from_nanos(self.limit_ns), declared),
                importance: Sourced::new(self.importance, declared),
                is_protected: Sourced::new(false, declared),
            },
            writer: End { host: writer, vlan, address: self.from, trailer_len: 0 },
            reader: End { host: reader, vlan, address, trailer_len: 0 },
            data_port: 0,
            answer_port: self.is_reliable.then_some(0),
            has_reliable_writer: self.is_reliable,
            announces_groups: self.group.is_some(),
            probes_paths: true,
            groups: self.group.into_iter().collect(),
            stages: PairStages::default(),
        }
    }

    /// Gets the state of the controller and decides on a copy.
    ///
    /// # Errors
    /// The request is invalid, or there is no state to decide on.
    pub fn decide(&self, source: &dyn StateSource) -> Result<Verdict, WhatIfError> {
        self.check()?;
        // A panic in another thread leaves no inconsistent state.
        let _guard = DECISION_LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let view = source.view()?;
        let trial = source.trial()?.ok_or(WhatIfError::NoNetwork)?;
        let unknown =
            |what: &str, address| Verdict::refused(format!("the host of the {what}, {address}, is not known"));
        let Some(writer) = host_at(&view, self.from) else { return Ok(unknown("writer", self.from)) };
        let mut readers = Vec::new();
        for address in std::iter::once(self.to).chain(self.others.iter().copied()) {
            let Some(reader) = host_at(&view, address) else { return Ok(unknown("reader", address)) };
            readers.push((reader, address));
        }
        for host in readers.iter().map(|(reader, _)| *reader).chain([writer]) {
            let switch = view.switches.iter().find(|switch| switch.datapath_id == host.at.datapath_id);
            if switch.is_none_or(|switch| !switch.has_meters) {
                return Ok(Verdict::refused(format!("switch {} has no meters", host.at.datapath_id)));
            }
        }
        if readers.iter().any(|(reader, _)| reader.vlan != writer.vlan) {
            return Ok(Verdict::refused("writer and readers are in different VLANs".to_owned()));
        }
        let is_local = |(reader, _): &(&Host, IpAddr)| reader.mac == writer.mac;
        if readers.first().is_some_and(is_local) {
            // The pair uses no part of the network.
            return Ok(Verdict { is_admitted: true, bound_ns: Some(0), ..Verdict::default() });
        }
        readers.retain(|reader| !is_local(reader));
        let vlan = vlan_of(writer);
        let Some(writer) = host_id(&writer.mac) else { return Err(WhatIfError::NoAnswer) };
        let of = |(reader, address): (&Host, IpAddr)| {
            Some(self.application((writer, vlan), (host_id(&reader.mac)?, address)))
        };
        let applications = readers.into_iter().map(of).collect::<Option<Vec<Application>>>();
        Ok(match trial.decide(&applications.ok_or(WhatIfError::NoAnswer)?) {
            Ok(admissible) => admissible.into(),
            Err(refusal) => refusal.into(),
        })
    }
}
