//! Pooled measurements of a cell over all rounds.

use super::value::{VARIATION, Value};
use crate::sdn_overload::series::Series;
use crate::statistics::Interval;
use crate::statistics::bootstrap::{Resamples, interval, weighted_median};
use crate::statistics::distribution::{Distribution, is_supported};
use crate::statistics::moments::Moments;
use crate::study::cell::{Cell, Latency, Measured, Measurement, Outcome};
use crate::study::directory::Results;
use crate::study::file::Workload;
use crate::study::parameter::Values;
use crate::study::system::System;
use std::collections::{BTreeMap, BTreeSet};

/// Resample stream of the results that others are compared with.
const OTHER_RESULTS: u64 = 1 << 16;

/// Cell with its rounds.
#[derive(Debug)]
pub struct Pool<'a> {
    /// Pooled cell.
    pub cell: &'a Cell,
    /// System of the cell, and its index in the campaign.
    pub system: Option<(usize, &'a System)>,
    /// Rounds with measurements.
    pub rounds: Vec<&'a Measurement>,
    /// Rounds that failed, with reasons.
    pub failures: Vec<(&'a Measurement, &'a str)>,
    /// Figures of [`rounds`](Self::rounds), in the same order.
    measured: Vec<&'a Measured>,
    distribution: Distribution,
    resamples: Resamples,
}

/// Value as a function of the multiplicity of each round.
type Statistic<'a> = Box<dyn Fn(&[u32]) -> f64 + 'a>;

/// Estimate of a value over rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// For latencies: statistic of all samples. For figures: median of rounds.
    pub value: f64,
    /// Value of each round that has one.
    pub rounds: Vec<f64>,
    /// Interval of 95 % by bootstrap over rounds; `None` for one round.
    pub interval: Option<Interval>,
}

impl Estimate {
    /// Returns the smallest and the largest of all rounds and the value, which may be beyond all
    /// rounds.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        self.rounds.iter().fold((self.value, self.value), |(low, high), round| (low.min(*round), high.max(*round)))
    }
}

/// Returns all cells of a workload that were tried, in the order of systems and values in the
/// campaign file.
#[must_use]
pub fn pools<'a>(results: &'a Results, workload: &Workload) -> Vec<Pool<'a>> {
    let mut groups: BTreeMap<&Cell, BTreeMap<u32, &Measurement>> = BTreeMap::new();
    for measurement in results.measurements.iter().filter(|one| one.cell.workload == workload.name) {
        // A later measurement of a round replaces the earlier one.
        groups.entry(&measurement.cell).or_default().insert(measurement.round, measurement);
    }
    let order: BTreeMap<Values, usize> = workload.combinations().into_iter().zip(0..).collect();
    let mut pools: Vec<Pool> = groups.into_iter().map(|(cell, rounds)| Pool::of(results, cell, rounds)).collect();
    pools.sort_by_key(|pool| (pool.place(), order.get(&pool.cell.values).copied().unwrap_or(usize::MAX)));
    pools
}

impl<'a> Pool<'a> {
    fn of(results: &'a Results, cell: &'a Cell, all: BTreeMap<u32, &'a Measurement>) -> Self {
        let (mut rounds, mut measured, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for measurement in all.into_values() {
            match &measurement.outcome {
                Outcome::Measured(figures) => {
                    rounds.push(measurement);
                    measured.push(figures.as_ref());
                }
                Outcome::Failed { why } => failures.push((measurement, why.as_str())),
            }
        }
        let empty: &[(u64, u64)] = &[];
        let buckets = measured.iter().map(|one| one.latency.as_ref().map_or(empty, |latency| &latency.buckets));
        let distribution = Distribution::of(&buckets.collect::<Vec<_>>());
        let system = results.header.systems.iter().enumerate().find(|(_, system)| system.name == cell.system);
        // The resamples of two systems are independent.
        let resamples = Resamples::new(rounds.len(), system.map_or(0, |(place, _)| place as u64));
        Self { cell, system, rounds, failures, measured, distribution, resamples }
    }

    /// Returns the index of the system in the campaign.
    #[must_use]
    pub fn place(&self) -> usize {
        self.system.map_or(usize::MAX >> 8, |(place, _)| place)
    }

    /// Returns the name of the system for people.
    #[must_use]
    pub fn title(&self) -> String {
        self.system.map_or_else(|| self.cell.system.clone(), |(_, system)| system.title.clone())
    }

    /// Reports whether its writer batches samples.
    #[must_use]
    pub fn batches(&self) -> bool {
        self.system.is_some_and(|(_, system)| system.batches)
    }

    /// Returns the number of disturbed rounds.
    #[must_use]
    pub fn disturbed(&self) -> usize {
        self.rounds.iter().filter(|round| round.disturbance.disturbed).count()
    }

    /// Returns remarks on its figures for the reader; empty if there are none.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let all = self.rounds.len() + self.failures.len();
        let mut remarks = Vec::new();
        if self.disturbed() > 0 {
            remarks.push(format!("* disturbed in {} of {all} rounds", self.disturbed()));
        }
        if !self.failures.is_empty() {
            remarks.push(format!("failed in {} of {all} rounds", self.failures.len()));
        }
        if self.rounds.len() == 1 {
            remarks.push("one round".into());
        }
        if self.batches() {
            remarks.push("batches".into());
        }
        remarks
    }

    /// Iterates over the latencies of each round that has them.
    pub fn latencies(&self) -> impl Iterator<Item = &'a Latency> {
        self.measured.iter().filter_map(|measured| measured.latency.as_ref())
    }

    /// Iterates over the arrivals of each round that has them.
    pub fn arrivals(&self) -> impl Iterator<Item = &'a Series> {
        self.measured.iter().filter_map(|measured| measured.arrivals.as_ref())
    }

    /// Returns the latencies of all rounds.
    #[must_use]
    pub const fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Returns the names of its figures.
    #[must_use]
    pub fn figures(&self) -> BTreeSet<&'a str> {
        self.measured.iter().flat_map(|measured| measured.figures.keys().map(String::as_str)).collect()
    }

    /// Returns the moments of all samples, us.
    #[must_use]
    pub fn moments(&self) -> Option<Moments> {
        self.latencies().map(|latency| Moments::of_summary(&latency.summary)).reduce(Moments::merged)
    }

    /// Returns the moments of a value's rounds: of the means of latencies, us, or of a figure.
    #[must_use]
    pub fn moments_of_rounds(&self, value: &Value) -> Option<Moments> {
        Moments::of(&self.of_rounds(value))
    }

    fn of_rounds(&self, value: &Value) -> Vec<f64> {
        self.measured.iter().filter_map(|measured| value.of_round(measured)).collect()
    }

    /// Estimates a value over all rounds. Returns `None` if there is none, or too few samples.
    #[must_use]
    pub fn estimate(&self, value: &Value) -> Option<Estimate> {
        let all = vec![1; self.measured.len()];
        let over_all = self.statistic(value)?(&all);
        if !over_all.is_finite() {
            return None;
        }
        let interval = if self.rounds.len() > 1 { interval(self.resampled(value)) } else { None };
        Some(Estimate { value: over_all, rounds: self.of_rounds(value), interval })
    }

    /// Returns the value in each resample of rounds; empty if there is none.
    #[must_use]
    pub fn resampled(&self, value: &Value) -> Vec<f64> {
        self.statistic(value).map(|statistic| self.resamples.values(statistic)).unwrap_or_default()
    }

    /// Returns the value as a function of the multiplicity of each round.
    fn statistic<'b>(&'b self, value: &Value) -> Option<Statistic<'b>> {
        if let Value::Figure(_) = value {
            let of_rounds: Vec<f64> =
                self.measured.iter().map(|measured| value.of_round(measured).unwrap_or(f64::NAN)).collect();
            let is_any = of_rounds.iter().any(|value| value.is_finite());
            let median = move |weights: &[u32]| {
                let there = of_rounds.iter().zip(weights).filter(|(value, _)| value.is_finite());
                let (values, weights): (Vec<f64>, Vec<u32>) = there.unzip();
                weighted_median(&values, &weights)
            };
            return is_any.then(|| Box::new(median) as Statistic<'_>);
        }
        let count = self.distribution.count();
        if count == 0 {
            return None;
        }
        let summaries: Vec<_> =
            self.measured.iter().map(|measured| measured.latency.as_ref().map(|latency| &latency.summary)).collect();
        let least = move |summaries: &[Option<&crate::stats::Summary>], weights: &[u32]| {
            let drawn = summaries.iter().zip(weights).filter(|(_, weight)| **weight > 0);
            drawn.filter_map(|(summary, _)| summary.map(|summary| summary.min)).fold(f64::INFINITY, f64::min)
        };
        let quantile = |p: f64, weights: &[u32]| self.distribution.weighted_quantile(p, weights) / 1e3;
        match *value {
            Value::Quantile(p) => {
                is_supported(count, p).then(|| Box::new(move |w: &[u32]| quantile(p, w)) as Statistic<'_>)
            }
            Value::Variation => is_supported(count, VARIATION).then(|| {
                let variation = move |w: &[u32]| (quantile(VARIATION, w) - least(&summaries, w)).max(0.0);
                Box::new(variation) as Statistic<'_>
            }),
            Value::Min => Some(Box::new(move |w| least(&summaries, w))),
            Value::Max => Some(Box::new(move |weights| {
                let drawn = summaries.iter().zip(weights).filter(|(_, weight)| **weight > 0);
                drawn.filter_map(|(summary, _)| summary.map(|one| one.max)).fold(f64::NEG_INFINITY, f64::max)
            })),
            Value::Mean | Value::Deviation | Value::Variance => {
                let value = value.clone();
                Some(Box::new(move |weights| {
                    let drawn = summaries.iter().zip(weights).filter_map(|(summary, weight)| {
                        let one = Moments::of_summary((*summary)?);
                        (0..*weight).map(|_| one).reduce(Moments::merged)
                    });
                    let of = |all: Moments| match value {
                        Value::Mean => all.mean,
                        Value::Variance => all.deviation() * all.deviation(),
                        _ => all.deviation(),
                    };
                    drawn.reduce(Moments::merged).map_or(f64::NAN, of)
                }))
            }
            Value::Figure(_) => None,
        }
    }

    /// Returns the ratio of a value to that of another system, with its interval. Rounds of both
    /// are resampled independently. Returns `None` if one has no value.
    #[must_use]
    pub fn ratio(&self, other: &Self, value: &Value) -> Option<(f64, Option<Interval>)> {
        self.ratio_by(other, &other.resamples, value)
    }

    /// Returns the ratio of a value to that of the same system in other results.
    #[must_use]
    pub fn ratio_to(&self, before: &Self, value: &Value) -> Option<(f64, Option<Interval>)> {
        let resamples = Resamples::new(before.rounds.len(), OTHER_RESULTS);
        self.ratio_by(before, &resamples, value)
    }

    fn ratio_by(&self, other: &Self, resamples: &Resamples, value: &Value) -> Option<(f64, Option<Interval>)> {
        let ratio = self.estimate(value)?.value / other.estimate(value)?.value;
        if !ratio.is_finite() {
            return None;
        }
        if self.rounds.len() < 2 || other.rounds.len() < 2 {
            return Some((ratio, None));
        }
        let others = resamples.values(other.statistic(value)?);
        Some((ratio, interval(self.resampled(value).into_iter().zip(others).map(|(a, b)| a / b).collect())))
    }
}
