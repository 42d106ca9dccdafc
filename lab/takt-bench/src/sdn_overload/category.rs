//! Reliability categories of the SDN overload experiment: RELIABILITY, and the depth of the
//! writer's history.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// RELIABILITY and HISTORY of a writer. Readers use KEEP_ALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// BEST_EFFORT.
    BestEffort,
    /// RELIABLE, KEEP_LAST of this depth.
    Reliable(u32),
    /// RELIABLE, KEEP_ALL.
    ReliableAll,
}

impl Category {
    /// Categories of the paper.
    pub const ALL: [Self; 5] =
        [Self::BestEffort, Self::Reliable(1), Self::Reliable(50), Self::Reliable(100), Self::ReliableAll];

    /// Reports whether the writer repairs lost samples.
    pub fn is_reliable(self) -> bool {
        self != Self::BestEffort
    }

    /// Returns the depth of the writer's history; `None` for KEEP_ALL.
    pub fn depth(self) -> Option<u32> {
        match self {
            Self::BestEffort => Some(1),
            Self::Reliable(depth) => Some(depth),
            Self::ReliableAll => None,
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BestEffort => f.write_str("best-effort"),
            Self::Reliable(depth) => write!(f, "reliable-{depth}"),
            Self::ReliableAll => f.write_str("reliable-all"),
        }
    }
}

impl FromStr for Category {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let depth = |text: &str| text.parse().ok().filter(|depth| (1..=4096).contains(depth)).map(Self::Reliable);
        let category = match (text, text.strip_prefix("reliable-")) {
            ("best-effort", _) => Some(Self::BestEffort),
            (_, Some("all")) => Some(Self::ReliableAll),
            (_, Some(text)) => depth(text),
            _ => None,
        };
        category.ok_or_else(|| format!("{text:?}: expected best-effort, reliable-DEPTH (1 to 4096) or reliable-all"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn category_round_trips_as_text() {
        for category in Category::ALL {
            assert_eq!(category.to_string().parse(), Ok(category));
        }
        for wrong in ["", "reliable", "reliable-0", "reliable-x", "best"] {
            wrong.parse::<Category>().expect_err(wrong);
        }
    }
}
