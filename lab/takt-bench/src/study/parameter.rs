//! Parameters of workloads, and their mapping to keys of the agent contract
//! (docs/reference/bench-agents.md).

use super::file::Kind;
use crate::error::{Error, Result};
use crate::isolation::countermeasure::{Configuration, Countermeasure};
use crate::sdn_overload::Condition;
use crate::sdn_overload::category::Category;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Value of a parameter or of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Whole number.
    Number(u64),
    /// Word.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Values of one cell, by parameter.
pub type Values = BTreeMap<String, Value>;

/// Parameters with the values that a workload measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Parameters(pub BTreeMap<String, Vec<Value>>);

/// Parameter of campaign files.
struct ParameterSpec {
    /// Name in the file.
    name: &'static str,
    /// Key of the agent contract; empty: the parameter is not passed to agents.
    key: &'static str,
    /// Allowed values.
    allowed: Allowed,
}

/// Allowed values of a parameter.
enum Allowed {
    /// Whole numbers.
    Number,
    /// Words, with the words of the contract that they become.
    Words(&'static [(&'static str, &'static str)]),
    /// Text that passes a check; the check's error says what is expected.
    Text(fn(&str) -> std::result::Result<(), String>),
}

const fn number(name: &'static str, key: &'static str) -> ParameterSpec {
    ParameterSpec { name, key, allowed: Allowed::Number }
}

const fn words(name: &'static str, key: &'static str, words: &'static [(&'static str, &'static str)]) -> ParameterSpec {
    ParameterSpec { name, key, allowed: Allowed::Words(words) }
}

const fn text(
    name: &'static str,
    key: &'static str,
    check: fn(&str) -> std::result::Result<(), String>,
) -> ParameterSpec {
    ParameterSpec { name, key, allowed: Allowed::Text(check) }
}

/// Maximum percentage of a link's frames that may be lost.
const LOSS_PERCENT_MAX: f64 = 50.0;

/// Words of a switch.
const OFF_ON: &[(&str, &str)] = &[("off", "0"), ("on", "1")];

const KNOWN: &[ParameterSpec] = &[
    number("size", "size"),
    words("reliability", "rel", &[("reliable", "reliable"), ("best-effort", "besteffort")]),
    words("history", "hist", &[("all", "all"), ("1", "1"), ("16", "16")]),
    words("notify", "notify", &[("auto", "auto"), ("listener", "listener"), ("waitset", "waitset"), ("poll", "poll")]),
    words("type", "type", &[("octets", "octets"), ("complex", "complex")]),
    words("reply", "reply", &[("whole", "whole"), ("ack", "ack")]),
    number("period-us", "period_ns"),
    number("rate", "rate"),
    number("batch", "batch"),
    number("readers", "n"),
    words("delivery", "delivery", &[("unicast", "unicast"), ("multicast", "multicast"), ("broadcast", "broadcast")]),
    number("loan", "loan"),
    words("touch", "touch", &[("0", "0"), ("1", "1"), ("all", "all")]),
    number("participants", "participants"),
    number("endpoints", "endpoints"),
    number("instances", "instances"),
    number("samples", "count"),
    number("outage-ms", "outage_ms"),
    text("loss-percent", "loss_percent", |text| {
        let is_share = text.parse::<f64>().is_ok_and(|percent| (0.0..=LOSS_PERCENT_MAX).contains(&percent));
        if is_share { Ok(()) } else { Err(format!("0 to {LOSS_PERCENT_MAX}, such as 5 or \"0.1\"")) }
    }),
    words("pass-percent", "pass_percent", &[("1", "1"), ("10", "10"), ("100", "100")]),
    words(
        "durability",
        "durability",
        &[("transient-local", "transient-local"), ("transient", "transient"), ("persistent", "persistent")],
    ),
    // The runner creates the files of this protection, and passes their directory to the agents.
    words(
        "protection",
        "protection",
        &[
            ("none", "none"),
            ("rtps-sign", "rtps-sign"),
            ("rtps-encrypt", "rtps-encrypt"),
            ("metadata-sign", "metadata-sign"),
            ("metadata-encrypt", "metadata-encrypt"),
            ("data-encrypt", "data-encrypt"),
        ],
    ),
    text("machine", "machine", |_| Ok(())),
    text("flow", "flow", |_| Ok(())),
    text("configuration", "", |text| {
        let all = Countermeasure::ALL.into_iter().collect();
        let why = || {
            let names = Countermeasure::ALL.map(Countermeasure::name).join(", ");
            format!("baseline, paper-baseline, isolated, alone-X and without-X, X one of {names}")
        };
        Configuration::named(text, all).map(drop).ok_or_else(why)
    }),
    words("interference", "", OFF_ON),
    words("way", "", &[("one-way", ""), ("round-trip", "")]),
    text("category", "", |text| text.parse::<Category>().map(drop)),
    text("condition", "", |text| text.parse::<Condition>().map(drop)),
];

/// Reports whether the parameter belongs to workloads that agents measure: it has a key.
fn belongs_to_agents(known: &&ParameterSpec) -> bool {
    !known.key.is_empty()
}

/// Returns the keys of `measure` of a kind, as in the agent contract.
fn keys(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Isolation => &["warmup", "count", "rate", "link-megabits", "queue", "flows", "flow-size", "fifo"],
        Kind::SdnOverload => &["secs", "period-us", "link-megabits", "queue", "frame-rate", "switches"],
        _ => &[
            "warmup",
            "count",
            "warm_s",
            "secs",
            "batch",
            "touch",
            "reply",
            "hist",
            "participants",
            "endpoints",
            "instances",
        ],
    }
}

impl ParameterSpec {
    fn argument(&self, value: &Value) -> Result<String> {
        let text = match (&self.allowed, value) {
            (Allowed::Number, Value::Number(us)) if self.name == "period-us" => (us * 1000).to_string(),
            (Allowed::Number, Value::Number(number)) => number.to_string(),
            (Allowed::Number, Value::Text(_)) => return Err(self.unknown(value, "whole numbers")),
            (Allowed::Words(words), value) => {
                let text = value.to_string();
                let known = words.iter().find(|(word, _)| *word == text);
                let names = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
                known.map(|(_, argument)| (*argument).to_owned()).ok_or_else(|| self.unknown(value, &names()))?
            }
            (Allowed::Text(check), value) => {
                let text = value.to_string();
                check(&text).map_err(|allowed| self.unknown(value, &allowed))?;
                text
            }
        };
        Ok(format!("{}={text}", self.key))
    }

    fn unknown(&self, value: &Value, allowed: &str) -> Error {
        Error::Usage(format!("{} = {value}: expected {allowed}", self.name))
    }
}

impl Parameters {
    /// Checks that names and values are known to workloads of this kind, and that no list is empty.
    ///
    /// # Errors
    /// Names the first violation.
    pub fn check(&self, kind: Kind) -> Result<()> {
        for (name, values) in &self.0 {
            let is_fit = match kind.parameters() {
                Some(own) => own.contains(&name.as_str()),
                None => belongs_to_agents(&known(name)?),
            };
            if !is_fit {
                return Err(Error::Usage(format!("workloads of this kind have no parameter {name}")));
            }
            if values.is_empty() {
                return Err(Error::Usage(format!("{name} has no value")));
            }
            for value in values {
                known(name)?.argument(value)?;
            }
        }
        Ok(())
    }

    /// Returns each combination of values, in the order of the file's lists, with names in
    /// alphabetical order.
    #[must_use]
    pub fn combinations(&self) -> Vec<Values> {
        let mut combinations = vec![Values::new()];
        for (name, values) in &self.0 {
            let extended = |values_so_far: &Values| {
                let one = |value: &Value| {
                    let mut combination = values_so_far.clone();
                    combination.insert(name.clone(), value.clone());
                    combination
                };
                values.iter().map(one).collect::<Vec<_>>()
            };
            combinations = combinations.iter().flat_map(extended).collect();
        }
        combinations
    }
}

fn known(name: &str) -> Result<&'static ParameterSpec> {
    let names = || KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
    KNOWN
        .iter()
        .find(|known| known.name == name)
        .ok_or_else(|| Error::Usage(format!("no parameter is called {name}; expected one of {}", names())))
}

/// Returns the words that a parameter allows.
#[cfg(all(test, feature = "security"))]
pub(super) fn words_of(name: &str) -> Vec<&'static str> {
    match known(name).map(|known| &known.allowed) {
        Ok(Allowed::Words(words)) => words.iter().map(|(word, _)| *word).collect(),
        _ => Vec::new(),
    }
}

/// Returns the arguments of the agents for the values of a cell.
///
/// # Errors
/// A name or a value is unknown.
pub fn arguments(values: &Values) -> Result<Vec<String>> {
    values.iter().map(|(name, value)| known(name)?.argument(value)).collect()
}

/// Checks that each key of `measure` is known to workloads of this kind.
///
/// # Errors
/// Names the first unknown key.
pub fn check_keys(kind: Kind, measure: &BTreeMap<String, Value>) -> Result<()> {
    let known = keys(kind);
    match measure.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(Error::Usage(format!("measure has no {key}; expected one of {}", known.join(", ")))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        let numbers = |list: &[u64]| list.iter().map(|n| Value::Number(*n)).collect();
        let words = |list: &[&str]| list.iter().map(|w| Value::Text((*w).into())).collect();
        Parameters(BTreeMap::from([
            ("size".into(), numbers(&[64, 16])),
            ("reliability".into(), words(&["best-effort", "reliable"])),
        ]))
    }

    #[test]
    fn combinations_are_the_product_in_the_order_of_the_lists() {
        let combinations = parameters().combinations();
        let texts: Vec<String> = combinations.iter().map(|c| format!("{}/{}", c["reliability"], c["size"])).collect();
        assert_eq!(texts, ["best-effort/64", "best-effort/16", "reliable/64", "reliable/16"]);
        assert_eq!(Parameters::default().combinations().len(), 1);
    }

    #[test]
    fn values_become_keys_of_the_contract() {
        let combination = &parameters().combinations()[0];
        assert_eq!(arguments(combination).unwrap(), ["rel=besteffort", "size=64"]);
        let period = Values::from([("period-us".into(), Value::Number(1000))]);
        assert_eq!(arguments(&period).unwrap(), ["period_ns=1000000"]);
    }

    #[test]
    fn error_of_an_unknown_word_lists_the_known_ones() {
        let wrong = Values::from([("reliability".into(), Value::Text("some".into()))]);
        assert!(arguments(&wrong).unwrap_err().to_string().contains("reliable, best-effort"));
        let wrong = Values::from([("size".into(), Value::Text("big".into()))]);
        assert!(arguments(&wrong).unwrap_err().to_string().contains("whole numbers"));
    }
}
