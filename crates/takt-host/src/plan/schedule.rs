//! When what leaves may leave: a time table for marked frames and all else, and frames that have a time of their own.

use std::fmt;
use std::str::FromStr;

/// Which frames may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Marked ones alone.
    Marked,
    /// All but marked ones.
    Others,
    /// Any.
    All,
    /// None, as before a time when the link is to be free.
    None,
}

const NAMES: [(&str, Open); 4] =
    [("marked", Open::Marked), ("others", Open::Others), ("all", Open::All), ("none", Open::None)];

/// Part of a time table: which frames may leave, and for how long. As text `marked:300us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Who may.
    pub open: Open,
    /// For how long, in nanoseconds; not 0.
    pub interval_ns: u32,
}

/// Is no part of a time table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoGate(String);

impl fmt::Display for NoGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no part of a time table such as marked:300us, others:650us, all:1ms or none:50us", self.0)
    }
}

impl std::error::Error for NoGate {}

impl FromStr for Gate {
    type Err = NoGate;

    fn from_str(text: &str) -> Result<Self, NoGate> {
        let parse = || {
            let (name, time) = text.split_once(':')?;
            let (_, open) = NAMES.iter().find(|(known, _)| *known == name)?;
            Some(Self { open: *open, interval_ns: nanoseconds(time)? })
        };
        parse().ok_or_else(|| NoGate(text.to_owned()))
    }
}

/// A time as text, `300us`; from 1 ns to some four seconds.
pub fn nanoseconds(text: &str) -> Option<u32> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000_u32,
        _ => return None,
    };
    digits.parse::<u32>().ok()?.checked_mul(unit).filter(|time| *time > 0) // tidy-allow(dropped-cause): the caller names the text
}

/// Frames that have a time to leave (`SO_TXTIME`), by the clock TAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchTime {
    /// How long before its time a frame is handed on to the card, in nanoseconds.
    pub delta_ns: u32,
    /// Frames without a time are given one by the time table: all of them, marked or not.
    pub is_by_time_table: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_time_table_are_named_by_text() {
        assert_eq!("marked:300us".parse(), Ok(Gate { open: Open::Marked, interval_ns: 300_000 }));
        assert_eq!("none:7ns".parse(), Ok(Gate { open: Open::None, interval_ns: 7 }));
        for text in
            ["", "marked", "marked:", "marked:0us", "marked:3", "ours:3us", "all:5s", "all:-1us", "all:9999999ms"]
        {
            assert_eq!(text.parse::<Gate>(), Err(NoGate(text.to_owned())));
        }
    }
}
