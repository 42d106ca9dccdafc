//! Decisions in numbers: what a pair has, why it is refused, and what would be decided.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use takt_calculus::network::NetworkCertificate;

use super::demand::Demand;
use super::{Admission, Application};
use crate::discovery::Pair;
use crate::model::{Egress, NetworkFile, Snapshot};
use crate::schedule::{Reason, Refused, Remedies, Route, Scheduler};

/// Why a pair does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Of the pair.
    pub importance: i32,
    /// In words, without what would make it fit.
    pub reason: String,
    /// The port and class that bind, if one does.
    pub hop: Option<(Egress, usize)>,
    /// What would make it fit, each alone.
    pub remedies: Remedies,
}

impl Refusal {
    pub(super) fn new(importance: i32, reason: String) -> Self {
        Self { importance, reason, hop: None, remedies: Remedies::default() }
    }

    pub(super) fn of(importance: i32, refused: &Refused, remedies: Remedies) -> Self {
        let hop = match refused.reason {
            Reason::Queue { port, class, .. } | Reason::Late { port, class, .. } => Some((port, class)),
            _ => None,
        };
        Self { importance, reason: refused.to_string(), hop, remedies }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { remedies, .. } = self;
        let remedies = [
            remedies.limit_ns.map(|limit_ns| format!("a limit of {limit_ns} ns")),
            remedies.min_separation_ns.map(|separation_ns| format!("a separation of {separation_ns} ns")),
            remedies.sample_len.map(|sample_len| format!("samples of {sample_len} octets")),
        ];
        let remedies: Vec<String> = remedies.into_iter().flatten().collect();
        f.write_str(&self.reason)?;
        if remedies.is_empty() { Ok(()) } else { write!(f, "; would fit: {}", remedies.join(", or ")) }
    }
}

/// An admitted pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Whether all its entries are in force, as they shall be now.
    pub is_in_force: bool,
    /// The way and the bound of its samples, then those of its ACKNACKs.
    pub routes: Vec<Route>,
}

impl Admission {
    /// An admitted pair; `None` for others, and for pairs within one host.
    pub fn progress(&self, pair: Pair) -> Option<Progress> {
        let admitted = self.admitted.get(&pair)?;
        let snapshot = self.network.snapshot();
        let routes = admitted.legs.iter().filter_map(|leg| self.scheduler.routes(&snapshot, leg.request)).flatten();
        Some(Progress { is_in_force: admitted.is_in_force, routes: routes.collect() })
    }

    /// Why a pair is refused, or waits.
    pub fn refusal(&self, pair: Pair) -> Option<&Refusal> {
        self.refused.get(&pair)
    }

    /// A copy of what decisions depend on. The work is that of copying all admitted flows.
    pub fn trial(&self) -> Trial {
        Trial { file: self.file.clone(), snapshot: self.network.snapshot(), scheduler: self.scheduler.clone() }
    }
}

/// A copy of the admitted flows, on which a decision changes nothing else.
#[derive(Debug, Clone)]
pub struct Trial {
    file: NetworkFile,
    snapshot: Arc<Snapshot>,
    scheduler: Scheduler,
}

/// What a pair would get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admissible {
    /// Longest time from the interface of the writer's host to the reader's host.
    pub bound_ns: u64,
    /// The ways of its samples and ACKNACKs.
    pub routes: Vec<Route>,
    /// Admitted requests whose classes would change for it.
    pub moved: usize,
}

impl Trial {
    /// What [`Admission::ask`] would decide of a pair with addresses and a UDP port of its own.
    ///
    /// # Errors
    /// Why it would be refused.
    pub fn decide(mut self, application: &Application) -> Result<Admissible, Refusal> {
        let importance = application.contract.importance.value;
        let demands =
            Demand::of(application, &self.file, &self.snapshot).map_err(|reason| Refusal::new(importance, reason))?;
        let (mut own, mut moved) = (BTreeSet::new(), BTreeSet::new());
        for demand in demands {
            match self.scheduler.admit(&self.snapshot, demand.request.clone()) {
                Ok(admitted) => {
                    own.insert(admitted.id);
                    moved.extend(admitted.moved);
                }
                Err(refused) => {
                    let remedies = self.scheduler.remedies(&self.snapshot, &demand.request);
                    return Err(Refusal::of(importance, &refused, remedies));
                }
            }
        }
        let routes = own.iter().filter_map(|id| self.scheduler.routes(&self.snapshot, *id)).flatten();
        let routes: Vec<Route> = routes.collect();
        let bound_ns = routes.first().map_or(0, |route| route.bound_ns);
        Ok(Admissible { bound_ns, routes, moved: moved.difference(&own).count() })
    }

    /// All admitted flows with what proves their bounds, for [`takt_calculus::network::check`].
    pub fn certificate(&self) -> NetworkCertificate {
        self.scheduler.certificate()
    }
}
