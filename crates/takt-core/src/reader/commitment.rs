//! Readers that acknowledge what their application has made safe, rather than what has arrived: those of a durability
//! service (DDS 1.4 §2.2.3.4).
//!
//! A pass of takes that leaves nothing marks how far each writer has come ([`Reader::mark_taken`]); when the application
//! has made that safe, [`Reader::acknowledge_taken`] lets the writers know. In between heartbeats are answered with what
//! was acknowledged before (RTPS 2.5 §8.3.8.1 lets a reader acknowledge as late as it likes).

use super::{Reader, WriterProxy};
use crate::context::Context;
use takt_wire::SequenceNumber;
use takt_wire::inline_qos::SampleIdentity;

impl Reader {
    /// From now on it acknowledges when it is told to. To be called before a writer is matched.
    pub(crate) fn acknowledge_explicitly(&mut self) {
        self.explicit = true;
    }

    /// A pass of takes has ended: if nothing is left, all that was delivered so far is in the application's hands.
    pub(crate) fn mark_taken(&mut self, ctx: &mut Context) {
        if !self.explicit || self.cache.has_any() {
            return;
        }
        for (_, proxy) in self.proxies.iter_mut() {
            ctx.work.steps(1);
            proxy.taken = proxy.expected.map(|expected| proxy.unkept.map_or(expected, |unkept| unkept.min(expected)));
        }
    }

    /// Records a sample of a reliable writer that the reader drops for want of memory or of an instance. An acknowledged
    /// sample must be safe, so the reader acknowledges neither this sample nor later ones of that writer.
    pub(super) fn note_unkept(&mut self, index: u32, sn: SequenceNumber) {
        if let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| self.explicit && proxy.reliable) {
            proxy.unkept = Some(proxy.unkept.map_or(sn, |unkept| unkept.min(sn)));
        }
    }

    /// Of each matched writer, the first sample that could not be kept.
    pub(crate) fn unkept(&self) -> impl Iterator<Item = SampleIdentity> + '_ {
        let of = |proxy: &WriterProxy| Some(SampleIdentity { writer: proxy.guid, sn: proxy.unkept? });
        self.proxies.iter().filter_map(move |(_, proxy)| of(proxy))
    }

    /// Acknowledges what was taken up to the last pass that left nothing.
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
