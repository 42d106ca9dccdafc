//! Flows of the machines of a `mix` workload.

use super::{Kind, Workload};
use crate::error::{Error, Result};
use crate::study::parameter::{Value, Values};
use serde::{Deserialize, Serialize};

/// Maximum number of flows of a machine: each has two processes.
pub const FLOWS_MAX: usize = 6;
/// Parameters of a mix; that of flows is derived from its machines.
const MACHINE: &str = "machine";
const FLOW: &str = "flow";
/// Maximum rate of a flow, samples per second.
const RATE_MAX: u64 = 1_000_000;
/// Valid sample sizes in octets: at least the marks of the contract.
const SIZES: std::ops::RangeInclusive<u64> = 16..=16 << 20;

/// Flow: samples of one kind that a machine sends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flow {
    /// Name, unique in its machine.
    pub flow: String,
    /// Octets of a sample.
    pub size: u64,
    /// Samples per second of each source.
    pub rate: u64,
    /// Number of sources of the machine. One writer carries the samples of all.
    #[serde(default = "one")]
    pub sources: u64,
    /// Number of samples written in one batch.
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
    /// RELIABLE: lost samples are repaired.
    Reliable,
    /// BEST_EFFORT: lost samples are not repaired.
    BestEffort,
}

impl Flow {
    /// Returns the samples per second of all sources.
    #[must_use]
    pub fn total_rate(&self) -> u64 {
        self.rate.saturating_mul(self.sources)
    }

    /// Adds the flow's requirements on a system to parameter values.
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
            return fail(format!("size = {}: expected {} to {} octets", self.size, SIZES.start(), SIZES.end()));
        }
        let rate = self.total_rate();
        if !(1..=RATE_MAX).contains(&rate) {
            return fail(format!("{rate} samples a second of all sources: expected 1 to {RATE_MAX}"));
        }
        match self.burst {
            burst if (1..=rate).contains(&burst) => Ok(()),
            burst => fail(format!("burst = {burst}: expected 1 to {rate}, its samples in a second")),
        }
    }
}

impl Workload {
    /// Adds the flows of all machines as a parameter.
    pub(super) fn add_flows(&mut self) {
        if self.kind != Kind::Mix {
            return;
        }
        let mut names = Vec::new();
        for flow in self.machines.values().flatten().map(|flow| Value::Text(flow.flow.clone())) {
            if !names.contains(&flow) {
                names.push(flow);
            }
        }
        if !names.is_empty() {
            self.parameters.0.insert(FLOW.into(), names);
        }
    }

    /// Returns the flows of the machine that a cell names.
    #[must_use]
    pub fn flows_of(&self, values: &Values) -> &[Flow] {
        let machine = values.get(MACHINE).and_then(|name| self.machines.get(&name.to_string()));
        machine.map_or(&[], Vec::as_slice)
    }

    /// Returns the parameter values of its cells. Machines may have different flows.
    #[must_use]
    pub fn combinations(&self) -> Vec<Values> {
        let is_there = |values: &Values| {
            let flow = values.get(FLOW).map(ToString::to_string);
            self.kind != Kind::Mix || self.flows_of(values).iter().any(|one| Some(&one.flow) == flow.as_ref())
        };
        self.parameters.combinations().into_iter().filter(is_there).collect()
    }

    /// Returns the values that a system must support in the job of a cell. A mix has one set for
    /// each flow.
    #[must_use]
    pub fn demands(&self, values: &Values) -> Vec<Values> {
        if self.kind != Kind::Mix {
            return vec![values.clone()];
        }
        let of_flow = |flow: &Flow| {
            let mut demanded = values.clone();
            flow.add_to(&mut demanded);
            demanded
        };
        self.flows_of(values).iter().map(of_flow).collect()
    }

    pub(super) fn check_machines(&self) -> Result<()> {
        if self.kind != Kind::Mix {
            return match self.machines.is_empty() {
                true => Ok(()),
                false => Err(Error::Usage("machines are allowed only in workloads of the kind mix".into())),
            };
        }
        self.machines.iter().try_for_each(|(name, flows)| check(name, flows))?;
        let named = self.parameters.0.get(MACHINE).map(Vec::as_slice).unwrap_or_default();
        let known = || self.machines.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        match named.iter().find(|name| !self.machines.contains_key(&name.to_string())) {
            Some(name) => Err(Error::Usage(format!("machines has no {name}; expected one of {}", known()))),
            None if named.is_empty() => Err(Error::Usage(format!("parameters need machine, of {}", known()))),
            None => Ok(()),
        }
    }
}

/// Checks the flows of a machine.
///
/// # Errors
/// The machine has no flow, too many flows, two flows of one name, or a flow that breaks a rule.
fn check(machine: &str, flows: &[Flow]) -> Result<()> {
    if !(1..=FLOWS_MAX).contains(&flows.len()) {
        return Err(Error::Usage(format!("machine {machine} has {} flows; expected 1 to {FLOWS_MAX}", flows.len())));
    }
    for (number, flow) in flows.iter().enumerate() {
        if flows[..number].iter().any(|other| other.flow == flow.flow) {
            return Err(Error::Usage(format!("machine {machine} has two flows {}", flow.flow)));
        }
        flow.check().map_err(|why| Error::Usage(format!("machine {machine}: {why}")))?;
    }
    Ok(())
}
