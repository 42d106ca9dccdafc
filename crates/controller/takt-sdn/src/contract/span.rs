//! Durations as text: a whole number and its unit.

use std::time::Duration;

/// Parses `250us`, `5 ms`, `1s`: a whole number greater than zero and one of the units ns, us, ms,
/// s. Returns `None` for any other text, and for durations of 2^63 ns (292 years) and more.
pub fn parse_span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim_start() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let nanos = number.checked_mul(unit).filter(|nanos| *nanos > 0 && i64::try_from(*nanos).is_ok())?;
    Some(Duration::from_nanos(nanos))
}
