//! The outcome of an analysis, with what proves it.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::server::Point;
use crate::{Arrivals, System};

/// A system and a bound for each of its flows. That it is true can be seen without computing it: [`verify`](crate::verify()).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// What was analysed.
    pub system: System,
    /// For each flow, in the system's order.
    pub flows: Vec<FlowClaim>,
    /// Which times were measured. The others are declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredTime>,
}

/// Where the time of a stage comes from, if it was measured: its jobs' longest times together, times the margin, rounded up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTime {
    /// Index of the flow.
    pub flow: usize,
    /// Index of the stage.
    pub stage: usize,
    /// What the stage does, one directly after the other.
    pub jobs: Vec<MeasuredJobs>,
    /// What the longest times were multiplied with, in thousandths; at least 1000.
    pub margin_permille: u64,
    /// Names of the accounts.
    pub from: Vec<String>,
}

/// Jobs that were measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredJobs {
    /// Their kind, or the name of a job of the application.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// How long the longest took.
    pub max_ns: u64,
}

/// What is claimed of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowClaim {
    /// For each stage; empty for a flow that comes as often as it can.
    pub stages: Vec<StageClaim>,
    /// From the arrival at the first stage to the end of the last one's delay, at most.
    pub bound_ns: Option<u64>,
}

/// What is claimed of a flow at one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageClaim {
    /// How its events come there.
    pub arrivals: Arrivals,
    /// From an event's arrival until it is done, at most.
    pub response_ns: u64,
    /// How long work of this priority and above is never absent there, at most.
    pub busy_ns: u64,
    /// For each event that could be the latest: when its last piece is begun, at the latest.
    pub points: Vec<Point>,
}

impl MeasuredTime {
    /// What the stage takes for that reason, `u64::MAX` beyond counting.
    pub fn time_ns(&self) -> u64 {
        let longest: u128 = self.jobs.iter().map(|job| u128::from(job.max_ns)).sum();
        let with_margin = longest.saturating_mul(self.margin_permille.into()).div_ceil(1000);
        with_margin.try_into().unwrap_or(u64::MAX)
    }
}

impl Certificate {
    /// Indices of the flows whose bound is above their limit.
    pub fn violations(&self) -> impl Iterator<Item = usize> {
        let pairs = self.system.flows.iter().zip(&self.flows).enumerate();
        pairs
            .filter(|(_, (flow, claim))| flow.limit_ns.zip(claim.bound_ns).is_some_and(|(limit, bound)| bound > limit))
            .map(|(at, _)| at)
    }

    /// Does every flow keep its limit?
    pub fn is_kept(&self) -> bool {
        self.violations().next().is_none()
    }
}
