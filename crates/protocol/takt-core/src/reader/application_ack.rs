//! Explicit acknowledgment: readers of durability services acknowledge samples once the
//! application has stored them, rather than on arrival (DDS 1.4 §2.2.3.4).
//!
//! A pass of takes that leaves no sample marks the position of each writer
//! ([`Reader::mark_taken`]). Once the application has stored these samples,
//! [`Reader::acknowledge_taken`] acknowledges them. Until then heartbeats are answered with the
//! previous acknowledgment (RTPS 2.5 §8.3.8.1 allows a reader to acknowledge arbitrarily late).

use super::{Reader, WriterProxy};
use crate::context::Context;
use takt_wire::SequenceNumber;
use takt_wire::inline_qos::SampleIdentity;

impl Reader {
    /// Enables explicit acknowledgment. To be called before a writer is matched.
    pub(crate) fn acknowledge_explicitly(&mut self) {
        self.explicit = true;
    }

    /// Ends a pass of takes: if no sample is left, the application has all samples delivered so
    /// far.
    pub(crate) fn mark_taken(&mut self, ctx: &mut Context) {
        if !self.explicit || self.cache.has_any() {
            return;
        }
        for (_, proxy) in self.proxies.iter_mut() {
            ctx.work.steps(1);
            proxy.taken =
                proxy.expected.map(|expected| proxy.first_unstored.map_or(expected, |first| first.min(expected)));
        }
    }

    /// Records a sample of a reliable writer that the reader drops for want of memory or of an
    /// instance. An acknowledged sample must be safe, so the reader acknowledges neither this
    /// sample nor later ones of that writer.
    pub(super) fn record_unstored(&mut self, index: u32, sn: SequenceNumber) {
        if let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| self.explicit && proxy.reliable) {
            proxy.first_unstored = Some(proxy.first_unstored.map_or(sn, |first| first.min(sn)));
        }
    }

    /// Returns, for each matched writer, the first sample that could not be kept.
    pub(crate) fn first_unstored(&self) -> impl Iterator<Item = SampleIdentity> + '_ {
        let of = |proxy: &WriterProxy| Some(SampleIdentity { writer: proxy.guid, sn: proxy.first_unstored? });
        self.proxies.iter().filter_map(move |(_, proxy)| of(proxy))
    }

    /// Acknowledges all samples taken up to the last pass that left none.
    pub(crate) fn acknowledge_taken(&mut self, ctx: &mut Context) {
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            ctx.work.steps(1);
            let Some(proxy) = self.proxies.get_mut(index) else { continue };
            let (Some(taken), Some(acknowledged)) = (proxy.taken, proxy.acknowledged) else { continue };
            if taken > acknowledged {
                proxy.acknowledged = Some(taken);
                self.queue_acknack(ctx, index);
            }
        }
    }
}
