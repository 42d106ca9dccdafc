//! PARTITION of simulated endpoints: lists of names and patterns, by index (DDS 1.4 §2.2.3.13).

/// Element of a list.
enum Name {
    Plain(&'static str),
    /// A POSIX `fnmatch` pattern, and the plain names of this file that it matches.
    Pattern(&'static str, &'static [&'static str]),
}

use Name::{Pattern, Plain};

/// All lists. The first one is the default PARTITION.
const LISTS: [&[Name]; 12] = [
    &[Plain("")],
    &[Plain("part1")],
    &[Plain("part2")],
    &[Plain("other")],
    &[Pattern("part*", &["part1", "part2"])],
    &[Pattern("part?", &["part1", "part2"])],
    &[Pattern("part[!1]", &["part2"])],
    &[Pattern("*", &["", "part1", "part2", "other"])],
    &[Plain("part1"), Plain("other")],
    &[Pattern("o*r", &["other"]), Plain("part2")],
    &[Pattern("[np]*t[2-9]", &["part2"])],
    &[Pattern("?*", &["part1", "part2", "other"])],
];

/// Number of lists.
pub const COUNT: u8 = LISTS.len() as u8;

/// Returns the names of a list, as in PARTITION.
#[must_use]
pub fn names(index: u8) -> Vec<String> {
    let text = |name: &Name| match name {
        Plain(text) | Pattern(text, _) => (*text).to_owned(),
    };
    if index == 0 { Vec::new() } else { LISTS[usize::from(index)].iter().map(text).collect() }
}

/// Reports whether two lists have a partition in common: a plain name that is in both, or that a
/// pattern of the other matches. Two patterns never match each other, even if they are equal.
#[must_use]
pub fn have_common(one: u8, other: u8) -> bool {
    let names_match = |pair: (&Name, &Name)| match pair {
        (Plain(one), Plain(other)) => one == other,
        (Plain(name), Pattern(_, matched)) | (Pattern(_, matched), Plain(name)) => matched.contains(name),
        (Pattern(..), Pattern(..)) => false,
    };
    let others = || LISTS[usize::from(other)].iter();
    LISTS[usize::from(one)].iter().any(|name| others().any(|other| names_match((name, other))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_plain_names_but_not_each_other() {
        assert!(
            have_common(0, 0)
                && have_common(1, 1)
                && !have_common(1, 2)
                && have_common(1, 4)
                && !have_common(1, 6)
                && have_common(0, 7)
                && !have_common(0, 11)
        );
        assert!(!have_common(4, 4) && !have_common(4, 7), "two patterns");
        assert!(
            have_common(8, 9) && have_common(4, 8) && have_common(4, 9) && !have_common(3, 10),
            "one of several names"
        );
        assert!((0..COUNT).all(|one| (0..COUNT).all(|other| have_common(one, other) == have_common(other, one))));
        assert_eq!((names(0), names(8)), (vec![], vec!["part1".to_owned(), "other".to_owned()]));
    }
}
