//! The greatest length a type can have: decides whether a key hash is the key itself, and sizes history slots.

use crate::{MAX_DEPTH, Representation, Scope};

/// A worst-case position in the encoded form; unbounded once anything unbounded was added.
///
/// Both aligning and adding are monotone, so the worst case of a sequence of members is reached by taking each
/// member's worst case in turn.
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

    /// The position, `None` if there is no bound.
    #[inline]
    pub fn end(self) -> Option<usize> {
        self.end
    }

    /// The encoding version measured.
    #[inline]
    pub fn representation(self) -> Representation {
        self.representation
    }

    /// Which members take part.
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

    /// No bound from here on.
    #[inline]
    #[must_use]
    pub fn unbounded(mut self) -> Self {
        self.end = None;
        self
    }

    /// The greater of two.
    #[inline]
    #[must_use]
    pub(crate) fn max(mut self, other: Self) -> Self {
        self.end = match (self.end, other.end) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
        self
    }

    /// An extent of its own that starts at 0 with the same settings.
    #[inline]
    pub(crate) fn restarted(mut self) -> Self {
        self.end = Some(0);
        self
    }

    /// Adds `count` times what `add` adds. Stops early where there is no bound.
    pub(crate) fn repeat(mut self, count: usize, add: impl Fn(Self) -> Self) -> Self {
        // Padding repeats with a period of at most 8 bytes, so after 8 elements each further 8 add the same.
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

    /// One level deeper; a type that contains itself has no bound.
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

    /// What `repeat` abbreviates.
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
    fn what_overflows_has_no_bound() {
        let extent = Extent::new(Representation::Xcdr2, Scope::Sample);
        assert_eq!(extent.repeat(usize::MAX, |extent| extent.add(8, 8)).end(), None);
        assert_eq!(extent.add(1, usize::MAX).add(4, 1).end(), None);
        assert_eq!(extent.unbounded().add(4, 4).end(), None);
    }
}
