//! Something that stands in the way, and the mend: what `takt doctor` and `takt ls` print.

use std::fmt::{self, Display};

/// Something that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What was found.
    pub what: String,
    /// What follows from it.
    pub why: String,
    /// What mends it, or what can be done instead.
    pub mend: String,
    /// The mend is a line for a shell.
    pub is_command: bool,
    /// It keeps participants apart, or can be mended. The others are hints.
    pub matters: bool,
}

impl Finding {
    /// Something that keeps participants apart.
    pub fn of_network(what: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), mend: mend.into(), is_command: false, matters: true }
    }

    /// The same as a hint.
    pub fn into_hint(self) -> Self {
        Self { matters: false, ..self }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_command { "$" } else { "->" };
        write!(f, "{}\n    {}\n    {sign} {}", self.what, self.why, self.mend)
    }
}

/// A count with its noun: `1 participant`, `2 participants`.
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
    fn one_is_singular() {
        assert_eq!(count(1, "participant"), "1 participant");
        assert_eq!(count(0, "reader"), "0 readers");
        assert_eq!(count(1, "pair matches"), "1 pair matches");
        assert_eq!(count(40, "pair matches"), "40 pairs match");
    }
}
