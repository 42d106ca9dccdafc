//! Set of locator kinds that the data of an endpoint may use.

use takt_wire::Locator;

/// Set of locator kinds. All kinds unknown to the protocol count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocatorKinds(u8);

impl LocatorKinds {
    /// All kinds.
    pub const ALL: Self = Self(u8::MAX);
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns this set with one more kind.
    #[must_use]
    pub const fn with(self, kind: i32) -> Self {
        Self(self.0 | bit(kind))
    }

    /// Returns the kinds of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Reports whether the set contains the kind of a locator.
    #[must_use]
    pub const fn has(self, locator: &Locator) -> bool {
        self.0 & bit(locator.kind) != 0
    }
}

const fn bit(kind: i32) -> u8 {
    match kind {
        Locator::KIND_UDP_V4 => 1,
        Locator::KIND_UDP_V6 => 1 << 1,
        Locator::KIND_TCP_V4 => 1 << 2,
        Locator::KIND_TCP_V6 => 1 << 3,
        Locator::KIND_TAKT_SHM => 1 << 4,
        Locator::KIND_TAKT_ETHERNET => 1 << 5,
        _ => 1 << 7,
    }
}
