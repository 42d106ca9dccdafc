//! Figures and tables of a campaign file.

use crate::study::parameter::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figure or table of the report.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// Form of the figure.
    pub form: Form,
    /// Title, with the number in the publication if it reproduces one.
    pub title: String,
    /// Filter of the cells shown: those with all these values.
    #[serde(rename = "where", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, Value>,
    /// Statistic of latencies (`mean`, `p50`, `p99.9`, `max`, `stdev`) or figure of
    /// [`cell`](crate::study::cell).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Columns of a table, instead of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Width of the bins of a histogram, us; without it, bins are logarithmic.
    #[serde(default, rename = "bin-us", skip_serializing_if = "Option::is_none")]
    pub bin_us: Option<u32>,
    /// Parameter of the x axis, or of the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Second parameter of a heat map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<String>,
    /// System that gains are relative to; for a t-test, the first of each pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Whether round trips are halved, as an estimate of one way.
    #[serde(default)]
    pub halved: bool,
    /// Values of the publication, shown next to the measured ones.
    #[serde(default, rename = "paper", skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Sentence below the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
}

/// Forms of figures and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `value` over `by`, a line for each system, with the spread of rounds.
    Lines,
    /// `value` by system, a bar for each; `by` groups them.
    Bars,
    /// Latencies in the order of samples, with a vertical histogram, for each system.
    Series,
    /// Distributions of latencies, logarithmic.
    Histogram,
    /// Empirical distribution function with a logarithmic tail (1 - F).
    Ecdf,
    /// `value` by `by` and `across`, for each system.
    HeatMap,
    /// Gains of `value` relative to `baseline`.
    Gains,
    /// Minimum, mean, maximum, standard deviation by system and `by`.
    Statistics,
    /// Welch's t-test for each pair of systems, by `by`.
    TTest,
    /// All percentiles up to 99.9999, with confidence intervals.
    Percentiles,
    /// All figures that a workload has, by system and parameters.
    Table,
    /// Number of samples that have arrived, over time.
    Cumulative,
    /// Delay of each sample after its due arrival time, over its number.
    Normalised,
}

/// Value of the publication.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// System as the publication names it.
    pub system: String,
    /// Systems of the campaign that correspond to it; if empty, those whose name or title begins
    /// with its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub here: Vec<String>,
    /// Conditions of the value, such as `16 B, reliable`.
    #[serde(default)]
    pub at: String,
    /// Value with its unit.
    pub value: String,
}
