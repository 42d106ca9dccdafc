//! Values of policies and settings: their kinds, and how each is read from XML and TOML and
//! written.

use std::fmt;
use std::time::Duration as StdDuration;

use takt::Duration;

use crate::error::Result;
use crate::tree::{Content, Format, Node, Place, clipped, listing};

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// Integer within bounds, both included.
    Int {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
    },
    /// Number from 1, or `LENGTH_UNLIMITED`.
    Length,
    /// Duration.
    Duration,
    /// One word of a list. Files may also use the constants of the OMG, which are the words with a
    /// suffix.
    Word {
        /// Permitted words.
        words: &'static [&'static str],
        /// Suffix of the OMG's constants.
        suffix: &'static str,
    },
    /// Several words of a list, in order.
    Words {
        /// Permitted words.
        words: &'static [&'static str],
        /// Suffix of the OMG's constants.
        suffix: &'static str,
    },
    /// Octets.
    Octets,
    /// Any text.
    Text,
    /// Several texts.
    Texts,
    /// Pairs of name and value, and whether each is propagated to remote participants.
    Properties,
}

/// Value of one of the kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is a value of the kind of its name")]
pub enum Value {
    Bool(bool),
    Int(i64),
    Length(Option<u32>),
    Duration(Duration),
    Word(&'static str),
    Words(Vec<&'static str>),
    Octets(Vec<u8>),
    Text(String),
    Texts(Vec<String>),
    Properties(Vec<(String, String, bool)>),
}

/// Name of an unlimited length.
const LENGTH_UNLIMITED: &str = "LENGTH_UNLIMITED";
/// Names of an infinite duration in its two parts (DDS-XML 1.0 §7.2.6).
const INFINITE_SECONDS: [&str; 2] = ["DURATION_INFINITY", "DURATION_INFINITE_SEC"];
const INFINITE_NANOSECONDS: [&str; 3] = ["DURATION_INFINITY", "DURATION_INFINITE_NSEC", "DURATION_INFINITY_NSEC"];
/// Number that represents these names in the specification.
const INFINITE_NUMBER: u32 = 0x7fff_ffff;
/// Units of durations in TOML and the environment, in nanoseconds.
const UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];

impl Kind {
    /// Describes the expected value.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Int { min, max } if max == i64::MAX => format!("a number from {min}"),
            Self::Int { min, max } => format!("a number from {min} to {max}"),
            Self::Length => format!("a number from 1, or {LENGTH_UNLIMITED}"),
            Self::Duration => "a duration such as \"250 ms\", \"10 s\" or \"infinite\"".to_owned(),
            Self::Word { words, .. } => listing(words),
            Self::Words { words, .. } => format!("a list of {}", listing(words)),
            Self::Octets => "octets from 0 to 255, or 0x00 to 0xff, separated by commas".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Texts => "a list of strings".to_owned(),
            Self::Properties => "pairs of name and value".to_owned(),
        }
    }

    /// Parses a value of one word or line, as in the environment. Lists are separated by commas.
    ///
    /// # Errors
    /// Description of the expected value.
    pub(crate) fn parse_text(self, text: &str) -> std::result::Result<Value, String> {
        let text = text.trim();
        let wrong = || format!("found {:?}; expected {}", clipped(text), self.expected());
        let items = || text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let value = match self {
            Self::Bool => match text {
                "true" | "1" => Some(Value::Bool(true)),
                "false" | "0" => Some(Value::Bool(false)),
                _ => None,
            },
            Self::Int { min, max } => integer(text).filter(|value| (min..=max).contains(value)).map(Value::Int),
            Self::Length if text == LENGTH_UNLIMITED => Some(Value::Length(None)),
            Self::Length => {
                let number = integer(text).and_then(|value| u32::try_from(value).ok());
                number.filter(|value| (1..=i32::MAX.unsigned_abs()).contains(value)).map(|n| Value::Length(Some(n)))
            }
            Self::Duration => duration(text).map(Value::Duration),
            Self::Word { words, suffix } => word(words, suffix, text).map(Value::Word),
            Self::Words { words, suffix } => {
                items().map(|item| word(words, suffix, item)).collect::<Option<_>>().map(Value::Words)
            }
            Self::Octets => items().map(octet).collect::<Option<_>>().map(Value::Octets),
            Self::Text => Some(Value::Text(text.to_owned())),
            Self::Texts => Some(Value::Texts(items().map(str::to_owned).collect())),
            Self::Properties => None,
        };
        value.ok_or_else(wrong)
    }

    /// Parses a value from an element.
    pub(crate) fn parse(self, node: &Node, place: Place<'_>) -> Result<Value> {
        node.check_attributes(place, &[])?;
        match (self, &node.content) {
            (Self::Duration, Content::Children(children)) => parts_of_duration(node, children, place),
            (Self::Duration, Content::Text(text)) if place.format == Format::Xml => {
                let what = format!("found {:?}; expected elements sec and nanosec", clipped(text));
                Err(node.error(place, what))
            }
            (Self::Words { .. } | Self::Texts | Self::Octets, Content::Children(children)) => {
                self.list(node, children, place)
            }
            (Self::Texts | Self::Words { .. }, Content::Text(text)) if text.is_empty() => self.list(node, &[], place),
            (Self::Properties, Content::Children(children)) => properties(node, children, place),
            (Self::Properties, Content::Text(text)) if text.is_empty() => Ok(Value::Properties(Vec::new())),
            (_, Content::Children(children)) if !children.is_empty() => {
                Err(node.error(place, format!("found elements; expected {}", self.expected())))
            }
            _ => self.parse_text(node.text().unwrap_or_default()).map_err(|what| node.error(place, what)),
        }
    }

    /// Parses children named `element`.
    fn list(self, node: &Node, children: &[Node], place: Place<'_>) -> Result<Value> {
        let mut texts = Vec::new();
        for child in children {
            if child.name != "element" {
                return Err(node.unknown_child(place, child, &["element"]));
            }
            child.check_attributes(place, &[])?;
            let text = child.text().ok_or_else(|| node.error(place, "elements within an element of a list"))?;
            texts.push(text.to_owned());
        }
        let wrong = |text: &str| node.error(place, format!("{:?} in {}", clipped(text), self.expected()));
        match self {
            Self::Words { words, suffix } => {
                let find = |text: &String| word(words, suffix, text).ok_or_else(|| wrong(text));
                texts.iter().map(find).collect::<Result<_>>().map(Value::Words)
            }
            Self::Octets => {
                let find = |text: &String| octet(text).ok_or_else(|| wrong(text));
                texts.iter().map(find).collect::<Result<_>>().map(Value::Octets)
            }
            _ => Ok(Value::Texts(texts)),
        }
    }
}

/// Parses a decimal or hexadecimal number (DDS-XML 1.0 §7.1.4).
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || hexadecimal.is_some_and(|rest| rest.starts_with(['+', '-']))
    {
        return None;
    }
    let value = hexadecimal.map_or_else(|| digits.parse().ok(), |rest| i64::from_str_radix(rest, 16).ok());
    value.map(|value: i64| if negative { -value } else { value })
}

fn octet(text: &str) -> Option<u8> {
    integer(text.trim()).and_then(|value| u8::try_from(value).ok())
}

fn word(words: &[&'static str], suffix: &str, text: &str) -> Option<&'static str> {
    let bare = text.strip_suffix(suffix).unwrap_or(text);
    words.iter().find(|word| **word == bare || **word == text).copied()
}

/// Parses a number with its unit, or `infinite`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    if text == "infinite" {
        return Some(Duration::INFINITE);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.replace('_', "").parse::<u64>().ok()?.checked_mul(*nanos)?;
    // Digits after the decimal point, down to the nanosecond. More digits are refused.
    let mut rest = 0;
    let mut weight = *nanos;
    for digit in fraction.chars() {
        if weight % 10 != 0 {
            return None;
        }
        weight /= 10;
        rest += weight * u64::from(digit.to_digit(10)?);
    }
    Some(Duration::from_nanos(whole.checked_add(rest)?))
}

/// Parses `sec` and `nanosec` (DDS-XML 1.0 §7.2.6). If one of them is infinite, so is the duration.
/// A missing part is zero.
fn parts_of_duration(node: &Node, children: &[Node], place: Place<'_>) -> Result<Value> {
    let mut parts = [None, None];
    for child in children {
        child.check_attributes(place, &[])?;
        let (part, infinite): (usize, &[&str]) = match child.name.as_str() {
            "sec" => (0, &INFINITE_SECONDS),
            "nanosec" => (1, &INFINITE_NANOSECONDS),
            _ => return Err(node.unknown_child(place, child, &["sec", "nanosec"])),
        };
        let text = child.text().unwrap_or_default();
        let number = if infinite.contains(&text) { Some(INFINITE_NUMBER) } else { duration_part(part, text) };
        let path = node.below(place);
        let place = Place { path: &path, ..place };
        let expected = format!("a number or {}", infinite[1]);
        let number = number.ok_or_else(|| child.error(place, format!("found {text:?}; expected {expected}")))?;
        if parts[part].replace(number).is_some() {
            return Err(child.error(place, "given twice"));
        }
    }
    let [seconds, nanos] = parts;
    if seconds.is_none() && nanos.is_none() {
        return Err(node.error(place, "expected sec or nanosec"));
    }
    if [seconds, nanos].contains(&Some(INFINITE_NUMBER)) {
        return Ok(Value::Duration(Duration::INFINITE));
    }
    let seconds = u64::from(seconds.unwrap_or(0)) * 1_000_000_000;
    Ok(Value::Duration(Duration::from_nanos(seconds + u64::from(nanos.unwrap_or(0)))))
}

/// Parses seconds, or nanoseconds below one second.
fn duration_part(part: usize, text: &str) -> Option<u32> {
    let number = integer(text).and_then(|value| u32::try_from(value).ok())?;
    let end = if part == 0 { INFINITE_NUMBER } else { 999_999_999 };
    (number <= end || number == INFINITE_NUMBER).then_some(number)
}

/// Parses `element`s of `name`, `value` and `propagate`. Without `propagate` a property is not
/// propagated.
fn properties(node: &Node, children: &[Node], place: Place<'_>) -> Result<Value> {
    let mut pairs = Vec::new();
    for child in children {
        // In TOML the pairs are the tables of an array with the name of the element itself.
        if child.name != "element" {
            return Err(node.unknown_child(place, child, &["element"]));
        }
        let (mut name, mut value, mut propagate) = (None, String::new(), false);
        for part in child.children() {
            let text = part.text().unwrap_or_default();
            match part.name.as_str() {
                "name" => name = Some(text.to_owned()),
                "value" => value = text.to_owned(),
                "propagate" => propagate = matches!(Kind::Bool.parse(part, place)?, Value::Bool(true)),
                _ => return Err(child.unknown_child(place, part, &["name", "value", "propagate"])),
            }
        }
        let name = name.ok_or_else(|| child.error(place, "a property without a name"))?;
        pairs.push((name, value, propagate));
    }
    Ok(Value::Properties(pairs))
}

/// Decodes Base64 (DDS-XML 1.0 §7.2.4.2). White space is ignored.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let symbols: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !symbols.len().is_multiple_of(4) {
        return None;
    }
    let padding = symbols.iter().rev().take_while(|symbol| **symbol == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut octets = Vec::with_capacity(symbols.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for symbol in &symbols[..symbols.len() - padding] {
        let value = ALPHABET.iter().position(|known| known == symbol)?;
        bits = bits << 6 | u32::try_from(value).expect("an index below 64");
        count += 6;
        if count >= 8 {
            count -= 8;
            octets.push(u8::try_from(bits >> count & 0xff).expect("eight bits"));
        }
    }
    Some(octets)
}

/// Formats a duration in the largest unit that leaves no fraction.
pub(crate) fn show_duration(duration: Duration) -> String {
    let Some(nanos) = duration.as_nanos() else { return "infinite".to_owned() };
    let (name, unit) = UNITS[..4].iter().rev().find(|(_, unit)| nanos % unit == 0).unwrap_or(&UNITS[0]);
    format!("{} {name}", nanos / unit)
}

/// Converts a duration to the standard library's. An infinite one becomes the longest.
pub(crate) fn std_duration(duration: Duration) -> StdDuration {
    duration.as_nanos().map_or(StdDuration::MAX, StdDuration::from_nanos)
}

impl fmt::Display for Value {
    /// Formats the value as in the environment. Words have no suffix of the OMG.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Length(None) => f.write_str(LENGTH_UNLIMITED),
            Self::Length(Some(value)) => value.fmt(f),
            Self::Duration(value) => f.write_str(&show_duration(*value)),
            Self::Word(word) => f.write_str(word),
            Self::Words(words) => f.write_str(&words.join(",")),
            Self::Octets(octets) => {
                let texts: Vec<String> = octets.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
            Self::Text(text) => f.write_str(text),
            Self::Texts(texts) => f.write_str(&texts.join(",")),
            Self::Properties(pairs) => {
                let texts: Vec<String> = pairs.iter().map(|(name, value, _)| format!("{name}={value}")).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_require_units_and_are_not_rounded() {
        let nanos = |text: &str| duration(text).and_then(Duration::as_nanos);
        assert_eq!(nanos("250 ms"), Some(250_000_000));
        assert_eq!(nanos("1.5s"), Some(1_500_000_000));
        assert_eq!(nanos("10_000 ns"), Some(10_000));
        assert_eq!(nanos("2 min"), Some(120_000_000_000));
        assert_eq!(duration("infinite"), Some(Duration::INFINITE));
        for wrong in ["", "5", "ms", "-1 s", "1.5 ns", "1 h", "0.1234567891 s", "99999999999999999999 s", "1.x s"] {
            assert_eq!(duration(wrong), None, "{wrong:?}");
        }
        for text in ["0 s", "250 ms", "1500 us", "7 ns", "3 s", "infinite"] {
            assert_eq!(duration(text).map(show_duration).as_deref(), Some(text));
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!((integer("12"), integer("-3"), integer("0x1F")), (Some(12), Some(-3), Some(31)));
        for wrong in ["", "+1", "1.0", "0x", "0x-1", "x", "--1", "-", "99999999999999999999"] {
            assert_eq!(integer(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn octets_are_decoded_from_base64() {
        assert_eq!(base64("VGhl IHF1\nawNr"), Some(b"The quk\x03k".to_vec()));
        assert_eq!((base64(""), base64("AA=="), base64("AAE=")), (Some(vec![]), Some(vec![0]), Some(vec![0, 1])));
        for wrong in ["A", "AA", "A===", "AA=A", "!AAA"] {
            assert_eq!(base64(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn words_are_accepted_with_and_without_the_suffix() {
        let kind = Kind::Word { words: &["BEST_EFFORT", "RELIABLE"], suffix: "_RELIABILITY_QOS" };
        for text in ["RELIABLE", "RELIABLE_RELIABILITY_QOS", " RELIABLE "] {
            assert_eq!(kind.parse_text(text), Ok(Value::Word("RELIABLE")));
        }
        let message = kind.parse_text("reliable").expect_err("case matters");
        assert_eq!(message, "found \"reliable\"; expected BEST_EFFORT or RELIABLE");
    }

    #[test]
    fn single_line_values_round_trip() {
        let words = Kind::Words { words: &["XCDR", "XCDR2"], suffix: "_DATA_REPRESENTATION" };
        for (kind, text) in [
            (Kind::Bool, "true"),
            (Kind::Int { min: -5, max: 5 }, "-5"),
            (Kind::Length, "LENGTH_UNLIMITED"),
            (Kind::Length, "7"),
            (Kind::Duration, "20 ms"),
            (words, "XCDR2,XCDR"),
            (Kind::Octets, "0,255,16"),
            (Kind::Texts, "a,b"),
        ] {
            assert_eq!(kind.parse_text(text).map(|value| value.to_string()).as_deref(), Ok(text));
        }
        for (kind, text) in [(Kind::Length, "0"), (Kind::Octets, "256"), (Kind::Int { min: 0, max: 5 }, "6")] {
            assert!(kind.parse_text(text).is_err(), "{text}");
        }
    }
}
