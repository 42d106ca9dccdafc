//! Execution times of DDS Security on one machine, and the resulting times of stages.
//!
//! `takt security measure` writes such a file. Sizes are those of the plaintext in octets. A piece
//! between two measured sizes takes as long as one of the larger size.

use std::path::Path;

use serde::{Deserialize, Serialize};
use takt_calculus::MeasuredJobs;

use super::job_statistics::{MEASURED_JOBS_MIN, Machine};
use super::read_text;
use crate::error::{ConfigError, Origin};

/// Protected layer and transformation (DDS-SEC 1.1 §9.5.3.3), with keys of 256 bits.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Authentication of a payload.
    DataSign,
    /// Encryption of a payload.
    DataEncrypt,
    /// Authentication of a submessage.
    MetadataSign,
    /// Encryption of a submessage.
    MetadataEncrypt,
    /// Authentication of an RTPS message.
    RtpsSign,
    /// Encryption of an RTPS message.
    RtpsEncrypt,
}

impl Layer {
    /// All layers.
    pub const ALL: [Self; 6] = [
        Self::DataSign,
        Self::DataEncrypt,
        Self::MetadataSign,
        Self::MetadataEncrypt,
        Self::RtpsSign,
        Self::RtpsEncrypt,
    ];

    /// Returns the name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataSign => "data-sign",
            Self::DataEncrypt => "data-encrypt",
            Self::MetadataSign => "metadata-sign",
            Self::MetadataEncrypt => "metadata-encrypt",
            Self::RtpsSign => "rtps-sign",
            Self::RtpsEncrypt => "rtps-encrypt",
        }
    }
}

/// Operation on octets.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Protection of plaintext.
    Seal,
    /// Verification and removal of the protection.
    Open,
}

impl Operation {
    /// Returns the name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seal => "seal",
            Self::Open => "open",
        }
    }
}

/// Execution time of one operation.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Layer and transformation.
    pub layer: Layer,
    /// Measured operation.
    pub operation: Operation,
    /// Octets of plaintext.
    pub octets: u64,
    /// Number of measurements.
    pub count: u64,
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// Maximum, in nanoseconds.
    pub max_ns: u64,
}

/// Execution times of protection on one machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectionCosts {
    /// Name of the file.
    #[serde(skip)]
    source: String,
    version: String,
    machine: Machine,
    costs: Vec<Cost>,
}

/// Protection that a stage applies or removes: the operation, the name of a layer, and the octets
/// of plaintext of a piece.
pub(super) type Protected<'a> = (Operation, &'a str, u64);

impl ProtectionCosts {
    /// Returns costs that this version of Takt measured on this machine.
    #[must_use]
    pub fn of_this_machine(costs: Vec<Cost>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { source: String::new(), version, machine: Machine::this(), costs }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] if the file cannot be read or contains no protection costs.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, text) = read_text(path)?;
        let mut costs: Self = serde_json::from_str(&text).map_err(|error| {
            let origin = Origin { source: source.clone(), line: 0 };
            ConfigError::new(origin, "", format!("not a file of protection costs: {error}"))
        })?;
        costs.source = source;
        Ok(costs)
    }

    /// Returns the origin of the costs, for certificates.
    pub(super) fn origin(&self) -> String {
        self.machine.origin(&self.source, &self.version)
    }

    /// Adds operations that one job performs one after the other.
    pub(super) fn together(&self, protected: &[Protected<'_>]) -> Result<MeasuredJobs, String> {
        let jobs = protected.iter().map(|one| self.job(*one)).collect::<Result<Vec<_>, String>>()?;
        let name = jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(" and ");
        let count = jobs.iter().map(|job| job.count).min().unwrap_or(0);
        let max_ns = jobs.iter().fold(0_u64, |sum, job| sum.saturating_add(job.max_ns));
        Ok(MeasuredJobs { name, count, max_ns })
    }

    /// Returns the longest time of this size, or of the next larger measured size. No size counts
    /// as faster than a smaller one.
    fn job(&self, (operation, layer, octets): Protected<'_>) -> Result<MeasuredJobs, String> {
        let Some(layer) = Layer::ALL.into_iter().find(|one| one.name() == layer) else {
            let names = Layer::ALL.map(Layer::name).join(", ");
            return Err(format!("unknown protection {layer:?}; expected {names}"));
        };
        let what = format!("{} {} of {octets} octets", operation.name(), layer.name());
        let alike = || self.costs.iter().filter(|cost| (cost.operation, cost.layer) == (operation, layer));
        let Some(size) = alike().map(|cost| cost.octets).filter(|size| *size >= octets).min() else {
            let largest = alike().map(|cost| cost.octets).max().unwrap_or(0);
            return Err(format!("{}: {what}: the largest measured size is {largest}", self.source));
        };
        let counted = alike().filter(|cost| cost.octets == size).map(|cost| cost.count).sum();
        if counted < MEASURED_JOBS_MIN {
            let need = format!("at least {MEASURED_JOBS_MIN} are needed");
            return Err(format!("{}: {what} was measured {counted} times, {need}", self.source));
        }
        let max_ns = alike().filter(|cost| cost.octets <= size).map(|cost| cost.max_ns).max().unwrap_or(0);
        Ok(MeasuredJobs { name: what, count: counted, max_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(octets: u64, count: u64, max_ns: u64) -> Cost {
        Cost { layer: Layer::RtpsSign, operation: Operation::Seal, octets, count, p50_ns: 1, max_ns }
    }

    #[test]
    fn piece_takes_as_long_as_the_next_larger_size_and_at_least_as_long_as_a_smaller_one() {
        let costs =
            ProtectionCosts::of_this_machine(vec![cost(64, 500, 900), cost(256, 400, 700), cost(1024, 99, 5_000)]);
        let job = |octets| costs.job((Operation::Seal, "rtps-sign", octets));
        for (octets, count, max_ns) in [(0, 500, 900), (64, 500, 900), (65, 400, 900), (256, 400, 900)] {
            let job = job(octets).expect("it was measured");
            assert_eq!((job.count, job.max_ns), (count, max_ns), "{octets}");
        }
        assert!(job(257).expect_err("too few").contains("was measured 99 times, at least 100"));
        assert!(job(1_025).expect_err("too large").contains("the largest measured size is 1024"));
        let other = costs.job((Operation::Open, "rtps-sign", 1)).expect_err("not measured");
        assert!(other.contains("open rtps-sign of 1 octets: the largest measured size is 0"), "{other}");
        let unknown = costs.job((Operation::Seal, "data", 1)).expect_err("no layer");
        assert!(unknown.contains("unknown protection \"data\"; expected data-sign, data-encrypt"), "{unknown}");
    }

    #[test]
    fn operations_of_one_job_add_up() {
        let costs = ProtectionCosts::of_this_machine(vec![cost(64, 500, 900), cost(256, 400, 1_000)]);
        let both = [(Operation::Seal, "rtps-sign", 64), (Operation::Seal, "rtps-sign", 200)];
        let job = costs.together(&both).expect("both were measured");
        assert_eq!((job.count, job.max_ns), (400, 1_900));
        assert_eq!(job.name, "seal rtps-sign of 64 octets and seal rtps-sign of 200 octets");
    }

    #[test]
    fn layer_has_one_name_in_keys_and_values() {
        for layer in Layer::ALL {
            assert_eq!(serde_json::to_value(layer).expect("a text"), layer.name());
        }
        for operation in [Operation::Seal, Operation::Open] {
            assert_eq!(serde_json::to_value(operation).expect("a text"), operation.name());
        }
    }
}
