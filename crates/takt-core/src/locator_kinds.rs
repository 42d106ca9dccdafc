//! Kinds of locators, as a set: what the data of an endpoint may go by.

use takt_wire::Locator;

/// Some kinds of locators. Those that the protocol knows nothing of are one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocatorKinds(u8);

impl LocatorKinds {
    /// All that there are.
    pub const ALL: Self = Self(u8::MAX);
    /// None.
    pub const NONE: Self = Self(0);

    /// These, and one more.
    #[must_use]
    pub const fn with(self, kind: i32) -> Self {
        Self(self.0 | bit(kind))
    }

    /// Whether the kind of a locator is one of them.
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
