//! Scalar value of a primitive, string or enumeration field, borrowed from a payload or from
//! [`DynamicData`]. Numbers of different widths compare as numbers, strings of either kind as
//! characters.

use core::cmp::Ordering;

use super::DynamicData;
use crate::Endianness;

/// Comparable value.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    /// `boolean`.
    Bool(bool),
    /// Integer of any width, `octet` or bitmask.
    Integer(i128),
    /// `float` or `double`.
    Float(f64),
    /// `char`, interpreted as ISO 8859-1, or `wchar`.
    Char(char),
    /// `string` or `wstring`.
    Text(Text<'a>),
    /// Value of an enumeration literal.
    Enum(i32),
}

/// Borrowed text.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// UTF-8.
    Utf8(&'a str),
    /// UTF-16 code units as received, in an even number of octets.
    Wire(&'a [u8], Endianness),
    /// UTF-16 code units.
    Units(&'a [u16]),
    /// Single character.
    Char(char),
}

/// Characters of a [`Text`]; an unpaired surrogate becomes U+FFFD.
#[derive(Clone, Debug)]
pub struct Chars<'a> {
    rest: Text<'a>,
    done: bool,
}

impl<'a> Text<'a> {
    /// Returns the characters.
    #[must_use]
    pub fn chars(self) -> Chars<'a> {
        Chars { rest: self, done: false }
    }

    /// Compares the characters of two texts.
    #[must_use]
    pub fn compare(self, other: Text<'_>) -> Ordering {
        match (self, other) {
            // The byte order of UTF-8 equals the order of its characters.
            (Self::Utf8(a), Text::Utf8(b)) => a.cmp(b),
            (a, b) => a.chars().cmp(b.chars()),
        }
    }

    /// Returns the UTF-16 code unit at an index.
    fn unit(self, index: usize) -> Option<u16> {
        match self {
            Self::Wire(bytes, endianness) => {
                let unit = *bytes.as_chunks().0.get(index)?;
                Some(match endianness {
                    Endianness::Little => u16::from_le_bytes(unit),
                    Endianness::Big => u16::from_be_bytes(unit),
                })
            }
            Self::Units(units) => units.get(index).copied(),
            Self::Utf8(_) | Self::Char(_) => None,
        }
    }

    fn skip_units(self, count: usize) -> Self {
        match self {
            Self::Wire(bytes, endianness) => Self::Wire(bytes.get(2 * count..).unwrap_or_default(), endianness),
            Self::Units(units) => Self::Units(units.get(count..).unwrap_or_default()),
            other => other,
        }
    }
}

impl Iterator for Chars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.rest {
            Text::Utf8(text) => {
                let mut chars = text.chars();
                let next = chars.next();
                self.rest = Text::Utf8(chars.as_str());
                next
            }
            Text::Char(single) => (!core::mem::replace(&mut self.done, true)).then_some(single),
            Text::Wire(..) | Text::Units(_) => {
                let pair = [self.rest.unit(0)?, self.rest.unit(1).unwrap_or_default()];
                let char = match char::decode_utf16(pair).next() {
                    Some(Ok(char)) => char,
                    _ => char::REPLACEMENT_CHARACTER,
                };
                self.rest = self.rest.skip_units(char.len_utf16());
                Some(char)
            }
        }
    }
}

impl<'a> Scalar<'a> {
    /// Returns the value of data other than structures, unions and collections.
    #[must_use]
    pub fn of(data: &'a DynamicData) -> Option<Self> {
        Some(match data {
            DynamicData::Bool(value) => Self::Bool(*value),
            DynamicData::F32(value) => Self::Float(f64::from(*value)),
            DynamicData::F64(value) => Self::Float(*value),
            DynamicData::Char8(value) => Self::Char(char::from(*value)),
            DynamicData::Char16(unit) => {
                Self::Char(char::from_u32(u32::from(*unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            DynamicData::String(text) => Self::Text(Text::Utf8(text)),
            DynamicData::WString(text) => Self::Text(Text::Units(&text.0)),
            DynamicData::Enum { value, .. } => Self::Enum(*value),
            other => Self::Integer(other.as_integer()?),
        })
    }

    /// Compares two values; `None` if one of them is NaN, or if they are of different kinds.
    #[must_use]
    pub fn compare(self, other: Scalar<'_>) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Bool(a), Scalar::Bool(b)) => a.cmp(&b),
            (Self::Integer(a), Scalar::Integer(b)) => a.cmp(&b),
            (Self::Float(a), Scalar::Float(b)) => return a.partial_cmp(&b),
            (Self::Integer(a), Scalar::Float(b)) => return compare_mixed(a, b),
            (Self::Float(a), Scalar::Integer(b)) => return compare_mixed(b, a).map(Ordering::reverse),
            (Self::Enum(a), Scalar::Enum(b)) => a.cmp(&b),
            (Self::Enum(a), Scalar::Integer(b)) => i128::from(a).cmp(&b),
            (Self::Integer(a), Scalar::Enum(b)) => a.cmp(&i128::from(b)),
            (a, b) => a.text()?.compare(b.text()?),
        })
    }

    /// Returns a text, or a character as a text.
    #[must_use]
    pub fn text(self) -> Option<Text<'a>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Char(char) => Some(Text::Char(char)),
            _ => None,
        }
    }
}

/// Compares an integer with a float without rounding the integer.
fn compare_mixed(integer: i128, float: f64) -> Option<Ordering> {
    /// 2^127, the smallest float above the range of integers.
    const BEYOND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if float.is_nan() {
        return None;
    }
    if float >= BEYOND {
        return Some(Ordering::Less);
    }
    if float < -BEYOND {
        return Some(Ordering::Greater);
    }
    let whole = float as i128;
    Some(integer.cmp(&whole).then_with(|| (whole as f64).partial_cmp(&float).unwrap_or(Ordering::Equal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_without_rounding() {
        let compare = |a: i128, b: f64| Scalar::Integer(a).compare(Scalar::Float(b));
        assert_eq!(compare(9_007_199_254_740_993, 9_007_199_254_740_992.0), Some(Ordering::Greater));
        assert_eq!(compare(2, 2.5), Some(Ordering::Less));
        assert_eq!(compare(-2, -2.5), Some(Ordering::Greater));
        assert_eq!(compare(-3, -2.5), Some(Ordering::Less));
        assert_eq!(compare(i128::MAX, f64::INFINITY), Some(Ordering::Less));
        assert_eq!(compare(i128::MIN, f64::NEG_INFINITY), Some(Ordering::Greater));
        assert_eq!(compare(0, f64::NAN), None);
        assert_eq!(Scalar::Float(2.5).compare(Scalar::Integer(2)), Some(Ordering::Greater));
    }

    #[test]
    fn texts_of_all_kinds_compare_by_characters() {
        let text = "aé水🦀";
        let units: alloc::vec::Vec<u16> = text.encode_utf16().collect();
        let big: alloc::vec::Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let little: alloc::vec::Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let wires = [Text::Wire(&big, Endianness::Big), Text::Wire(&little, Endianness::Little), Text::Units(&units)];
        for wide in wires {
            assert!(wide.chars().eq(text.chars()));
            assert_eq!(wide.compare(Text::Utf8(text)), Ordering::Equal);
            assert_eq!(wide.compare(Text::Utf8("aé水")), Ordering::Greater);
        }
        assert!(Text::Units(&[0x61, 0xd83e]).chars().eq(['a', '\u{fffd}']));
        assert!(Text::Units(&[0xd83e, 0x61]).chars().eq(['\u{fffd}', 'a']));
        assert_eq!(Scalar::Char('a').compare(Scalar::Text(Text::Utf8("a"))), Some(Ordering::Equal));
    }
}
