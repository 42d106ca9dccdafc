//! Contract keys in the USER_DATA (DDS 1.4 §2.2.3.1) and the properties (RTPS 2.5 §9.6.3) of an
//! endpoint.
//!
//! [`takt_wire::qos::Contract`] reads the keys that the API of Takt writes. Applications of other
//! vendors can write those, or the shorter forms with a unit:
//! `rt.minsep=5ms;rt.maxsize=1400;rt.e2e=1ms;rt.importance=7`. `rt.jitter=20ms`, `rt.importance`
//! and `rt.protected=true` exist only in the short form. A property overrides USER_DATA. The first
//! of two equal keys counts. Unknown keys and values that are not numbers are ignored.

use std::time::Duration;

use takt_wire::qos::{Contract, Property, UserData};

use super::parse_span;

/// Contract that one endpoint declares, each value with the name of its key.
#[derive(Default)]
pub(super) struct Declared {
    pub(super) separation: Option<(Duration, &'static str)>,
    pub(super) jitter: Option<(Duration, &'static str)>,
    pub(super) size: Option<(u32, &'static str)>,
    pub(super) limit: Option<(Duration, &'static str)>,
    pub(super) importance: Option<(i32, &'static str)>,
    pub(super) is_protected: Option<(bool, &'static str)>,
}

impl Declared {
    pub(super) fn read(user_data: &UserData, property: &Property) -> Self {
        let of_takt = Contract::of(user_data, property);
        let span = |span: Option<takt_wire::Duration>, key| {
            let nanos = span.and_then(takt_wire::Duration::as_nanos).filter(|nanos| *nanos > 0)?;
            Some((Duration::from_nanos(nanos), key))
        };
        let mut declared = Self {
            separation: span(of_takt.minimum_separation, "rt.min_sep_ns"),
            jitter: None,
            size: of_takt.max_sample_bytes.filter(|size| *size > 0).map(|size| (size, "rt.max_bytes")),
            limit: span(of_takt.e2e_latency, "rt.e2e_ns"),
            importance: None,
            is_protected: None,
        };
        for (key, value) in fields(user_data, property) {
            let span = || parse_span(value);
            match key {
                "rt.minsep" => declared.separation = declared.separation.or_else(|| Some((span()?, "rt.minsep"))),
                "rt.jitter" => declared.jitter = declared.jitter.or_else(|| Some((span()?, "rt.jitter"))),
                "rt.e2e" => declared.limit = declared.limit.or_else(|| Some((span()?, "rt.e2e"))),
                "rt.maxsize" => {
                    let size = value.parse().ok().filter(|size| *size > 0);
                    declared.size = declared.size.or(size.map(|size| (size, "rt.maxsize")));
                }
                "rt.importance" => {
                    let importance = value.parse().ok().map(|importance| (importance, "rt.importance"));
                    declared.importance = declared.importance.or(importance);
                }
                "rt.protected" => {
                    let is_protected = value.parse().ok().map(|is_protected| (is_protected, "rt.protected"));
                    declared.is_protected = declared.is_protected.or(is_protected);
                }
                _ => {}
            }
        }
        declared
    }
}

/// Iterates over keys with their values, the properties first. Fields that are not UTF-8 are
/// ignored.
pub(crate) fn fields<'a>(user_data: &'a UserData, property: &'a Property) -> impl Iterator<Item = (&'a str, &'a str)> {
    let trimmed = |text: &'a str| text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let properties = property.entries.iter().map(|entry| (entry.name.as_str(), entry.value.as_str()));
    let in_user_data = user_data.0.split(|octet| *octet == b';').filter_map(|field| {
        let text = std::str::from_utf8(field).ok()?;
        text.split_once('=')
    });
    properties.chain(in_user_data).map(move |(key, value)| (trimmed(key), trimmed(value)))
}
