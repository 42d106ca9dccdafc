//! Certificate of an analysis: the bounds with the data that proves them.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::server::Point;
use crate::{Arrivals, System};

/// System with a bound for each flow. [`verify`](crate::verify()) checks it without repeating the
/// analysis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Analyzed system.
    pub system: System,
    /// Claims about the flows, in the order of the system.
    pub flows: Vec<FlowClaim>,
    /// Execution times that were measured. The others are declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredTime>,
}

/// Source of a measured stage time: the sum of the maximum execution times of its jobs, times the
/// margin, rounded up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTime {
    /// Index of the flow.
    pub flow: usize,
    /// Index of the stage.
    pub stage: usize,
    /// Jobs of the stage, executed one directly after the other.
    pub jobs: Vec<MeasuredJobs>,
    /// Factor on the maximum execution times in thousandths, at least 1000.
    pub margin_permille: u64,
    /// Names of the measurement files.
    pub from: Vec<String>,
}

/// Measured jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredJobs {
    /// Kind of the jobs, or name of an application job.
    pub name: String,
    /// Number of jobs.
    pub count: u64,
    /// Maximum execution time in nanoseconds.
    pub max_ns: u64,
}

/// Claim about a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowClaim {
    /// Claim about each stage; empty for a flow without an arrival bound.
    pub stages: Vec<StageClaim>,
    /// Maximum time from the arrival at the first stage to the end of the delay of the last stage,
    /// in nanoseconds.
    pub bound_ns: Option<u64>,
}

/// Claim about a flow at one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageClaim {
    /// Arrival bound at the stage.
    pub arrivals: Arrivals,
    /// Maximum response time from the arrival of an event to its completion, in nanoseconds.
    pub response_ns: u64,
    /// Maximum busy period of this priority and above, in nanoseconds.
    pub busy_ns: u64,
    /// For each event that could have the maximum response time: the latest start of its last
    /// piece.
    pub points: Vec<Point>,
}

impl MeasuredTime {
    /// Returns the time of the stage that follows from the measurement, saturated at `u64::MAX`.
    pub fn time_ns(&self) -> u64 {
        let longest: u128 = self.jobs.iter().map(|job| u128::from(job.max_ns)).sum();
        let with_margin = longest.saturating_mul(self.margin_permille.into()).div_ceil(1000);
        with_margin.try_into().unwrap_or(u64::MAX)
    }
}

impl Certificate {
    /// Returns the indexes of the flows whose bound exceeds their limit.
    pub fn violations(&self) -> impl Iterator<Item = usize> {
        let pairs = self.system.flows.iter().zip(&self.flows).enumerate();
        pairs
            .filter(|(_, (flow, claim))| flow.limit_ns.zip(claim.bound_ns).is_some_and(|(limit, bound)| bound > limit))
            .map(|(at, _)| at)
    }

    /// Reports whether every flow keeps its limit.
    pub fn is_kept(&self) -> bool {
        self.violations().next().is_none()
    }
}
