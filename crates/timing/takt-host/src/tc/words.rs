//! Text form of settings: names and values in a fixed order, some of them optional.

use std::str::FromStr;

/// Clocks of disciplines (linux/time.h).
pub(crate) const CLOCKS: [(i32, &str); 4] = [
    (libc::CLOCK_REALTIME, "realtime"),
    (libc::CLOCK_MONOTONIC, "monotonic"),
    (7, "boottime"),
    (libc::CLOCK_TAI, "tai"),
];

/// Returns the name of a clock, or its number if it has no name.
pub(crate) fn clock(number: i32) -> String {
    let known = CLOCKS.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

/// Remaining words.
pub(crate) struct Words<'a>(pub(crate) &'a [&'a str]);

impl<'a> Words<'a> {
    /// Returns the value if the name is next.
    pub(crate) fn optional(&mut self, name: &str) -> Option<&'a str> {
        let [found, value, rest @ ..] = self.0 else { return None };
        if *found != name {
            return None;
        }
        self.0 = rest;
        Some(value)
    }

    pub(crate) fn number<T: FromStr>(&mut self, name: &str) -> Option<T> {
        self.optional(name)?.parse().ok() // tidy-allow(dropped-cause): who reads words names the text
    }

    /// Parses `on` or `off`.
    pub(crate) fn switch(&mut self, name: &str) -> Option<bool> {
        match self.optional(name)? {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }

    /// Parses values separated by commas.
    pub(crate) fn list<T>(&mut self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
        self.optional(name)?.split(',').map(parse).collect()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}
