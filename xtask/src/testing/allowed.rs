//! Allowed skips on CI, `.ci/may-skip.json`, with the reasons why the CI machine cannot run the
//! tests.

use std::path::Path;

use serde_json::Value;

/// Path of the list, relative to the root.
pub const LIST: &str = ".ci/may-skip.json";

/// Entry of the list.
pub struct Allowance {
    /// Pattern of test names, `package::target::test`; `*` stands for any text.
    pub tests: String,
    /// Pattern of the reason that the test reports; `*` stands for any text.
    pub because: String,
}

/// All entries of the list.
#[derive(Default)]
pub struct Allowances(pub Vec<Allowance>);

impl Allowances {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// The list cannot be read, or an entry lacks `tests`, `because` or `reason`.
    pub fn load(root: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
        Self::parse(&text).map_err(|error| format!("{LIST}: {error}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let list: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let entries = list.as_array().ok_or("not a list")?;
        let entry = |entry: &Value| {
            let text = |key: &str| {
                let value = entry[key].as_str().filter(|value| !value.trim().is_empty());
                value.map(str::to_owned).ok_or(format!("{entry} has no \"{key}\""))
            };
            text("reason")?;
            Ok(Allowance { tests: text("tests")?, because: text("because")? })
        };
        entries.iter().map(entry).collect::<Result<_, String>>().map(Self)
    }

    /// Reports whether a test may be skipped for this reason.
    pub fn allows(&self, test: &str, reason: &str) -> bool {
        self.0.iter().any(|entry| entry.covers(test, reason))
    }
}

impl Allowance {
    /// Reports whether the entry covers this test and this reason.
    pub fn covers(&self, test: &str, reason: &str) -> bool {
        matches(&self.tests, test) && matches(&self.because, reason)
    }
}

/// Reports whether a text matches a pattern, in which `*` stands for any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::{Allowances, matches};

    #[test]
    fn star_matches_any_text() {
        for (pattern, text, expected) in [
            ("a::b", "a::b", true),
            ("a::b", "a::bc", false),
            ("a::*", "a::b::c", true),
            ("*::c", "a::b::c", true),
            ("a::*::c", "a::c", false),
            ("a*b*c", "a--b--b--c", true),
            ("a*b*c", "a--b--b--d", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn entry_allows_its_tests_only_for_its_reason() {
        let list = r#"[{ "tests": "a::it::x::*", "because": "no taprio*", "reason": "the kernel of CI" }]"#;
        let list = Allowances::parse(list).expect("a list");
        assert!(list.allows("a::it::x::y", "no taprio here"));
        assert!(!list.allows("a::it::x::y", "not root"));
        assert!(!list.allows("a::it::z", "no taprio here"));
    }

    #[test]
    fn entry_without_a_reason_is_refused() {
        for list in
            [r#"[{ "tests": "a", "because": "b" }]"#, r#"[{ "tests": "a", "because": "b", "reason": " " }]"#, "{}", "["]
        {
            assert!(Allowances::parse(list).is_err(), "{list}");
        }
    }
}
