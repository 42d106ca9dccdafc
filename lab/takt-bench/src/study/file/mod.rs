//! Campaign file (TOML).
//!
//! Unknown keys are errors. Durations are text with a unit: `250us`, `1ms`, `2s`.

mod figure;
mod flow;
mod kind;
pub mod site;
mod summary;

use super::parameter::{Parameters, Value};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

pub use figure::{Figure, Form, Published};
pub use flow::{FLOWS_MAX, Flow};
pub use kind::Kind;
pub use site::Site;
pub use summary::SummaryRow;

/// Maximum length of a file, octets.
pub const LEN_MAX: u64 = 1 << 20;
/// Maximum number of rounds.
pub const ROUNDS_MAX: u32 = 1000;
/// Maximum number of cells of one campaign.
pub const CELLS_MAX: usize = 100_000;

/// Campaign: the contents of one file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Campaign {
    /// Name of the results directory; letters, digits and `-`.
    pub name: String,
    /// Title of the report.
    pub title: String,
    /// Publication that the campaign reproduces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Notes on method and limits, one paragraph each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Summary at the beginning of the report: a few rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<SummaryRow>,
    /// Number of rounds. Each round measures every job once, in an order of its own.
    pub rounds: u32,
    /// Seed of the orders.
    #[serde(default)]
    pub seed: u64,
    /// Hosts of the processes.
    #[serde(default)]
    pub site: Site,
    /// Share of the machine that foreign processes may take before a job is repeated.
    #[serde(default = "foreign_max")]
    pub foreign_max: f64,
    /// Maximum number of tries of a disturbed job.
    #[serde(default = "tries")]
    pub tries: u32,
    /// Changes by `--quick`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<Scale>,
    /// Changes by `--paper`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<Scale>,
    /// Workloads.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
}

fn foreign_max() -> f64 {
    0.1
}

fn tries() -> u32 {
    3
}

/// Changes to the whole campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scale {
    /// Replacement of the number of rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Replacement of the number of tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}

/// Workload of a campaign.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workload {
    /// Name, unique in the file.
    pub name: String,
    /// Kind of the processes.
    pub kind: Kind,
    /// Names of systems; `@class` stands for all systems of a class.
    pub systems: Vec<String>,
    /// Parameters; each combination of their values is a cell for each system.
    #[serde(default)]
    pub parameters: Parameters,
    /// Keys of the agent contract that are equal in all cells.
    #[serde(default)]
    pub measure: BTreeMap<String, Value>,
    /// Changes of `parameters` and `measure` by `--quick`.
    #[serde(default, skip_serializing_if = "Change::is_empty")]
    pub quick: Change,
    /// Changes by `--paper`.
    #[serde(default, skip_serializing_if = "Change::is_empty")]
    pub paper: Change,
    /// Flows by machine, for a `mix`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, Vec<Flow>>,
    /// Figures and tables of the report.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
}

/// Replaced parameters and keys.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Change {
    /// Replaces `parameters` of the same name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Vec<Value>>,
    /// Replaces `measure` of the same name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measure: BTreeMap<String, Value>,
    /// Replaces the systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub systems: Option<Vec<String>>,
}

impl Change {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Length of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// Short run with the changes of `quick`.
    Quick,
    /// Length given by the file.
    #[default]
    Normal,
    /// Length of the publication, with the changes of `paper`.
    Paper,
}

impl Campaign {
    /// Reads a file, and applies the changes of `length`.
    ///
    /// # Errors
    /// The file cannot be read, is too long, or breaks a rule; the error names line and rule.
    pub fn read(path: &Path, length: Length) -> Result<Self> {
        let failure = |e| Error::os(path.display().to_string(), e);
        let len = std::fs::metadata(path).map_err(failure)?.len();
        if len > LEN_MAX {
            return Err(Error::Usage(format!("{}: {len} octets; the maximum is {LEN_MAX}", path.display())));
        }
        let text = std::fs::read_to_string(path).map_err(failure)?;
        let named = |why: Error| Error::Usage(format!("{}: {why}", path.display()));
        let mut campaign = Self::parse(&text, length).map_err(named)?;
        campaign.site.read(path.parent().unwrap_or(Path::new(""))).map_err(named)?;
        Ok(campaign)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// The text breaks a rule.
    pub fn parse(text: &str, length: Length) -> Result<Self> {
        let mut campaign: Self = toml::from_str(text).map_err(|e| Error::Usage(e.to_string()))?;
        campaign.scale(length);
        campaign.workloads.iter_mut().for_each(Workload::add_flows);
        campaign.check()?;
        Ok(campaign)
    }

    fn scale(&mut self, length: Length) {
        let scale = match length {
            Length::Quick => self.quick,
            Length::Normal => None,
            Length::Paper => self.paper,
        };
        if let Some(rounds) = scale.and_then(|scale| scale.rounds) {
            self.rounds = rounds;
        }
        if let Some(tries) = scale.and_then(|scale| scale.tries) {
            self.tries = tries;
        }
        for workload in &mut self.workloads {
            let change = match length {
                Length::Quick => std::mem::take(&mut workload.quick),
                Length::Normal => Change::default(),
                Length::Paper => std::mem::take(&mut workload.paper),
            };
            workload.parameters.0.extend(change.parameters);
            workload.measure.extend(change.measure);
            if let Some(systems) = change.systems {
                workload.systems = systems;
            }
            (workload.quick, workload.paper) = Default::default();
        }
        (self.quick, self.paper) = (None, None);
    }

    fn check(&self) -> Result<()> {
        let usage = |text: String| Err(Error::Usage(text));
        if self.name.is_empty() || !self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return usage(format!("name = {:?}: expected letters, digits and -", self.name));
        }
        if self.rounds == 0 || self.rounds > ROUNDS_MAX {
            return usage(format!("rounds = {}: expected 1 to {ROUNDS_MAX}", self.rounds));
        }
        if self.tries == 0 || !(0.0..=1.0).contains(&self.foreign_max) {
            return usage("tries must be 1 or more, and foreign-max 0 to 1".into());
        }
        if self.workloads.is_empty() {
            return usage("no [[workload]]".into());
        }
        let mut names = std::collections::BTreeSet::new();
        for workload in &self.workloads {
            if !names.insert(workload.name.as_str()) {
                return usage(format!("two workloads are called {}", workload.name));
            }
            let check = workload.check().and_then(|()| self.site.check_workload(workload));
            check.map_err(|why| Error::Usage(format!("workload {}: {why}", workload.name)))?;
        }
        self.summary.iter().try_for_each(|row| self.check_row(row))?;
        self.site.check()
    }

    fn check_row(&self, row: &SummaryRow) -> Result<()> {
        let usage = |text: String| Err(Error::Usage(format!("summary {:?}: {text}", row.title)));
        let Some(workload) = self.workloads.iter().find(|workload| workload.name == row.workload) else {
            return usage(format!("no workload is called {}", row.workload));
        };
        match row.filter.keys().find(|name| !workload.parameters.0.contains_key(*name)) {
            Some(name) => usage(format!("no parameter of {} is called {name}", row.workload)),
            None => Ok(()),
        }
    }
}

impl Workload {
    fn check(&self) -> Result<()> {
        self.check_machines()?;
        self.parameters.check(self.kind)?;
        super::parameter::check_keys(self.kind, &self.measure)?;
        if self.systems.is_empty() {
            return Err(Error::Usage("no systems".into()));
        }
        for figure in &self.figures {
            let named = figure.by.iter().chain(&figure.across).chain(figure.filter.keys());
            for name in named {
                if !self.parameters.0.contains_key(name) {
                    return Err(Error::Usage(format!("figure {:?}: no parameter is called {name}", figure.title)));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        name = "paper-b"
        title = "Round trips by size"
        rounds = 5
        [quick]
        rounds = 1
        tries = 2
        [[workload]]
        name = "latency-rtt"
        kind = "round-trip"
        systems = ["takt-udp", "@dds"]
        parameters = { size = [16, 64], reliability = ["reliable"] }
        measure = { warmup = 1000, count = 10000 }
        quick = { parameters = { size = [16] }, measure = { count = 100 } }
        [[workload.figure]]
        form = "lines"
        title = "Figure 4: mean latency by size"
        value = "mean"
        by = "size"
        halved = true
    "#;

    #[test]
    fn quick_replaces_only_the_named_keys() {
        let normal = Campaign::parse(FILE, Length::Normal).unwrap();
        let quick = Campaign::parse(FILE, Length::Quick).unwrap();
        assert_eq!((normal.rounds, quick.rounds), (5, 1));
        assert_eq!((normal.tries, quick.tries), (3, 2));
        assert_eq!(normal.workloads[0].parameters.0["size"].len(), 2);
        assert_eq!(quick.workloads[0].parameters.0["size"], [Value::Number(16)]);
        assert_eq!(quick.workloads[0].measure["count"], Value::Number(100));
        assert_eq!(quick.workloads[0].measure["warmup"], Value::Number(1000));
        assert_eq!(normal.workloads[0].measure["count"], Value::Number(10_000));
    }

    #[test]
    fn summary_rows_name_existing_workloads_and_parameters() {
        let row = |workload: &str, name: &str| {
            let row = format!(
                "[[summary]]\nwhat = \"64 B\"\nworkload = \"{workload}\"\nwhere = {{ {name} = 64 }}\n\
                 value = \"p50\"\nsystem = \"takt-udp\"\nbeside = [\"two\"]\n"
            );
            Campaign::parse(&FILE.replacen("[quick]", &format!("{row}[quick]"), 1), Length::Normal)
        };
        assert_eq!(row("latency-rtt", "size").unwrap().summary[0].others, ["two"]);
        assert!(row("latency", "size").unwrap_err().to_string().contains("no workload is called latency"));
        let error = row("latency-rtt", "colour").unwrap_err().to_string();
        assert!(error.contains("no parameter of latency-rtt is called colour"), "{error}");
    }

    #[test]
    fn errors_name_the_broken_rule() {
        let cases = [
            ("rounds = 5", "rounds = 0", "rounds = 0"),
            ("\"paper-b\"", "\"a/b\"", "letters, digits"),
            ("kind = \"round-trip\"", "kind = \"dance\"", "unknown variant `dance`"),
            ("size = [16, 64]", "colour = [1]", "colour"),
            ("by = \"size\"", "by = \"batch\"", "no parameter is called batch"),
            ("warmup = 1000", "warm = 1000", "warm"),
            ("title = \"Round", "titel = \"Round", "titel"),
            ("[\"takt-udp\", \"@dds\"]", "[]", "no systems"),
        ];
        for (old, new, expected) in cases {
            assert!(FILE.contains(old), "{old}");
            let error = Campaign::parse(&FILE.replacen(old, new, 1), Length::Normal).unwrap_err().to_string();
            assert!(error.contains(expected), "{new}: {error}");
        }
    }
}
