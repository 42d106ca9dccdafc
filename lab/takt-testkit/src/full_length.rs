//! Full length of tests: `TAKT_TEST_LONG=1` makes tests run more cases, or for longer.

/// Reports whether tests run at full length.
#[must_use]
pub fn is_full_length() -> bool {
    std::env::var_os("TAKT_TEST_LONG").is_some_and(|value| value == "1")
}
