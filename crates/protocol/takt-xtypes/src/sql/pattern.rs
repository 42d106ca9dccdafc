//! Pattern matching of `LIKE` (DDS 1.4 annex B) and `MATCH`.
//!
//! Both backtrack to the last wildcard only, so they take at most the product of both lengths in
//! steps, and no memory.

use crate::dynamic::{Budget, Chars, Text};

/// Element of a pattern.
enum Element<'a> {
    /// Any characters, possibly none.
    Many,
    /// One character of a set.
    One(Wanted<'a>),
}

enum Wanted<'a> {
    Any,
    This(char),
    Of(Chars<'a>),
}

impl Wanted<'_> {
    fn includes(&self, char: char, budget: &Budget) -> bool {
        match self {
            Self::Any => true,
            Self::This(this) => *this == char,
            Self::Of(set) => set_includes(set.clone(), char, budget),
        }
    }
}

/// Matches a `LIKE` pattern: `%` stands for any characters, `_` for one.
pub(super) fn like(text: Text<'_>, pattern: Text<'_>, budget: &Budget) -> bool {
    matches_pattern(text.chars(), pattern.chars(), budget, |pattern| {
        Some(match pattern.next()? {
            '%' => Element::Many,
            '_' => Element::One(Wanted::Any),
            char => Element::One(Wanted::This(char)),
        })
    })
}

/// Matches shell patterns, with commas between alternatives.
pub(super) fn matches(text: Text<'_>, patterns: Text<'_>, budget: &Budget) -> bool {
    let mut rest = patterns.chars();
    loop {
        if matches_pattern(text.chars(), rest.clone(), budget, next_of_glob) {
            return true;
        }
        while next_of_glob(&mut rest).is_some() {
            budget.spend(1);
        }
        // Another pattern follows the comma, unless the text ends there.
        if rest.clone().next().is_none() {
            return false;
        }
    }
}

fn next_of_glob<'a>(pattern: &mut Chars<'a>) -> Option<Element<'a>> {
    Some(match pattern.next()? {
        ',' => return None,
        '*' => Element::Many,
        '?' => Element::One(Wanted::Any),
        '[' => {
            let set = pattern.clone();
            let mut is_first = true;
            loop {
                match pattern.next() {
                    // Without a closing bracket, an opening bracket is an ordinary character.
                    None => {
                        *pattern = set;
                        break Element::One(Wanted::This('['));
                    }
                    Some(']') if !is_first => break Element::One(Wanted::Of(set)),
                    Some('!' | '^') if is_first => {}
                    Some(_) => is_first = false,
                }
            }
        }
        '\\' => Element::One(Wanted::This(pattern.next().unwrap_or('\\'))),
        char => Element::One(Wanted::This(char)),
    })
}

/// Reports whether a character is in `a-z]` or not in `!a-z]`.
fn set_includes(mut set: Chars<'_>, char: char, budget: &Budget) -> bool {
    let mut ahead = set.clone();
    let negated = matches!(ahead.next(), Some('!' | '^'));
    if negated {
        set = ahead;
    }
    let (mut found, mut is_first) = (false, true);
    while let Some(low) = set.next().filter(|c| *c != ']' || is_first) {
        is_first = false;
        budget.spend(1);
        let mut ahead = set.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                set = ahead;
                high
            }
            _ => low,
        };
        found |= (low..=high).contains(&char);
    }
    found != negated
}

/// Reports whether the whole text matches a pattern, whose elements `next` yields.
///
/// Also false if the budget is exceeded. Each comparison of a pattern element with a character
/// takes one step.
fn matches_pattern<'p>(
    mut text: Chars<'_>,
    mut pattern: Chars<'p>,
    budget: &Budget,
    next: impl Fn(&mut Chars<'p>) -> Option<Element<'p>>,
) -> bool {
    // Position to resume at if the match of the last wildcard must be extended.
    let mut resume: Option<(Chars<'_>, Chars<'p>)> = None;
    while budget.spend(1) {
        let mut ahead = pattern.clone();
        let place = next(&mut ahead);
        if let Some(Element::Many) = place {
            resume = Some((text.clone(), ahead.clone()));
            pattern = ahead;
            continue;
        }
        let mut rest = text.clone();
        let agrees = match (place, rest.next()) {
            (None, None) => return true,
            (Some(Element::One(wanted)), Some(char)) => wanted.includes(char, budget),
            // The rest of the pattern needs a character, and the text has ended.
            (Some(_), None) => return false,
            (None | Some(Element::Many), Some(_)) => false,
        };
        if agrees {
            (text, pattern) = (rest, ahead);
            continue;
        }
        let Some((from, behind)) = &mut resume else { return false };
        from.next();
        (text, pattern) = (from.clone(), behind.clone());
    }
    false
}
