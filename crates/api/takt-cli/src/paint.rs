//! Colors of text on a terminal.
//!
//! Colors are off if the stream is no terminal, if `NO_COLOR` is set to anything but an empty text
//! (<https://no-color.org>), or if `TERM` is `dumb`.

use std::io::{IsTerminal, stderr, stdout};

const RESET: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[33m";

/// Paints texts, or leaves them as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    is_on: bool,
}

impl Paint {
    /// Returns the colors of standard output.
    pub fn of_output() -> Self {
        Self::new(stdout().is_terminal(), |name| std::env::var(name).ok())
    }

    /// Returns the colors of standard error.
    pub fn of_errors() -> Self {
        Self::new(stderr().is_terminal(), |name| std::env::var(name).ok())
    }

    fn new(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
        Self { is_on: is_terminal && !is_refused && !is_dumb }
    }

    /// Paints a heading.
    pub fn heading(self, text: &str) -> String {
        self.with(BOLD, text)
    }

    /// Paints what keeps something from working.
    pub fn error(self, text: &str) -> String {
        self.with(RED, text)
    }

    /// Paints what may keep something from working.
    pub fn warning(self, text: &str) -> String {
        self.with(YELLOW, text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.is_on { format!("{code}{text}{RESET}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_for_terminals_that_do_not_refuse_them() {
        let nothing = |_: &str| None;
        let named =
            |name: &'static str, value: &'static str| move |asked: &str| (asked == name).then(|| value.to_owned());
        assert!(Paint::new(true, nothing).is_on);
        assert!(!Paint::new(false, nothing).is_on);
        assert!(!Paint::new(true, named("NO_COLOR", "1")).is_on);
        assert!(Paint::new(true, named("NO_COLOR", "")).is_on);
        assert!(!Paint::new(true, named("TERM", "dumb")).is_on);
        assert_eq!(Paint { is_on: true }.error("no match"), "\u{1b}[1;31mno match\u{1b}[0m");
        assert_eq!(Paint::default().error("no match"), "no match");
    }
}
