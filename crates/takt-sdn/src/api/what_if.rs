//! What would be decided of a pair with a contract, without deciding it.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takt_wire::{Guid, GuidPrefix};

use super::questions::{NoAnswer, Source as StateSource};
use crate::admission::{Admissible, Application, End, Refusal};
use crate::contract::{Contract, Source, Sourced};
use crate::discovery::Pair;
use crate::model::HostId;
use crate::view::{Hop, Host, Remedies, View};

/// A pair that might come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    /// The address of the writer's host.
    pub from: IpAddr,
    /// The address of the reader's host.
    pub to: IpAddr,
    /// Least time between two samples.
    pub separation_ns: u64,
    /// How late a sample may come to the interface of its host; one separation by default.
    #[serde(default)]
    pub jitter_ns: Option<u64>,
    /// Octets of the longest serialised sample.
    pub size: u32,
    /// Longest time from writing to delivery.
    pub limit_ns: u64,
    /// Whether the reader is reliable.
    #[serde(default)]
    pub is_reliable: bool,
    /// Flows of higher importance are kept when not all fit.
    #[serde(default)]
    pub importance: i32,
}

/// What would be decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether it would be admitted.
    pub is_admitted: bool,
    /// The bound that it would have.
    pub bound_ns: Option<u64>,
    /// The queues that its samples would go by.
    pub hops: Vec<Hop>,
    /// Admitted pairs whose classes would change for it.
    pub moved: usize,
    /// Why it would be refused.
    pub reason: Option<String>,
    /// The queue that binds.
    pub binding_hop: Option<Hop>,
    /// What would make it fit, each alone.
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

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhatIfError {
    /// The request makes no sense.
    Nonsense(&'static str),
    /// The controller admits nothing, since it has no description of the network.
    NoNetwork,
    /// The controller does not answer.
    NoAnswer,
}

impl From<NoAnswer> for WhatIfError {
    fn from(_: NoAnswer) -> Self {
        Self::NoAnswer
    }
}

/// One decision at a time: each copies all admitted flows.
static TURN: Mutex<()> = Mutex::new(());

/// The host with an address, in frames without a tag.
fn host_at(view: &View, address: IpAddr) -> Option<&Host> {
    let text = address.to_string();
    view.hosts.iter().find(|host| host.vlan.is_none() && host.addresses.contains(&text))
}

/// The number of an Ethernet address.
fn host_id(mac: &str) -> Option<HostId> {
    let octets = mac.split(':').map(|octet| u64::from_str_radix(octet, 16));
    octets.collect::<Result<Vec<_>, _>>().ok()?.into_iter().reduce(|all, octet| all << 8 | octet).map(HostId) // tidy-allow(dropped-cause): the view has well-formed addresses.
}

impl WhatIf {
    fn check(&self) -> Result<(), WhatIfError> {
        let nonsense = |what| Err(WhatIfError::Nonsense(what));
        if self.separation_ns == 0 || self.size == 0 || self.limit_ns == 0 {
            return nonsense("separation_ns, size and limit_ns are above 0");
        }
        if self.from.is_ipv4() != self.to.is_ipv4() {
            return nonsense("from and to are addresses of one version of IP");
        }
        Ok(())
    }

    fn application(&self, writer: HostId, reader: HostId) -> Application {
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
            },
            writer: End { host: writer, address: self.from },
            reader: End { host: reader, address: self.to },
            data_port: 0,
            answer_port: self.is_reliable.then_some(0),
        }
    }

    /// Asks the controller for its state, and decides on a copy.
    ///
    /// # Errors
    /// The request makes no sense, or there is nothing to decide on.
    pub fn decide(&self, source: &dyn StateSource) -> Result<Verdict, WhatIfError> {
        self.check()?;
        // A thread that panicked has left nothing half-done.
        let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let view = source.view()?;
        let trial = source.trial()?.ok_or(WhatIfError::NoNetwork)?;
        let unknown =
            |what: &str, address| Verdict::refused(format!("the host of the {what}, {address}, is not known"));
        let Some(writer) = host_at(&view, self.from) else { return Ok(unknown("writer", self.from)) };
        let Some(reader) = host_at(&view, self.to) else { return Ok(unknown("reader", self.to)) };
        for host in [writer, reader] {
            let switch = view.switches.iter().find(|switch| switch.datapath_id == host.at.datapath_id);
            if switch.is_none_or(|switch| !switch.has_meters) {
                return Ok(Verdict::refused(format!("switch {} has no meters", host.at.datapath_id)));
            }
        }
        if writer.mac == reader.mac {
            // Nothing of it goes by the network.
            return Ok(Verdict { is_admitted: true, bound_ns: Some(0), ..Verdict::default() });
        }
        let (Some(writer), Some(reader)) = (host_id(&writer.mac), host_id(&reader.mac)) else {
            return Err(WhatIfError::NoAnswer);
        };
        Ok(match trial.decide(&self.application(writer, reader)) {
            Ok(admissible) => admissible.into(),
            Err(refusal) => refusal.into(),
        })
    }
}
