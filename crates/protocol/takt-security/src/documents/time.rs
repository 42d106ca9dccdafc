//! Times in permissions documents: `xsd:dateTime`, in UTC if they specify no time zone.

use crate::identity::UnixSeconds;

const DAY: i64 = 86_400;

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last day of the year.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days(next.0, next.1, 1) - days(year, month, 1)
}

/// Parses a number of exactly `len` digits at the start of a text, and returns the remaining text.
fn number(text: &str, len: usize) -> Option<(i64, &str)> {
    let (digits, rest) = text.split_at_checked(len)?;
    let is_number = digits.bytes().all(|octet| octet.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?.map(|number| (number, rest))
}

/// Parses `YYYY-MM-DDThh:mm:ss`, with an optional fraction and an optional time zone (`Z`,
/// `+hh:mm`). Fractions of a second are truncated.
pub fn parse_date_time(text: &str) -> Option<UnixSeconds> {
    let (year, text) = number(text, 4)?;
    let (month, text) = number(text.strip_prefix('-')?, 2)?;
    let (day, text) = number(text.strip_prefix('-')?, 2)?;
    let (hour, text) = number(text.strip_prefix('T')?, 2)?;
    let (minute, text) = number(text.strip_prefix(':')?, 2)?;
    let (second, text) = number(text.strip_prefix(':')?, 2)?;
    let is_date = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    // 24:00:00 is the end of the day in XML Schema.
    let is_time = (hour <= 23 && minute <= 59 && second <= 59) || (hour, minute, second) == (24, 0, 0);
    if !is_date || !is_time {
        return None;
    }
    let local = days(year, month, day) * DAY + hour * 3_600 + minute * 60 + second;
    Some(local - zone_seconds(without_fraction(text)?)?)
}

fn without_fraction(text: &str) -> Option<&str> {
    let Some(fraction) = text.strip_prefix('.') else { return Some(text) };
    let zone = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
    (zone.len() < fraction.len()).then_some(zone)
}

fn zone_seconds(text: &str) -> Option<i64> {
    let (sign, text) = match text.split_at_checked(1) {
        None | Some(("Z", "")) => return Some(0),
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        Some(_) => return None,
    };
    let (hours, text) = number(text, 2)?;
    let (minutes, text) = number(text.strip_prefix(':')?, 2)?;
    let is_zone = text.is_empty() && hours * 60 + minutes <= 14 * 60 && minutes <= 59;
    is_zone.then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Formats a time of the years 0 to 9999 as `YYYY-MM-DDThh:mm:ssZ`.
pub fn format_date_time(time: UnixSeconds) -> String {
    let (day_count, second) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let mut year = 1970 + day_count / 366;
    while days(year, 1, 1) > day_count {
        year -= 1;
    }
    while days(year + 1, 1, 1) <= day_count {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days(year, month + 1, 1) <= day_count {
        month += 1;
    }
    let day = day_count - days(year, month, 1) + 1;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_to_seconds_since_the_epoch() {
        for (text, expected) in [
            ("1970-01-01T00:00:00", 0),
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:34:56Z", 951_827_696),
            ("2000-02-29T12:34:56.789+02:00", 951_827_696 - 7_200),
            ("1969-12-31T23:59:59-00:01", 59),
            ("2038-01-19T03:14:08", 1 << 31),
            ("1999-12-31T24:00:00", 946_684_800),
        ] {
            assert_eq!(parse_date_time(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn malformed_times_are_refused() {
        for text in [
            "",
            "2000",
            "2000-02-30T00:00:00",
            "1900-02-29T00:00:00",
            "2000-13-01T00:00:00",
            "2000-01-01T25:00:00",
            "2000-01-01T00:00:00 ",
            "2000-01-01T00:00:00.",
            "2000-01-01T00:00:00+15:00",
            "2000-01-01 00:00:00",
            "2000-01-01T00:00",
            "+000-01-01T00:00:00",
            "20\u{e9}0-01-01T00:00:00",
        ] {
            assert_eq!(parse_date_time(text), None, "{text:?}");
        }
    }

    #[test]
    fn formatted_times_parse_back() {
        for time in [0, -1, 951_827_696, 4_102_444_799, 1 << 31, 253_402_300_799, -62_135_596_800] {
            assert_eq!(parse_date_time(&format_date_time(time)), Some(time), "{}", format_date_time(time));
        }
    }
}
