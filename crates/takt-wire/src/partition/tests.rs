//! Names, patterns, and which of them meet.

use alloc::string::String;

use super::*;

fn partition(names: &[&str]) -> Partition {
    Partition { names: names.iter().copied().map(String::from).collect() }
}

fn matches(one: &[&str], other: &[&str]) -> bool {
    let (one, other) = (partition(one), partition(other));
    let result = partitions_match(&one, &other);
    assert_eq!(result, partitions_match(&other, &one), "the order makes no difference");
    result
}

#[test]
fn no_names_means_the_one_with_the_empty_name() {
    assert!(matches(&[], &[]));
    assert!(matches(&[], &[""]));
    assert!(!matches(&[], &["a"]));
    assert!(matches(&["a", ""], &[]));
}

#[test]
fn one_common_name_is_enough() {
    assert!(matches(&["a", "b"], &["c", "b"]));
    assert!(!matches(&["a", "b"], &["c", "B"]));
}

#[test]
fn patterns_match_names() {
    for (pattern, name) in [
        ("*", "anything"),
        ("*", ""),
        ("p*", "p1"),
        ("*1", "p1"),
        ("p?", "p1"),
        ("a*b*c", "a-b-b-c"),
        ("**a**", "bab"),
        ("[a-c]x", "bx"),
        ("[!a-c]x", "dx"),
        ("[]]", "]"),
        ("[a-]", "-"),
        ("[", "["),
        ("a[b", "a[b"),
        (r"a\*?", "a*b"),
        (r"[\]a]?", "]x"),
    ] {
        assert!(pattern_matches(pattern.as_bytes(), name.as_bytes()), "{pattern} and {name}");
    }
}

#[test]
fn patterns_do_not_match_other_names() {
    for (pattern, name) in [
        ("p?", "p"),
        ("p?", "p12"),
        ("p*", "q1"),
        ("a*b", "abc"),
        ("[a-c]x", "dx"),
        ("[!a-c]x", "bx"),
        ("[z-a]", "m"),
        ("?", ""),
        ("", "a"),
    ] {
        assert!(!pattern_matches(pattern.as_bytes(), name.as_bytes()), "{pattern} and {name}");
    }
}

#[test]
fn two_patterns_never_match() {
    assert!(!matches(&["*"], &["*"]));
    assert!(!matches(&["p*"], &["p?"]));
    assert!(matches(&["*", "a"], &["*", "b"]), "but a pattern and a name do");
}

#[test]
fn the_default_partition_is_met_by_a_star() {
    assert!(matches(&["*"], &[]));
    assert!(!matches(&["?"], &[]));
}

#[test]
fn a_backslash_alone_makes_no_pattern() {
    assert!(!is_pattern(r"a\b"));
    assert!(matches(&[r"a\b"], &[r"a\b"]));
}

#[test]
fn hard_patterns_take_polynomial_time() {
    // Exponential matchers do not come back from this one.
    let pattern = "*a".repeat(127) + "b";
    let name = "a".repeat(255);
    assert!(!pattern_matches(pattern.as_bytes(), name.as_bytes()));
}

#[test]
fn brackets_that_are_never_closed_take_the_product_of_the_lengths_at_most() {
    // A matcher that tries up to 8,000 brackets at each position, and searches the rest of the pattern for the end of each, does not
    // come back from this one.
    let pattern = ["*", &"[".repeat(8_001), "x"].concat();
    let name = ["[".repeat(8_000).as_str(), "y"].concat().repeat(2);
    assert!(!pattern_matches(pattern.as_bytes(), name.as_bytes()));
    assert!(pattern_matches(b"*[[x", b"aaa[[x"), "few of them are ordinary characters");
}

#[test]
fn fnmatch_takes_a_text_that_is_a_pattern_as_it_is() {
    assert!(fnmatch("rt/*", "rt/chatter") && fnmatch("*", "*") && fnmatch("a?[b-d]", "a*c") && fnmatch("", ""));
    assert!(!fnmatch("rt/*", "rs/chatter") && !fnmatch("a", "*") && !fnmatch("", "a"));
}
