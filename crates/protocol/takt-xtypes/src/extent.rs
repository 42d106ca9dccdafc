//! Maximum encoded length of a type. It decides whether a key hash is the key itself, and sizes
//! history slots.

use crate::{MAX_DEPTH, Representation, Scope};

/// Worst-case position in the encoded form. It becomes unbounded when an unbounded value is added.
///
/// Aligning and adding are both monotone. The worst case of a sequence of members is therefore the
/// result of adding the worst case of each member in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    end: Option<usize>,
    representation: Representation,
    scope: Scope,
    depth: u8,
}

impl Extent {
    pub(crate) fn new(representation: Representation, scope: Scope) -> Self {
        Self { end: Some(0), representation, scope, depth: 0 }
    }

    /// Returns the position; `None` if it is unbounded.
    #[inline]
    pub fn end(self) -> Option<usize> {
        self.end
    }

    /// Returns the encoding version.
    #[inline]
    pub fn representation(self) -> Representation {
        self.representation
    }

    /// Returns the scope: the members that are counted.
    #[inline]
    pub fn scope(self) -> Scope {
        self.scope
    }

    /// Adds `len` bytes aligned to `alignment` (a power of two).
    #[inline]
    #[must_use]
    pub fn add(mut self, alignment: usize, len: usize) -> Self {
        let alignment = alignment.min(self.representation.max_alignment());
        self.end = self.end.and_then(|end| end.checked_next_multiple_of(alignment)?.checked_add(len));
        self
    }

    /// Makes the position unbounded.
    #[inline]
    #[must_use]
    pub fn unbounded(mut self) -> Self {
        self.end = None;
        self
    }

    /// Returns the greater of two extents.
    #[inline]
    #[must_use]
    pub(crate) fn max(mut self, other: Self) -> Self {
        self.end = match (self.end, other.end) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        self
    }

    /// Returns an extent with the same settings that starts at 0.
    #[inline]
    pub(crate) fn restarted(mut self) -> Self {
        self.end = Some(0);
        self
    }

    /// Applies `add` `count` times. Stops early if the position is unbounded.
    pub(crate) fn repeat(mut self, count: usize, add: impl Fn(Self) -> Self) -> Self {
        // Padding repeats with a period of at most 8 bytes, so after 8 elements each further 8 add
        // the same length.
        const PERIOD: usize = 8;
        let (periods, rest) = (count / PERIOD, count % PERIOD);
        let run = |mut extent: Self, times: usize| {
            for _ in 0..times {
                if extent.end.is_none() {
                    break;
                }
                extent = add(extent);
            }
            extent
        };
        if periods > 0 {
            self = run(self, PERIOD);
            if periods > 1 {
                let before = self.end;
                self = run(self, PERIOD);
                let more = periods - 2;
                self.end =
                    before.zip(self.end).and_then(|(before, end)| end.checked_add((end - before).checked_mul(more)?));
            }
        }
        run(self, rest)
    }

    /// Adds a value one nesting level deeper. A recursive type is unbounded.
    pub(crate) fn nested(mut self, add: impl FnOnce(Self) -> Self) -> Self {
        if self.end.is_none() || self.depth >= MAX_DEPTH {
            return self.unbounded();
        }
        self.depth += 1;
        let mut extent = add(self);
        extent.depth -= 1;
        extent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference for `repeat`: adds one element at a time.
    fn one_by_one(mut extent: Extent, count: usize, add: impl Fn(Extent) -> Extent) -> Extent {
        for _ in 0..count {
            extent = add(extent);
        }
        extent
    }

    #[test]
    fn repeating_equals_adding_one_by_one() {
        let parts = [(1, 1), (2, 2), (4, 4), (8, 8), (1, 3), (4, 7)];
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for start in 0..9 {
                for first in parts {
                    for second in parts {
                        let add = |extent: Extent| extent.add(first.0, first.1).add(second.0, second.1);
                        let extent = Extent::new(representation, Scope::Sample).add(1, start);
                        for count in [0, 1, 7, 8, 9, 15, 16, 17, 100, 1001] {
                            assert_eq!(extent.repeat(count, add), one_by_one(extent, count, add));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn overflow_is_unbounded() {
        let extent = Extent::new(Representation::Xcdr2, Scope::Sample);
        assert_eq!(extent.repeat(usize::MAX, |extent| extent.add(8, 8)).end(), None);
        assert_eq!(extent.add(1, usize::MAX).add(4, 1).end(), None);
        assert_eq!(extent.unbounded().add(4, 4).end(), None);
    }
}
