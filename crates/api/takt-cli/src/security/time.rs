//! Times of the commands: the clock of this host, validity in days, and times on the command line.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::RangedI64ValueParser;
use takt_security::documents::parse_date_time;
use takt_security::identity::UnixSeconds;
use takt_security::tools::Validity;

/// Seconds of a day.
pub const DAY: UnixSeconds = 86_400;
/// Maximum validity, in days.
pub const DAYS_MAX: u32 = 36_500;

/// Returns the time of this host.
pub fn now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixSeconds::try_from(since.as_secs()).unwrap_or(UnixSeconds::MAX)
}

/// Returns a validity that begins a day ago and ends in `days` days. The day before allows for
/// hosts whose clocks are behind, and for implementations that read times in the local time zone.
pub fn validity(days: u32) -> Validity {
    let now = now();
    Validity { not_before: now - DAY, not_after: now + UnixSeconds::from(days) * DAY }
}

/// Returns the parser of a number of days.
pub fn days() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX))
}

/// Parses a time. A date stands for its beginning in UTC.
pub fn parse_time(text: &str) -> std::result::Result<UnixSeconds, String> {
    let time = parse_date_time(text).or_else(|| parse_date_time(&format!("{text}T00:00:00Z")));
    time.ok_or_else(|| "expected a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_stands_for_its_beginning() {
        assert_eq!(parse_time("2026-01-31"), parse_time("2026-01-31T00:00:00Z"));
        assert_eq!(parse_time("1970-01-01T00:01:00Z"), Ok(60));
        assert!(parse_time("tomorrow").expect_err("not a time").contains("2026-01-31T12:00:00Z"));
    }

    #[test]
    fn validity_begins_before_now() {
        let validity = validity(2);
        assert_eq!(validity.not_after - validity.not_before, 3 * DAY);
        assert!(validity.not_before < now());
    }
}
