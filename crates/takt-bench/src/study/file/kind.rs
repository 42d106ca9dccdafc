//! Kinds of workloads.

use super::flow::FLOWS_MAX;
use serde::{Deserialize, Serialize};

/// What the processes of a workload do.
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
    /// `load` and one or more `sub`: samples at planned times, whatever becomes of them.
    OpenLoop,
    /// `crowd` and a `seek` that finds it: time and traffic.
    Discovery,
    /// Many `mesh`: time until all processes have found one another.
    Mesh,
    /// `crowd` alone: memory of participants, endpoints and instances.
    Memory,
    /// `hold` and a `join` that comes later: time to samples that were written before.
    LateJoin,
    /// As an open loop, and the link is down for a while.
    Partition,
    /// As an open loop, and the link loses frames.
    Loss,
    /// All flows of a machine at once, each as an open loop.
    Mix,
    /// `load`, and a `pick` that takes a share of the samples by a content filter.
    Filter,
    /// As an open loop, beside a `crowd` that comes and goes.
    Churn,
    /// Pings beside other traffic, with sets of measures against it ([`isolation`](crate::isolation)).
    Isolation,
    /// A pair under an overload of its link, with and without the controller ([`sdn_overload`](crate::sdn_overload)).
    SdnOverload,
}

impl Kind {
    /// Roles of the agent contract that it needs.
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

    /// Whether it makes its own network and has its own processes.
    #[must_use]
    pub fn is_experiment(self) -> bool {
        matches!(self, Self::Isolation | Self::SdnOverload)
    }

    /// Whether it needs a site `lab` with a switch, for what it does to links.
    #[must_use]
    pub fn needs_switch(self) -> bool {
        matches!(self, Self::Partition | Self::Loss)
    }

    /// Its parameters; `None`: those that agents have.
    #[must_use]
    pub fn parameters(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Isolation => Some(&["configuration", "size", "interference", "way"]),
            Self::Mix => Some(&["machine", "flow", "history", "notify", "delivery"]),
            Self::SdnOverload => Some(&["category", "size", "condition"]),
            _ => None,
        }
    }

    /// The parameter of which one start of the processes measures all values.
    #[must_use]
    pub fn within_a_job(self) -> Option<&'static str> {
        match self {
            Self::RoundTrip => Some("size"),
            Self::Isolation => Some("way"),
            Self::Mix => Some("flow"),
            _ => None,
        }
    }

    /// DDS domains that a job takes.
    #[must_use]
    pub fn domains(self) -> u32 {
        if self == Self::Mix { FLOWS_MAX as u32 } else { 2 }
    }

    /// For people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trips",
            Self::Stream => "stream",
            Self::BothWays => "streams in both directions",
            Self::Idle => "idle processes",
            Self::OpenLoop => "samples at planned times",
            Self::Discovery => "a participant that finds others",
            Self::Mesh => "processes that find one another",
            Self::Memory => "participants, endpoints and instances in memory",
            Self::LateJoin => "a reader that comes after the samples",
            Self::Partition => "samples at planned times over a link that is down for a while",
            Self::Loss => "samples at planned times over a link that loses frames",
            Self::Mix => "all flows of a machine at once",
            Self::Filter => "samples of which a content filter passes a share",
            Self::Churn => "samples at planned times beside participants that come and go",
            Self::Isolation => "pings beside other traffic on one link",
            Self::SdnOverload => "a pair under an overload of its link",
        }
    }
}
