//! Samples of which fragments have arrived. A best-effort reader counts the unreceived samples of
//! this range as lost.

use std::collections::BTreeMap;

use takt_wire::Guid;
use takt_wire::message::{MessageView, Submessage};

use super::{Checker, EndpointId};
use crate::clock::Nanos;

/// Ranges of such samples, by writer and reader.
#[derive(Debug, Default)]
pub(super) struct PartialSamples(BTreeMap<(EndpointId, EndpointId), Span>);

/// First and last sample of which a fragment has arrived.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u32,
    last: u32,
    /// Arrival time of the last fragment.
    at: Nanos,
}

impl PartialSamples {
    /// Records a fragment of a sample. Of the fragments before the match, only those at the same
    /// time may count.
    fn record_fragment(&mut self, at: Nanos, key: (EndpointId, EndpointId), number: u32, is_matched: bool) {
        let span = self.0.entry(key).or_insert(Span { first: number, last: number, at });
        if !is_matched && span.at != at {
            *span = Span { first: number, last: number, at };
        }
        *span = Span { first: span.first.min(number), last: span.last.max(number), at };
    }

    /// Records that a reader knows a writer from now on.
    pub(super) fn reader_matched(&mut self, at: Nanos, key: (EndpointId, EndpointId)) {
        if self.0.get(&key).is_some_and(|span| span.at != at) {
            self.0.remove(&key);
        }
    }

    /// Returns the first and the last sample of which a fragment has arrived.
    pub(super) fn span(&self, key: (EndpointId, EndpointId)) -> Option<(u32, u32)> {
        self.0.get(&key).map(|span| (span.first, span.last))
    }
}

impl Checker {
    /// Records a datagram that arrives at a process with these readers.
    pub fn received(&mut self, at: Nanos, datagram: &[u8], readers: impl Iterator<Item = EndpointId>) {
        let readers: Vec<_> = readers.filter(|reader| !self.endpoints[*reader as usize].qos.reliable).collect();
        let Some(message) = MessageView::parse(datagram).ok().filter(|_| !readers.is_empty()) else { return };
        let prefix = message.header().prefix;
        for submessage in message.submessages() {
            let Ok(Submessage::DataFrag(fragment)) = submessage else { continue };
            let Some(&writer) = self.by_guid.get(&Guid { prefix, entity_id: fragment.writer }) else { continue };
            let Some(number) = self.number_of(writer, fragment.sn.0) else { continue };
            for &reader in &readers {
                let is_matched = self.pairs.get(&(writer, reader)).is_some_and(|pair| pair.is_known_to_reader());
                self.partial_samples.record_fragment(at, (writer, reader), number, is_matched);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_before_the_match_count_only_at_its_time() {
        let (key, mut begun) = ((0, 1), PartialSamples::default());
        begun.record_fragment(10, key, 3, false);
        begun.record_fragment(20, key, 4, false);
        begun.reader_matched(20, key);
        assert_eq!(begun.span(key), Some((4, 4)));
        begun.record_fragment(30, key, 6, true);
        begun.record_fragment(31, key, 5, true);
        assert_eq!(begun.span(key), Some((4, 6)));
        begun.reader_matched(40, key);
        assert_eq!(begun.span(key), None);
    }
}
