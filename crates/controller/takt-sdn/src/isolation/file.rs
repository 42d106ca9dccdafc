//! The operator's isolation file, in TOML.
//!
//! ```toml
//! default = "deny"                # between participants that no rule names: allow or deny; allow by default
//!
//! [[label]]                       # a participant has each label of which one condition holds
//! name = "control"
//! addresses = ["10.0.0.0/24"]     # networks of IP addresses
//! domains = [0, 1]                # DDS domains
//! partitions = ["control/*"]      # of its publisher or subscriber; patterns as in PARTITION
//! property = "control"            # `rt.label=control` in USER_DATA or in the properties, of the endpoint or the participant
//!
//! [[rule]]                        # the first rule that names a label of either side counts, in both directions
//! between = ["control", "control"]
//! decision = "allow"
//! ```
//!
//! `*` in a rule stands for any participant, with or without labels. Errors name the line and the
//! key.

use std::net::IpAddr;

use serde::Deserialize;
use takt_wire::qos::Partition;
use toml::Spanned;

use super::{Decision, Isolation, Label, Network, Rule, Side};
use crate::contract::FileError;

/// Maximum length of a file in octets.
pub const FILE_LEN_MAX: usize = 256 << 10;
/// Maximum number of labels in a file.
pub const LABELS_MAX: usize = 256;
/// Maximum number of rules in a file.
pub const RULES_MAX: usize = 1024;
/// Maximum number of networks of all labels.
pub const NETWORKS_MAX: usize = 256;
/// Maximum number of flow entries in each switch that are derived from networks and rules.
pub const ENTRIES_MAX: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    default: Decision,
    #[serde(default)]
    label: Vec<Spanned<LabelTable>>,
    #[serde(default)]
    rule: Vec<Spanned<RuleTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelTable {
    name: Spanned<String>,
    #[serde(default)]
    addresses: Vec<Spanned<String>>,
    #[serde(default)]
    domains: Vec<u32>,
    #[serde(default)]
    partitions: Vec<String>,
    property: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    between: [Spanned<String>; 2],
    decision: Decision,
}

struct Text<'a>(&'a str);

impl Text<'_> {
    fn error(&self, at: usize, key: &str, what: impl Into<String>) -> FileError {
        let before = &self.0.as_bytes()[..at.min(self.0.len())];
        let line = before.iter().filter(|octet| **octet == b'\n').count() + 1;
        FileError { line, key: key.to_owned(), what: what.into() }
    }

    fn network(&self, text: &Spanned<String>) -> Result<Network, FileError> {
        let wrong = || {
            let what = format!("{:?} is not a network; expected ADDRESS/LENGTH, as in 10.0.0.0/24", text.get_ref());
            self.error(text.span().start, "addresses", what)
        };
        let (address, prefix_len) = text.get_ref().split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix_len: u8 = prefix_len.parse().map_err(|_| wrong())?;
        Network::new(address, prefix_len).ok_or_else(wrong)
    }

    fn label(&self, table: &Spanned<LabelTable>, known: &[Label]) -> Result<Label, FileError> {
        let LabelTable { name, addresses, domains, partitions, property } = table.get_ref();
        let (at, text) = (name.span().start, name.get_ref());
        if text.is_empty() || text == "*" {
            return Err(self.error(at, "name", "expected a name, other than *"));
        }
        if known.iter().any(|label| label.name == *text) {
            return Err(self.error(at, "name", format!("an earlier label has the name {text:?}")));
        }
        if addresses.is_empty() && domains.is_empty() && partitions.is_empty() && property.is_none() {
            let what = "the label matches no participant; expected addresses, domains, partitions or property";
            return Err(self.error(table.span().start, "label", what));
        }
        Ok(Label {
            name: text.clone(),
            networks: addresses.iter().map(|text| self.network(text)).collect::<Result<_, _>>()?,
            domains: domains.clone(),
            partitions: (!partitions.is_empty()).then(|| Partition { names: partitions.clone() }),
            property: property.clone(),
        })
    }

    fn rule(&self, table: &Spanned<RuleTable>, labels: &[Label]) -> Result<Rule, FileError> {
        let RuleTable { between, decision } = table.get_ref();
        let side = |text: &Spanned<String>| {
            if text.get_ref() == "*" {
                return Ok(Side::Any);
            }
            let index = labels.iter().position(|label| label.name == *text.get_ref());
            let what = || format!("there is no label {:?}", text.get_ref());
            index.map(Side::Label).ok_or_else(|| self.error(text.span().start, "between", what()))
        };
        let line = self.error(table.span().start, "", "").line;
        Ok(Rule { between: [side(&between[0])?, side(&between[1])?], decision: *decision, line })
    }
}

/// Parses a file.
pub(super) fn parse(text: &str) -> Result<Isolation, FileError> {
    let source = Text(text);
    if text.len() > FILE_LEN_MAX {
        return Err(source.error(0, "", format!("the file has {} octets; the maximum is {FILE_LEN_MAX}", text.len())));
    }
    let file: File = toml::from_str(text)
        .map_err(|error| source.error(error.span().map_or(0, |span| span.start), "", error.message()))?;
    if file.label.len() > LABELS_MAX || file.rule.len() > RULES_MAX {
        return Err(source.error(0, "", format!("more than {LABELS_MAX} labels, or more than {RULES_MAX} rules")));
    }
    let mut labels = Vec::new();
    for table in &file.label {
        labels.push(source.label(table, &labels)?);
    }
    if labels.iter().map(|label| label.networks.len()).sum::<usize>() > NETWORKS_MAX {
        return Err(source.error(0, "addresses", format!("more than {NETWORKS_MAX} networks")));
    }
    let rules = file.rule.iter().map(|table| source.rule(table, &labels)).collect::<Result<Vec<_>, _>>()?;
    let isolation = Isolation { default: file.default, labels, rules };
    let entries = isolation.filters().len();
    if entries > ENTRIES_MAX {
        let what = format!("networks and rules make {entries} flow entries, at most {ENTRIES_MAX} are possible");
        return Err(source.error(0, "rule", what));
    }
    Ok(isolation)
}
