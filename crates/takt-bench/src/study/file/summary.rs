//! Rows of a campaign's summary.

use crate::study::parameter::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A row of the summary: the value of one system, the best value of others, and a limit.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SummaryRow {
    /// What is compared.
    pub what: String,
    /// Name of the workload.
    pub workload: String,
    /// The cells: those with all these values. Of several, the first in the order of the file counts.
    #[serde(rename = "where", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, Value>,
    /// A statistic of latencies or a figure, as in figures.
    pub value: String,
    /// The system that the row is about.
    pub system: String,
    /// Systems of which the best is shown.
    pub beside: Vec<String>,
    /// What the operating system alone does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}
