//! Suggestion of the known name that is most similar to an unknown one.

/// Longest name that is compared, in characters.
const LEN_MAX: usize = 64;

/// Returns the known name that is most similar to an unknown name.
///
/// At most three characters, and at most a third of the name, may be changed, added, removed or
/// exchanged with the next one. Names that differ only in case are similar as well. Returns `None`
/// if no name is similar.
#[must_use]
pub fn similar<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let lower = name.to_lowercase();
    let limit = (lower.chars().count() / 3).min(3);
    let distances = known.into_iter().map(|other| (distance(&lower, &other.to_lowercase()), other));
    distances.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

/// Returns the number of characters to change, add, remove or exchange with the next one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().max(b.len()) > LEN_MAX {
        return usize::MAX;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before_last[j - 2] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelling_is_found_and_a_different_word_is_not() {
        let known = ["history", "reliability", "durability", "Temperature"];
        for (name, expected) in [
            ("histroy", Some("history")),
            ("Temperatur", Some("Temperature")),
            ("temperature", Some("Temperature")),
            ("reliablity", Some("reliability")),
            ("deadline", None),
            ("x", None),
        ] {
            assert_eq!(similar(name, known), expected, "{name}");
        }
    }
}
