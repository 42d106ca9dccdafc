//! Where a writer's new samples go, and how large their fragments are.
//!
//! A sample larger than the fragment size travels in `DATA_FRAG`s that each fill one packet of the path, so
//! nothing is fragmented by IP. All fragments of a sample have one size for a given reader: that of the
//! narrowest path among the readers matched when it was written, or, for a reader that joined later, that
//! of its own path.
//!
//! Where a multicast group leads to enough readers, the samples go there instead, once for all of them
//! ([`crate::channel`]). What is for a single reader, such as repairs, goes to that one alone.

use super::reader_proxy::{Path, ReaderProxy};
use crate::channel::{ChannelSet, Channels, Hearing};
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
    /// Longer datagrams may be lost unnoticed.
    pub(super) len_proven: usize,
    /// Whether any reader is reliable.
    pub(crate) reliable: bool,
    /// What inline QoS takes beside the usual.
    pub(super) more: usize,
    /// The channel among the destinations, in place of those whom it serves.
    pub(super) channel: Option<usize>,
    /// Channels that would be used if all who listen had proven to hear them.
    pub(super) wanted: ChannelSet,
}

impl Route {
    /// The way to nobody.
    pub(crate) const fn new(more: usize) -> Self {
        Self {
            destinations: Vec::new(),
            known: BTreeSet::new(),
            fragment_size: u16::MAX,
            max_message: usize::MAX,
            len_proven: usize::MAX,
            reliable: false,
            more,
            channel: None,
            wanted: 0,
        }
    }

    /// The way to these readers, by `channel` to those whom that serves.
    pub(crate) fn to(
        proxies: &Slots<ReaderProxy>,
        more: usize,
        channels: &Channels,
        channel: Option<usize>,
        wanted: ChannelSet,
    ) -> Self {
        let mut route = Self { channel, wanted, ..Self::new(more) };
        proxies.iter().for_each(|(_, proxy)| route.add(proxy, channels));
        route
    }

    /// Leads to one more reader, by the channel that was chosen if that serves it.
    pub(crate) fn add(&mut self, proxy: &ReaderProxy, channels: &Channels) {
        let way = way_to(proxy, self.channel, channels);
        if !proxy.is_behind && self.known.insert(way.locator) {
            self.destinations.push(way.locator);
        }
        self.max_message = self.max_message.min(way.max_message);
        self.fragment_size = self.fragment_size.min(fragment_size(&way, self.more));
        self.len_proven = self.len_proven.min(proxy.len_proven());
        self.reliable |= proxy.reliable;
    }
}

/// How new samples get to a reader: by `channel` if that serves it.
pub(super) fn way_to(proxy: &ReaderProxy, channel: Option<usize>, channels: &Channels) -> Path {
    let served_by = channel.filter(|channel| proxy.hearing.is_served_by(*channel));
    match served_by.and_then(|channel| channels.list.get(channel)) {
        Some(channel) => {
            Path { locator: channel.locator, max_message: proxy.path.max_message.min(channel.max_message) }
        }
        None => proxy.path,
    }
}

/// Adds a destination; none is there twice, and they are in order.
pub(super) fn add_destination(destinations: &mut Vec<Locator>, locator: Locator) {
    if let Err(place) = destinations.binary_search(&locator) {
        destinations.insert(place, locator);
    }
}

/// The channel that saves most datagrams, and the channels that would save some if all listeners had proven to hear them. A channel
/// is chosen only if it can serve every reader that hears it, so that no reader receives a sample twice.
pub(super) fn choose_channel(proxies: &Slots<ReaderProxy>, channels: &Channels) -> (Option<usize>, ChannelSet) {
    let (mut best, mut chosen, mut wanted) = (0, None, 0);
    for (at, channel) in channels.list.iter().enumerate() {
        let places_if = |can_serve: &dyn Fn(&Hearing) -> bool| {
            let mut places = Vec::new();
            for (_, proxy) in proxies.iter() {
                match can_serve(&proxy.hearing) {
                    true => places.push(proxy.path.locator),
                    false if proxy.hearing.hears >> at & 1 != 0 => return 0,
                    false => {}
                }
            }
            places.sort_unstable();
            places.dedup();
            places.len()
        };
        if channels.is_cheaper(channel.listeners, places_if(&|hearing| hearing.takes >> at & 1 != 0)) {
            wanted |= 1 << at;
        }
        let places = places_if(&|hearing| hearing.is_served_by(at));
        if places > best && channels.is_cheaper(channel.listeners - channel.deaf, places) {
            (best, chosen) = (places, Some(at));
        }
    }
    (chosen, wanted)
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
