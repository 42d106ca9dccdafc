//! Destinations of a writer's new samples, and their fragment size.
//!
//! A sample larger than the fragment size travels in `DATA_FRAG`s that each fill one packet of the
//! path, so IP fragments nothing. All fragments of a sample have one size for a given reader. It is
//! that of the path with the smallest MTU among the readers matched at the write, or, for a later
//! reader, that of its own path.
//!
//! If a multicast group reaches enough readers, samples are sent there once for all of them
//! ([`crate::multicast_group`]). Repairs and other submessages for a single reader are sent to that
//! reader alone.

use super::reader_proxy::ReaderProxy;
use crate::multicast_group::{MulticastGroups, MulticastReachability, MulticastSet};
use crate::path::Path;
use crate::slots::Slots;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use takt_wire::Locator;

/// Maximum number of octets around a fragment in its message: RTPS header 20, `INFO_DST` 16,
/// `INFO_TS` 12, `DATA_FRAG` 36, inline QoS 52 (key hash 20, status info 8, directed write 20,
/// sentinel 4).
const HEADROOM: usize = 136;

/// Additional octets of inline QoS for the position of a change in sets and groups.
pub(super) const HEADROOM_FOR_POSITION: usize = 48;

/// Additional octets of inline QoS for the original writer.
pub(super) const HEADROOM_FOR_ORIGIN: usize = 28;

/// Returns the fragment size of a path: a multiple of 8, so that the fragments of a reader stay
/// aligned. `more`: additional octets of inline QoS.
pub(crate) fn fragment_size(path: &Path, more: usize) -> u16 {
    let size = path.max_message.saturating_sub(HEADROOM + more).clamp(64, usize::from(u16::MAX));
    (size & !7) as u16
}

#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) destinations: Vec<Locator>,
    /// Set of the destinations, for look-ups.
    known: BTreeSet<Locator>,
    pub(crate) fragment_size: u16,
    pub(crate) max_message: usize,
    /// Length up to which datagrams arrive or their loss is reported, in octets.
    pub(super) len_validated: usize,
    /// Whether any reader is reliable.
    pub(crate) reliable: bool,
    /// Additional octets of inline QoS.
    pub(super) more: usize,
    /// Multicast group among the destinations, instead of the readers it serves.
    pub(super) multicast_group: Option<usize>,
    /// Groups that would be used if all listeners had validated them.
    pub(super) wanted: MulticastSet,
}

impl Route {
    /// Returns a route without destinations.
    pub(crate) const fn new(more: usize) -> Self {
        Self {
            destinations: Vec::new(),
            known: BTreeSet::new(),
            fragment_size: u16::MAX,
            max_message: usize::MAX,
            len_validated: usize::MAX,
            reliable: false,
            more,
            multicast_group: None,
            wanted: 0,
        }
    }

    /// Returns the route to these readers, by `group` to those it serves.
    pub(crate) fn to(
        proxies: &Slots<ReaderProxy>,
        more: usize,
        groups: &MulticastGroups,
        group: Option<usize>,
        wanted: MulticastSet,
    ) -> Self {
        let mut route = Self { multicast_group: group, wanted, ..Self::new(more) };
        proxies.iter().for_each(|(_, proxy)| route.add(proxy, groups));
        route
    }

    /// Adds a reader to the route, by the chosen group if that serves it.
    pub(crate) fn add(&mut self, proxy: &ReaderProxy, groups: &MulticastGroups) {
        let path = path_to(proxy, self.multicast_group, groups);
        if !proxy.is_excluded && self.known.insert(path.locator) {
            self.destinations.push(path.locator);
        }
        self.max_message = self.max_message.min(path.max_message);
        self.fragment_size = self.fragment_size.min(fragment_size(&path, self.more));
        self.len_validated = self.len_validated.min(proxy.len_validated());
        self.reliable |= proxy.reliable;
    }
}

/// Returns the path of new samples to a reader: by `group` if that serves it.
pub(super) fn path_to(proxy: &ReaderProxy, group: Option<usize>, groups: &MulticastGroups) -> Path {
    let served_by = group.filter(|group| proxy.reachability.is_served_by(*group));
    match served_by.and_then(|group| groups.list.get(group)) {
        Some(group) => Path { locator: group.locator, max_message: proxy.path.max_message.min(group.max_message) },
        None => proxy.path,
    }
}

/// Adds a destination to the ordered list, unless it is present.
pub(super) fn add_destination(destinations: &mut Vec<Locator>, locator: Locator) {
    if let Err(position) = destinations.binary_search(&locator) {
        destinations.insert(position, locator);
    }
}

/// Returns the group that saves most datagrams, and the groups that would save some if all
/// listeners had validated them. A group is chosen only if it can serve every reader that
/// receives it, so that no reader gets a sample twice.
pub(super) fn choose_multicast_group(
    proxies: &Slots<ReaderProxy>,
    groups: &MulticastGroups,
) -> (Option<usize>, MulticastSet) {
    let (mut best, mut chosen, mut wanted) = (0, None, 0);
    for (at, group) in groups.list.iter().enumerate() {
        let destinations_if = |can_serve: &dyn Fn(&MulticastReachability) -> bool| {
            let mut destinations = Vec::new();
            for (_, proxy) in proxies.iter() {
                match can_serve(&proxy.reachability) {
                    true => destinations.push(proxy.path.locator),
                    false if proxy.reachability.listens >> at & 1 != 0 => return 0,
                    false => {}
                }
            }
            destinations.sort_unstable();
            destinations.dedup();
            destinations.len()
        };
        if groups.is_cheaper(group.listeners, destinations_if(&|reachability| reachability.allowed >> at & 1 != 0)) {
            wanted |= 1 << at;
        }
        let destinations = destinations_if(&|reachability| reachability.is_served_by(at));
        if destinations > best && groups.is_cheaper(group.listeners - group.unreachable, destinations) {
            (best, chosen) = (destinations, Some(at));
        }
    }
    (chosen, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_fragment_fits_into_one_ethernet_packet() {
        let path = Path { locator: Locator::INVALID, max_message: 1500 - 28 };
        let size = usize::from(fragment_size(&path, 0));
        assert_eq!(size % 8, 0);
        assert!(size + HEADROOM <= 1472 && size > 1300);
    }
}
