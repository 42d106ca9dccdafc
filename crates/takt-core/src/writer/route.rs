//! Where a writer's new samples go, and how large their fragments are.
//!
//! A sample larger than the fragment size travels in `DATA_FRAG`s that each fill one packet of the path, so
//! nothing is fragmented by IP. All fragments of a sample have one size for a given reader: that of the
//! narrowest path among the readers matched when it was written, or, for a reader that joined later, that
//! of its own path.

use super::reader_proxy::{Path, ReaderProxy};
use crate::slots::Slots;
use alloc::vec::Vec;
use takt_wire::Locator;

/// What may surround a fragment in its message: RTPS header 20, `INFO_DST` 16, `INFO_TS` 12, `DATA_FRAG`
/// 36, inline QoS 52 (key hash 20, status info 8, directed write 20, sentinel 4).
const HEADROOM: usize = 136;

/// The fragment size of a path: a multiple of 8, so that the fragments of a reader stay aligned.
pub(crate) fn fragment_size(path: &Path) -> u16 {
    let size = path.max_message.saturating_sub(HEADROOM).clamp(64, usize::from(u16::MAX));
    (size & !7) as u16
}

#[derive(Debug, Default)]
pub(crate) struct Route {
    pub(crate) destinations: Vec<Locator>,
    pub(crate) fragment_size: u16,
    pub(crate) max_message: usize,
    /// Whether any reader is reliable.
    pub(crate) reliable: bool,
}

impl Route {
    pub(crate) fn to(proxies: &Slots<ReaderProxy>) -> Self {
        let mut route = Self { max_message: usize::MAX, fragment_size: u16::MAX, ..Self::default() };
        for (_, proxy) in proxies.iter() {
            if !route.destinations.contains(&proxy.path.locator) {
                route.destinations.push(proxy.path.locator);
            }
            route.max_message = route.max_message.min(proxy.path.max_message);
            route.fragment_size = route.fragment_size.min(fragment_size(&proxy.path));
            route.reliable |= proxy.reliable;
        }
        route
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_fragment_fits_into_one_ethernet_packet() {
        let path = Path { locator: Locator::INVALID, max_message: 1500 - 28 };
        let size = usize::from(fragment_size(&path));
        assert_eq!(size % 8, 0);
        assert!(size + HEADROOM <= 1472 && size > 1300);
    }
}
