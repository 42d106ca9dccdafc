//! Kinds of workloads.

use super::flow::FLOWS_MAX;
use serde::{Deserialize, Serialize};

/// Kind of the processes of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `ping` and `pong`.
    RoundTrip,
    /// `pub` and one or more `sub`.
    Stream,
    /// Two streams in opposite directions at once.
    BothWays,
    /// Two `idle` processes: CPU, memory and time to match.
    Idle,
    /// `load` and one or more `sub`: samples at planned times, independent of their arrival.
    OpenLoop,
    /// `crowd` and a `seek` that discovers it: time and traffic.
    Discovery,
    /// Many `mesh`: time until all processes have discovered one another.
    Mesh,
    /// `crowd` alone: memory of participants, endpoints and instances.
    Memory,
    /// `hold` and a later `join`: time to samples that were written before.
    LateJoin,
    /// Open loop over a link that is down for a while.
    Partition,
    /// Open loop over a link that loses frames.
    Loss,
    /// All flows of a machine at once, each as an open loop.
    Mix,
    /// `load`, and a `pick` that takes a share of the samples by a content filter.
    Filter,
    /// Open loop while a `crowd` joins and leaves repeatedly.
    Churn,
    /// Pings with interfering traffic, under sets of countermeasures
    /// ([`isolation`](crate::isolation)).
    Isolation,
    /// Pair under an overload of its link, with and without the controller
    /// ([`sdn_overload`](crate::sdn_overload)).
    SdnOverload,
}

impl Kind {
    /// Returns the roles of the agent contract that the kind needs.
    #[must_use]
    pub fn roles(self) -> &'static [&'static str] {
        match self {
            Self::RoundTrip => &["ping", "pong"],
            Self::Stream | Self::BothWays => &["pub", "sub"],
            Self::Idle => &["idle"],
            Self::OpenLoop | Self::Partition | Self::Loss | Self::Mix => &["load", "sub"],
            Self::Filter => &["load", "pick"],
            Self::Churn => &["load", "sub", "crowd"],
            Self::Discovery => &["crowd", "seek"],
            Self::Mesh => &["mesh"],
            Self::Memory => &["crowd"],
            Self::LateJoin => &["hold", "join"],
            Self::Isolation | Self::SdnOverload => &[],
        }
    }

    /// Reports whether the kind has a network and processes of its own.
    #[must_use]
    pub fn is_experiment(self) -> bool {
        matches!(self, Self::Isolation | Self::SdnOverload)
    }

    /// Reports whether the kind needs a site `lab` with a switch, because it changes links.
    #[must_use]
    pub fn needs_switch(self) -> bool {
        matches!(self, Self::Partition | Self::Loss)
    }

    /// Returns the parameters of the kind; `None`: those of agents.
    #[must_use]
    pub fn parameters(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Isolation => Some(&["configuration", "size", "interference", "way"]),
            Self::Mix => Some(&["machine", "flow", "history", "notify", "delivery"]),
            Self::SdnOverload => Some(&["category", "size", "condition"]),
            _ => None,
        }
    }

    /// Returns the parameter whose values are all measured by one start of the processes.
    #[must_use]
    pub fn within_a_job(self) -> Option<&'static str> {
        match self {
            Self::RoundTrip => Some("size"),
            Self::Isolation => Some("way"),
            Self::Mix => Some("flow"),
            _ => None,
        }
    }

    /// Returns the number of DDS domains that a job uses.
    #[must_use]
    pub fn domains(self) -> u32 {
        if self == Self::Mix { FLOWS_MAX as u32 } else { 2 }
    }

    /// Returns the name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trips",
            Self::Stream => "stream",
            Self::BothWays => "streams in both directions",
            Self::Idle => "idle processes",
            Self::OpenLoop => "samples at planned times",
            Self::Discovery => "a participant that discovers others",
            Self::Mesh => "processes that discover one another",
            Self::Memory => "participants, endpoints and instances in memory",
            Self::LateJoin => "a reader that joins after the samples were written",
            Self::Partition => "samples at planned times over a link that is down for a while",
            Self::Loss => "samples at planned times over a link that loses frames",
            Self::Mix => "all flows of a machine at once",
            Self::Filter => "samples of which a content filter passes a share",
            Self::Churn => "samples at planned times while participants join and leave",
            Self::Isolation => "pings during other traffic on one link",
            Self::SdnOverload => "a pair under an overload of its link",
        }
    }
}
