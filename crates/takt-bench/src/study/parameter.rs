//! Parameters of workloads, and the keys of the agent contract that they become (docs/bench-agents.md).

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A value of a parameter or of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Number(u64),
    /// A word.
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

/// Parameters with the values that a workload tries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Parameters(pub BTreeMap<String, Vec<Value>>);

/// One parameter of campaign files.
struct Known {
    /// Name in the file.
    name: &'static str,
    /// Key of the agent contract.
    key: &'static str,
    /// Words that are allowed, and what they are in the contract; empty: a number.
    words: &'static [(&'static str, &'static str)],
}

const KNOWN: [Known; 13] = [
    Known { name: "size", key: "size", words: &[] },
    Known { name: "reliability", key: "rel", words: &[("reliable", "reliable"), ("best-effort", "besteffort")] },
    Known { name: "history", key: "hist", words: &[("all", "all"), ("1", "1"), ("16", "16")] },
    Known {
        name: "notify",
        key: "notify",
        words: &[("auto", "auto"), ("listener", "listener"), ("waitset", "waitset"), ("poll", "poll")],
    },
    Known { name: "type", key: "type", words: &[("octets", "octets"), ("complex", "complex")] },
    Known { name: "reply", key: "reply", words: &[("whole", "whole"), ("ack", "ack")] },
    Known { name: "period-us", key: "period_ns", words: &[] },
    Known { name: "rate", key: "rate", words: &[] },
    Known { name: "batch", key: "batch", words: &[] },
    Known { name: "readers", key: "n", words: &[] },
    Known {
        name: "delivery",
        key: "delivery",
        words: &[("unicast", "unicast"), ("multicast", "multicast"), ("broadcast", "broadcast")],
    },
    Known { name: "loan", key: "loan", words: &[] },
    Known { name: "touch", key: "touch", words: &[("0", "0"), ("1", "1"), ("all", "all")] },
];

/// Keys of `measure`, as the agents have them.
const KEYS: [&str; 8] = ["warmup", "count", "warm_s", "secs", "batch", "touch", "reply", "hist"];

/// Parameters that one process measures one after the other.
pub const WITHIN_A_JOB: &str = "size";

impl Known {
    fn argument(&self, value: &Value) -> Result<String> {
        let text = match value {
            Value::Number(us) if self.name == "period-us" => (us * 1000).to_string(),
            Value::Number(number) if self.words.is_empty() => number.to_string(),
            _ => {
                let text = value.to_string();
                let known = self.words.iter().find(|(word, _)| *word == text);
                known.map(|(_, argument)| (*argument).to_owned()).ok_or_else(|| self.unknown(value))?
            }
        };
        Ok(format!("{}={text}", self.key))
    }

    fn unknown(&self, value: &Value) -> Error {
        let words: Vec<&str> = self.words.iter().map(|(word, _)| *word).collect();
        let allowed = if words.is_empty() { "whole numbers".into() } else { words.join(", ") };
        Error::Usage(format!("{} = {value}: allowed are {allowed}", self.name))
    }
}

impl Parameters {
    /// Whether names and values are known, and no list is empty.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<()> {
        for (name, values) in &self.0 {
            if values.is_empty() {
                return Err(Error::Usage(format!("{name} has no value")));
            }
            for value in values {
                known(name)?.argument(value)?;
            }
        }
        Ok(())
    }

    /// Each combination of values, in the order of the file's lists, names in alphabetical order.
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

fn known(name: &str) -> Result<&'static Known> {
    let names = || KNOWN.map(|known| known.name).join(", ");
    KNOWN
        .iter()
        .find(|known| known.name == name)
        .ok_or_else(|| Error::Usage(format!("no parameter is called {name}; there are {}", names())))
}

/// Arguments of the agents for the values of a cell.
///
/// # Errors
/// A name or a value is not known.
pub fn arguments(values: &Values) -> Result<Vec<String>> {
    values.iter().map(|(name, value)| known(name)?.argument(value)).collect()
}

/// Whether each key of `measure` is known.
///
/// # Errors
/// The first that is not.
pub fn check_keys(measure: &BTreeMap<String, Value>) -> Result<()> {
    match measure.keys().find(|key| !KEYS.contains(&key.as_str())) {
        Some(key) => Err(Error::Usage(format!("measure has no {key}; there are {}", KEYS.join(", ")))),
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
    fn unknown_words_are_refused_with_those_that_are_known() {
        let wrong = Values::from([("reliability".into(), Value::Text("some".into()))]);
        assert!(arguments(&wrong).unwrap_err().to_string().contains("reliable, best-effort"));
        let wrong = Values::from([("size".into(), Value::Text("big".into()))]);
        assert!(arguments(&wrong).unwrap_err().to_string().contains("whole numbers"));
    }
}
