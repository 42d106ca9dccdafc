//! Summary rows of a campaign file.

use crate::study::parameter::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Row of the summary: the value of one system, the best value of others, and a limit.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SummaryRow {
    /// Title of the row.
    #[serde(rename = "what")]
    pub title: String,
    /// Name of the workload.
    pub workload: String,
    /// Filter of the cells: those with all these values. Of several, the first in the order of the
    /// file counts.
    #[serde(rename = "where", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, Value>,
    /// Statistic of latencies or figure, as in figures.
    pub value: String,
    /// System of the row.
    pub system: String,
    /// Systems of which the best is shown.
    #[serde(rename = "beside")]
    pub others: Vec<String>,
    /// System that stands for the limit, such as plain sockets of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}
