//! Where a writer's new samples go, and how large their fragments are.
//!
//! A sample larger than the fragment size travels in `DATA_FRAG`s that each fill one packet of the path, so
//! nothing is fragmented by IP. All fragments of a sample have one size for a given reader: that of the
//! narrowest path among the readers matched when it was written, or, for a reader that joined later, that
//! of its own path.

use super::reader_proxy::{Path, ReaderProxy};
use crate::slots::Slots;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use takt_wire::Locator;

/// What may surround a fragment in its message: RTPS header 20, `INFO_DST` 16, `INFO_TS` 12, `DATA_FRAG`
/// 36, inline QoS 52 (key hash 20, status info 8, directed write 20, sentinel 4).
const HEADROOM: usize = 136;

/// What inline QoS says besides of the place of a change in sets and groups.
pub(super) const HEADROOM_FOR_PLACE: usize = 48;

/// What inline QoS says besides of the original writer.
pub(super) const HEADROOM_FOR_ORIGIN: usize = 28;

/// The fragment size of a path: a multiple of 8, so that the fragments of a reader stay aligned. `more`: what inline QoS takes
/// beside the usual.
pub(crate) fn fragment_size(path: &Path, more: usize) -> u16 {
    let size = path.max_message.saturating_sub(HEADROOM + more).clamp(64, usize::from(u16::MAX));
    (size & !7) as u16
}

#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) destinations: Vec<Locator>,
    /// The same, to be looked up.
    known: BTreeSet<Locator>,
    pub(crate) fragment_size: u16,
    pub(crate) max_message: usize,
    /// Whether any reader is reliable.
    pub(crate) reliable: bool,
    /// What inline QoS takes beside the usual.
    pub(super) more: usize,
}

impl Route {
    /// The way to nobody.
    pub(crate) const fn new(more: usize) -> Self {
        Self {
            destinations: Vec::new(),
            known: BTreeSet::new(),
            fragment_size: u16::MAX,
            max_message: usize::MAX,
            reliable: false,
            more,
        }
    }

    pub(crate) fn to(proxies: &Slots<ReaderProxy>, more: usize) -> Self {
        let mut route = Self::new(more);
        proxies.iter().for_each(|(_, proxy)| route.add(proxy));
        route
    }

    /// Leads to one more reader.
    pub(crate) fn add(&mut self, proxy: &ReaderProxy) {
        if self.known.insert(proxy.path.locator) {
            self.destinations.push(proxy.path.locator);
        }
        self.max_message = self.max_message.min(proxy.path.max_message);
        self.fragment_size = self.fragment_size.min(fragment_size(&proxy.path, self.more));
        self.reliable |= proxy.reliable;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_fragment_fits_into_one_ethernet_packet() {
        let path = Path { locator: Locator::INVALID, max_message: 1500 - 28 };
        let size = usize::from(fragment_size(&path, 0));
        assert_eq!(size % 8, 0);
        assert!(size + HEADROOM <= 1472 && size > 1300);
    }
}
