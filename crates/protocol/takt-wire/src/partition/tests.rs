//! Tests of partition names and patterns.

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
fn empty_list_means_the_partition_with_the_empty_name() {
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
fn star_matches_the_default_partition() {
    assert!(matches(&["*"], &[]));
    assert!(!matches(&["?"], &[]));
}

#[test]
fn backslash_alone_is_no_pattern() {
    assert!(!is_pattern(r"a\b"));
    assert!(matches(&[r"a\b"], &[r"a\b"]));
}

#[test]
fn hard_patterns_take_polynomial_time() {
    // Exponential matchers do not terminate on this pattern in reasonable time.
    let pattern = "*a".repeat(127) + "b";
    let name = "a".repeat(255);
    assert!(!pattern_matches(pattern.as_bytes(), name.as_bytes()));
}

#[test]
fn unclosed_brackets_take_at_most_the_product_of_the_lengths() {
    // A matcher that tries up to 8,000 brackets at each position, and searches the rest of the
    // pattern for the end of each, does not terminate in reasonable time.
    let pattern = ["*", &"[".repeat(8_001), "x"].concat();
    let name = ["[".repeat(8_000).as_str(), "y"].concat().repeat(2);
    assert!(!pattern_matches(pattern.as_bytes(), name.as_bytes()));
    assert!(pattern_matches(b"*[[x", b"aaa[[x"), "few of them are ordinary characters");
}

#[test]
fn fnmatch_takes_the_text_literally() {
    assert!(fnmatch("rt/*", "rt/chatter") && fnmatch("*", "*") && fnmatch("a?[b-d]", "a*c") && fnmatch("", ""));
    assert!(!fnmatch("rt/*", "rs/chatter") && !fnmatch("a", "*") && !fnmatch("", "a"));
}
