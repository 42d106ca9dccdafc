//! Flows of the machines of a `mix`.

use crate::error::{Error, Result};
use crate::study::parameter::{Value, Values};
use serde::{Deserialize, Serialize};

/// Flows of a machine at most: each has two processes.
pub const FLOWS_MAX: usize = 6;
/// Samples a second of a flow at most.
const RATE_MAX: u64 = 1_000_000;
/// Octets of a sample: the marks of the contract at least.
const SIZES: std::ops::RangeInclusive<u64> = 16..=16 << 20;

/// Samples of one kind that a machine sends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flow {
    /// Name, unique in its machine.
    pub flow: String,
    /// Octets of a sample.
    pub size: u64,
    /// Samples a second of each source.
    pub rate: u64,
    /// Sources of the machine. One writer carries the samples of all.
    #[serde(default = "one")]
    pub sources: u64,
    /// Samples that are written at once.
    #[serde(default = "one")]
    pub burst: u64,
    /// `reliable` or `best-effort`.
    pub reliability: Reliability,
}

fn one() -> u64 {
    1
}

/// Reliability of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Lost samples are repaired.
    Reliable,
    /// They are not.
    BestEffort,
}

impl Flow {
    /// Samples a second of all sources.
    #[must_use]
    pub fn total_rate(&self) -> u64 {
        self.rate.saturating_mul(self.sources)
    }

    /// What a system must be capable of, as parameters.
    pub fn add_to(&self, values: &mut Values) {
        let reliability = match self.reliability {
            Reliability::Reliable => "reliable",
            Reliability::BestEffort => "best-effort",
        };
        values.insert("size".into(), Value::Number(self.size));
        values.insert("reliability".into(), Value::Text(reliability.into()));
        values.insert("rate".into(), Value::Number(self.total_rate()));
        values.insert("batch".into(), Value::Number(self.burst));
    }

    fn check(&self) -> Result<()> {
        let fail = |what: String| Err(Error::Usage(format!("flow {}: {what}", self.flow)));
        if !SIZES.contains(&self.size) {
            return fail(format!("size = {}: {} to {} octets are allowed", self.size, SIZES.start(), SIZES.end()));
        }
        let rate = self.total_rate();
        if !(1..=RATE_MAX).contains(&rate) {
            return fail(format!("{rate} samples a second of all sources: 1 to {RATE_MAX} are allowed"));
        }
        match self.burst {
            burst if (1..=rate).contains(&burst) => Ok(()),
            burst => fail(format!("burst = {burst}: 1 to as many as its samples in a second, {rate}, are allowed")),
        }
    }
}

/// Whether a machine can be measured.
///
/// # Errors
/// It has no flow, too many, two of one name, or one that breaks a rule.
pub fn check(machine: &str, flows: &[Flow]) -> Result<()> {
    if !(1..=FLOWS_MAX).contains(&flows.len()) {
        return Err(Error::Usage(format!("machine {machine} has {} flows; 1 to {FLOWS_MAX} are allowed", flows.len())));
    }
    for (number, flow) in flows.iter().enumerate() {
        if flows[..number].iter().any(|other| other.flow == flow.flow) {
            return Err(Error::Usage(format!("machine {machine} has two flows {}", flow.flow)));
        }
        flow.check().map_err(|why| Error::Usage(format!("machine {machine}: {why}")))?;
    }
    Ok(())
}
