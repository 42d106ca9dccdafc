//! Fast path of reception: the next sample of a reliable writer goes from the datagram directly
//! into the history of a reader without checks.
//!
//! The result equals that of [`super::receive`] and [`super::delivery`] in this case, without their
//! case distinctions. All other samples use those modules: inline QoS, keys, filters, sets, samples
//! out of order, no room.

use super::Reader;
use super::writer_proxy::{Arrival, LAST_SAMPLE, WriterProxy};
use crate::cache::PlainSample;
use crate::context::Context;
use takt_wire::message::{Data, Payload};

use super::Stamp;

impl Reader {
    /// Delivers a sample if the fast path applies. If not, nothing has changed.
    pub(super) fn deliver_at_once(&mut self, ctx: &mut Context, index: u32, stamp: Stamp, data: &Data<'_>) -> bool {
        let Payload::Data(payload) = data.payload else { return false };
        if data.inline_qos.is_some() || self.inspects_samples() {
            return false;
        }
        let Some(proxy) = self.proxies.get_mut(index) else { return false };
        if proxy.expected != Some(data.sn) || !proxy.is_in_order() {
            return false;
        }
        let Stamp { now, source_timestamp } = stamp;
        let plain =
            PlainSample { writer: proxy.guid, sn: data.sn, source_timestamp, strength: proxy.strength, payload };
        if !self.cache.deliver_plain(&plain, ctx.clocks(now)) {
            return false;
        }
        ctx.work.steps(1);
        proxy.repaired(now, data.sn, data.reader);
        proxy.arrived(data.sn);
        proxy.expected = Some(data.sn.next());
        let (next_has_arrived, misses) = (proxy.arrival(data.sn.next()) != Arrival::Missing, proxy.misses_samples());
        self.notify_available(ctx);
        if next_has_arrived {
            self.deliver(ctx, index, now);
        }
        if misses {
            self.notice_gap(ctx, index, now);
        }
        true
    }

    /// Reports whether the reader checks more than the writer and the order of samples.
    fn inspects_samples(&self) -> bool {
        self.keyed || self.filter.is_some() || self.origins.is_some() || self.deadline.is_some()
    }
}

impl WriterProxy {
    /// Reports whether the expected sample can be delivered as soon as it arrives.
    fn is_in_order(&self) -> bool {
        self.reliable
            && self.holding.is_none()
            && self.history_end.is_none()
            && self.lifespan.is_infinite()
            && !self.blocked
            && !self.awaits_services
            && self.fragments.is_empty()
            && self.expected.is_some_and(|sn| sn < LAST_SAMPLE && self.arrival(sn) == Arrival::Missing)
    }
}
