//! Recorded instruction counts, and the verdict on a new count.

use std::fmt;
use std::path::PathBuf;

/// Maximum deviation of a count from the recorded one, percent. Counts of one build differ by up to
/// 3.2 %, with the load of the machine.
pub const TOLERANCE_PERCENT: u64 = 5;

/// Verdict on a new count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Count is within the tolerance.
    Same,
    /// Count is above the recorded one.
    Worse,
    /// Count is below the recorded one. It must be recorded, or a later regression up to the old
    /// count would pass.
    Better,
    /// No count is recorded for the case.
    Unrecorded,
}

impl Verdict {
    /// Reports whether the check fails.
    pub fn fails(self) -> bool {
        self != Self::Same
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "",
            Self::Worse => "WORSE",
            Self::Better => "BETTER: record it",
            Self::Unrecorded => "UNRECORDED",
        })
    }
}

/// Compares a count with the recorded one.
pub fn compare(recorded: Option<u64>, now: u64) -> Verdict {
    let Some(recorded) = recorded else { return Verdict::Unrecorded };
    if now * 100 > recorded * (100 + TOLERANCE_PERCENT) {
        Verdict::Worse
    } else if now * 100 < recorded * (100 - TOLERANCE_PERCENT) {
        Verdict::Better
    } else {
        Verdict::Same
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("counts.txt")
}

/// Reads the recorded counts with the names of their cases.
pub fn read() -> Result<Vec<(String, u64)>, String> {
    let path = path();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<(String, u64)>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, count) = line.split_once(' ').ok_or_else(|| format!("counts.txt: no count in `{line}`"))?;
            let count = count.trim().parse().map_err(|_| format!("counts.txt: no number in `{line}`"))?;
            Ok((name.to_owned(), count))
        })
        .collect()
}

/// Records counts.
pub fn write(counts: &[(&str, u64)]) -> Result<(), String> {
    let mut text =
        String::from("# Instructions per sample, by `cargo run --release -p takt-instructions -- record`.\n");
    for (name, count) in counts {
        text.push_str(&format!("{name} {count}\n"));
    }
    let path = path();
    std::fs::write(&path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
    print!("{text}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_beyond_the_tolerance_fails_in_either_direction() {
        assert_eq!(compare(Some(1000), 1050), Verdict::Same);
        assert_eq!(compare(Some(1000), 1051), Verdict::Worse);
        assert_eq!(compare(Some(1000), 950), Verdict::Same);
        assert_eq!(compare(Some(1000), 949), Verdict::Better);
        assert_eq!(compare(None, 1000), Verdict::Unrecorded);
        assert!(Verdict::Worse.fails() && Verdict::Better.fails() && Verdict::Unrecorded.fails());
    }

    #[test]
    fn record_is_parsed_and_line_without_a_number_is_reported() {
        assert_eq!(parse("# note\nudp-64 12\n"), Ok(vec![("udp-64".to_owned(), 12)]));
        assert_eq!(parse("udp-64 many\n"), Err("counts.txt: no number in `udp-64 many`".to_owned()));
    }
}
