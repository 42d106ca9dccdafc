//! Findings of `takt doctor` and `takt ls`: an obstacle, its consequence and its remedy.

use serde_json::{Map, Value};
use std::fmt::{self, Display};

/// Obstacle with its consequence and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Kind of the finding, for programs; `docs/reference/command-line-json.md` lists all.
    pub code: &'static str,
    /// Values of the observation by name.
    pub facts: Map<String, Value>,
    /// Observation as a sentence.
    pub what: String,
    /// Consequence of the observation.
    pub why: String,
    /// Remedy, or an alternative.
    #[serde(rename = "mend")]
    pub remedy: String,
    /// Whether the remedy is a shell command.
    pub is_command: bool,
    /// Whether the finding is an error: it keeps participants from communicating, or can be
    /// remedied. Other findings are hints.
    #[serde(rename = "matters")]
    pub is_error: bool,
}

impl Finding {
    /// Creates a finding that keeps participants from communicating.
    pub fn of_network(
        code: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (what, why, remedy) = (what.into(), why.into(), remedy.into());
        Self { code, facts: Map::new(), what, why, remedy, is_command: false, is_error: true }
    }

    /// Adds a value of the observation.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Turns the finding into a hint.
    pub fn into_hint(self) -> Self {
        Self { is_error: false, ..self }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_command { "$" } else { "->" };
        write!(f, "{}\n    {}\n    {sign} {}", self.what, self.why, self.remedy)
    }
}

/// Formats a count with its noun: `1 participant`, `2 participants`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = match noun {
        "pair matches" => "pairs match",
        "pair does not match" => "pairs do not match",
        _ if number != 1 => return format!("{number} {noun}s"),
        noun => noun,
    };
    format!("{number} {}", if number == 1 { noun } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_one_is_singular() {
        assert_eq!(count(1, "participant"), "1 participant");
        assert_eq!(count(0, "reader"), "0 readers");
        assert_eq!(count(1, "pair matches"), "1 pair matches");
        assert_eq!(count(40, "pair matches"), "40 pairs match");
    }
}
