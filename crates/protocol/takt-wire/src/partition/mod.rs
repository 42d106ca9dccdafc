//! Matching of PARTITION policies (DDS 1.4 §2.2.3.13).
//!
//! Names may be patterns of POSIX `fnmatch`: `*`, `?`, `[...]`. A pattern matches plain names only:
//! two patterns never match each other, even if they are equal.

use crate::qos::Partition;

/// Reports whether two PARTITION policies have a partition in common. The empty list means the
/// partition with the empty name.
pub fn partitions_match(one: &Partition, other: &Partition) -> bool {
    names(one).any(|a| names(other).any(|b| names_match(a, b)))
}

fn names(partition: &Partition) -> impl Iterator<Item = &str> {
    let default = if partition.names.is_empty() { Some("") } else { None };
    default.into_iter().chain(partition.names.iter().map(|name| name.as_str()))
}

fn names_match(a: &str, b: &str) -> bool {
    match (is_pattern(a), is_pattern(b)) {
        (false, false) => a == b,
        (true, false) => pattern_matches(a.as_bytes(), b.as_bytes()),
        (false, true) => pattern_matches(b.as_bytes(), a.as_bytes()),
        (true, true) => false,
    }
}

/// Reports whether the name contains a wildcard of a pattern.
pub fn is_pattern(name: &str) -> bool {
    name.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Reports whether the text matches a POSIX `fnmatch` pattern with no flags set. Unlike
/// [`partitions_match`], it takes the text literally, even if the text is a pattern.
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    pattern_matches(pattern.as_bytes(), text.as_bytes())
}

/// Matches octet by octet. It backtracks only to the last star, so it examines at most as many
/// octets as the product of both lengths. A pattern with many unclosed brackets would exceed that
/// bound and matches nothing.
fn pattern_matches(pattern: &[u8], text: &[u8]) -> bool {
    let examined_max = (pattern.len() + 1) * (text.len() + 1);
    let mut examined = 0;
    let mut p = 0;
    let mut t = 0;
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
            continue;
        }
        if examined > examined_max {
            return false;
        }
        if let Some(len) = element_matches(&pattern[p..], text[t], &mut examined) {
            p += len;
            t += 1;
            continue;
        }
        let Some((after_star, from)) = retry else {
            return false;
        };
        p = after_star;
        t = from + 1;
        retry = Some((p, t));
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Compares the first element of the pattern (other than a star) with the octet. Returns the number
/// of octets of the element if it matches. Adds the number of examined octets to
/// `examined`.
fn element_matches(pattern: &[u8], octet: u8, examined: &mut usize) -> Option<usize> {
    *examined += 1;
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', set @ ..] => {
            let found = set_matches(set, octet);
            *examined += found.map_or(set.len(), |(len, _)| len);
            match found {
                Some((len, is_in)) => is_in.then_some(1 + len),
                // Without a closing bracket, an opening bracket is an ordinary character.
                None => (octet == b'[').then_some(1),
            }
        }
        [b'\\', escaped, ..] => (*escaped == octet).then_some(2),
        [plain, ..] => (*plain == octet).then_some(1),
        [] => None,
    }
}

/// Evaluates the rest of a bracket expression. Returns its length, the closing bracket included,
/// and whether the octet is in the set. `None` if the bracket is never closed.
fn set_matches(set: &[u8], octet: u8) -> Option<(usize, bool)> {
    let is_negated = matches!(set.first(), Some(b'!' | b'^'));
    let first = usize::from(is_negated);
    let mut at = first;
    let mut is_in = false;
    loop {
        let low = match (set.get(at)?, at) {
            (b']', at) if at > first => return Some((at + 1, is_in != is_negated)),
            (b'\\', _) => {
                at += 1;
                *set.get(at)?
            }
            (byte, _) => *byte,
        };
        at += 1;
        let high = match (set.get(at), set.get(at + 1)) {
            (Some(b'-'), Some(high)) if *high != b']' => {
                at += 2;
                *high
            }
            _ => low,
        };
        is_in |= (low..=high).contains(&octet);
    }
}

#[cfg(test)]
mod tests;
