//! Times and rates as a number with a unit.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Parses a number with one of `units`. Returns a whole number of the smallest unit.
fn quantity(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let names = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let wrong = || format!("found {text:?}; expected a number and one of {}", names());
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scaled = |digits: &str, factor: u64| digits.parse::<u64>().ok()?.checked_mul(factor);
    let mut sum = scaled(whole, factor).ok_or_else(wrong)?;
    let mut place = factor;
    for digit in fraction.chars() {
        if !place.is_multiple_of(10) {
            return Err(format!("{text:?} is not a whole number of {}", units[0].0));
        }
        place /= 10;
        sum = sum.checked_add(u64::from(digit.to_digit(10).ok_or_else(wrong)?) * place).ok_or_else(wrong)?;
    }
    Ok(sum)
}

const TIMES: [(&str, u64); 4] = [("ns", 1), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];

const RATES: [(&str, u64); 4] = [("bit/s", 1), ("kbit/s", 1000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(&String::deserialize(deserializer)?, &TIMES).map_err(D::Error::custom)
}

pub(super) fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    time(deserializer).map(Some)
}

pub(super) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    quantity(&String::deserialize(deserializer)?, &RATES).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantity_requires_a_unit_and_is_exact() {
        let time = |text| quantity(text, &TIMES);
        assert_eq!(time("20us"), Ok(20_000));
        assert_eq!(time(" 1.25 ms "), Ok(1_250_000));
        assert_eq!(time("0.5 ns"), Err("\"0.5 ns\" is not a whole number of ns".to_owned()));
        for text in ["", "5", "ms", "1..5 ms", "-1 ms", "1 min", "99999999999999999999 s", "18446744074 s"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert_eq!(quantity("2.5 Gbit/s", &RATES), Ok(2_500_000_000));
    }
}
