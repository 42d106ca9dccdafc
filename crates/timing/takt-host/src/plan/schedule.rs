//! Transmission schedule: gates for marked and other frames, and launch times of frames.

use std::fmt;
use std::str::FromStr;

/// Frames that may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Only marked frames.
    Marked,
    /// All except marked frames.
    Others,
    /// All frames.
    All,
    /// No frames, for instance to clear the link before a time slot.
    None,
}

const NAMES: [(&str, Open); 4] =
    [("marked", Open::Marked), ("others", Open::Others), ("all", Open::All), ("none", Open::None)];

/// Entry of a gate schedule: the frames that may leave, and for how long. Its text is
/// `marked:300us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Frames that may leave.
    pub open: Open,
    /// Length of the entry, in nanoseconds. Not 0.
    pub interval_ns: u32,
}

/// Error of a text that is no entry of a gate schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidGate(String);

impl fmt::Display for InvalidGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not an entry of a gate schedule such as marked:300us, others:650us, all:1ms or none:50us",
            self.0
        )
    }
}

impl std::error::Error for InvalidGate {}

impl FromStr for Gate {
    type Err = InvalidGate;

    fn from_str(text: &str) -> Result<Self, InvalidGate> {
        let parse = || {
            let (name, time) = text.split_once(':')?;
            let (_, open) = NAMES.iter().find(|(known, _)| *known == name)?;
            Some(Self { open: *open, interval_ns: nanoseconds(time)? })
        };
        parse().ok_or_else(|| InvalidGate(text.to_owned()))
    }
}

/// Parses a time such as `300us`, from 1 ns to some four seconds.
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

/// Launch times of frames (`SO_TXTIME`), by the clock TAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchTime {
    /// Time by which a frame is passed to the card before its launch time, in nanoseconds.
    pub delta_ns: u32,
    /// Whether frames without a launch time, marked or not, receive one from the gate schedule.
    pub is_assigned_by_schedule: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_schedule_entries_are_parsed_from_text() {
        assert_eq!("marked:300us".parse(), Ok(Gate { open: Open::Marked, interval_ns: 300_000 }));
        assert_eq!("none:7ns".parse(), Ok(Gate { open: Open::None, interval_ns: 7 }));
        for text in
            ["", "marked", "marked:", "marked:0us", "marked:3", "ours:3us", "all:5s", "all:-1us", "all:9999999ms"]
        {
            assert_eq!(text.parse::<Gate>(), Err(InvalidGate(text.to_owned())));
        }
    }
}
