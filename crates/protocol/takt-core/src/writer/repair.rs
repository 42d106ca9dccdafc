//! Datagrams to a single reader: repairs, gaps, history, and heartbeats in reply
//! (RTPS 2.5 §8.4.9.2).

use super::transmit::{Message, Part, fragment_count};
use super::{Change, ReaderProxy, Writer, route};
use crate::FlowTag;
use crate::context::Context;
use crate::event::Event;
use crate::path::Path;
use crate::time::Instant;
use takt_wire::message::Gap;
use takt_wire::{EntityId, FragmentNumberSet, Full, Locator, SequenceNumber, SequenceNumberSet};

/// Maximum number of changes visited to measure one gap; the reader requests the rest.
const GAP_STEPS: usize = 256;

impl Writer {
    /// Returns the flow of repairs to this reader.
    pub(crate) fn repair_flow(&self, proxy: u32) -> FlowTag {
        let catches_up = self.proxies.get(proxy).is_some_and(ReaderProxy::catches_up);
        if catches_up { self.flows.history } else { self.flows.live }
    }

    /// Builds the next datagram to one reader; `None` if there is nothing. Queues itself again if
    /// there is more.
    pub(crate) fn transmit_repair(
        &mut self,
        now: Instant,
        index: u32,
        ctx: &mut Context,
        frame: &mut [u8],
    ) -> Option<usize> {
        let proxy = self.proxies.get_mut(index)?;
        if !core::mem::take(&mut proxy.queued) {
            return None;
        }
        let is_narrow = proxy.begin_burst(now);
        let reader = proxy.guid;
        if is_narrow {
            ctx.counters.narrowed_paths += 1;
            ctx.notify(Event::PathNarrowed(self.handle));
            self.reroute(ctx);
        }
        let path = self.directed_path(self.proxies.get(index)?, ctx);
        ctx.destinations.push(path.locator);
        let mut message = self.message(frame, path.max_message, ctx)?;
        message.builder.info_destination(reader.prefix).ok()?;
        if self.security.addressee.is_some() {
            self.send_initial_heartbeat(&mut message, ctx);
        }
        let empty = message.builder.len();
        while let Some(step) = self.next_repair(index) {
            ctx.work.steps(1 + step.steps());
            let position = self.position(index, &step);
            let sent = ctx.counters.repairs_sent;
            let done = match step {
                Repair::Gap { start, end, .. } => self.emit_gap(&mut message, index, start, end, ctx),
                Repair::Change(change) => self.emit_change(&mut message, index, &change, empty, ctx),
                Repair::Fragment(change, fragments) => {
                    self.emit_fragment(&mut message, index, &change, fragments, empty, ctx)
                }
                Repair::Heartbeat => self.emit_directed_heartbeat(&mut message, index, ctx),
            };
            if let (Some(position), Some(proxy)) = (position, self.proxies.get_mut(index))
                && ctx.counters.repairs_sent > sent
            {
                proxy.burst.record_sent(now, position);
            }
            if done.is_err() {
                break;
            }
        }
        let len = message.builder.len();
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.record_repairs(len);
            if !proxy.reliable {
                self.probes.record_directed_datagram();
            }
        }
        self.queue_repair(index, ctx);
        self.continue_directed(index, ctx);
        (len > empty).then_some(len)
    }

    /// Returns the path of datagrams to one reader. A best-effort reader drops overtaken samples,
    /// so its directed samples use the path of all samples (RTPS 2.5 §8.4.12.1). `INFO_DST` and the
    /// reader's entity ID exclude other readers on that path.
    fn directed_path(&self, proxy: &ReaderProxy, ctx: &Context) -> Path {
        let group = self.route.multicast_group.filter(|_| !proxy.reliable);
        route::path_to(proxy, group, &ctx.multicast_groups)
    }

    /// Returns the destination of the next datagram to a reader, if that datagram is a fragment.
    pub(crate) fn next_repair_fragment_to(&mut self, index: u32, ctx: &Context) -> Option<Locator> {
        let step = self.next_repair(index)?;
        let proxy = self.proxies.get(index)?;
        let path = self.directed_path(proxy, ctx);
        let is_fragment = match step {
            Repair::Fragment(..) => true,
            Repair::Change(change) if self.loans_to(proxy, &change) => false,
            Repair::Change(change) => {
                let size = fragment_size(&path, proxy.live_from, &change, self.route.more);
                change.payload.len() > usize::from(size)
            }
            Repair::Gap { .. } | Repair::Heartbeat => false,
        };
        is_fragment.then_some(path.locator)
    }

    /// Reports whether a reader gets the payload of a change by loan.
    fn loans_to(&self, proxy: &ReaderProxy, change: &Change) -> bool {
        self.security.may_loan && proxy.path.supports_loans() && self.history.pool.loan(change.payload).is_some()
    }

    /// Continues after a best-effort reader may have received its directed changes: changes kept
    /// for it are released, and changes that waited for the order are sent.
    fn continue_directed(&mut self, index: u32, ctx: &mut Context) {
        if !self.has_pending_directed || self.proxies.get(index).is_some_and(|proxy| self.owes_directed(proxy)) {
            return;
        }
        ctx.work.steps(self.proxies.len());
        self.has_pending_directed = self.proxies.iter().any(|(_, proxy)| self.owes_directed(proxy));
        self.release_acknowledged(ctx);
        self.queue_data(ctx);
    }

    /// Reports whether directed changes must still be sent to a best-effort reader before later
    /// ones.
    pub(super) fn owes_directed(&self, proxy: &ReaderProxy) -> bool {
        let is_pushed = proxy.push_next.is_some() && !self.keeps_history;
        !proxy.reliable && (is_pushed || !proxy.requested.is_empty())
    }

    /// Returns the most urgent repair for the reader, oldest first.
    fn next_repair(&mut self, index: u32) -> Option<Repair> {
        let unsent = self.window.cursor.sn;
        let history = &self.history;
        let proxy = self.proxies.get_mut(index)?;
        while let Some((sn, fragments)) =
            proxy.next_fragment_request().filter(|(sn, _)| proxy.requested.lowest().is_none_or(|lowest| *sn < lowest))
        {
            match history.get(sn) {
                Some(change) if proxy.is_relevant(change) => return Some(Repair::Fragment(*change, fragments)),
                _ => {
                    proxy.set_fragment_request(sn, FragmentNumberSet::new(1));
                    proxy.requested.insert(sn);
                }
            }
        }
        if let Some(sn) = proxy.requested.lowest() {
            return Some(match history.get(sn) {
                Some(change) if proxy.is_relevant(change) => Repair::Change(*change),
                _ => {
                    let (end, steps) = self.gap_end(index, sn);
                    Repair::Gap { start: sn, end, steps }
                }
            });
        }
        let live_from = proxy.live_from.min(unsent);
        if let Some(sn) = proxy.push_next.filter(|sn| *sn < live_from) {
            return Some(match history.get(sn) {
                Some(change) if proxy.is_relevant(change) => Repair::Change(*change),
                _ => {
                    let (end, steps) = self.gap_end(index, sn);
                    Repair::Gap { start: sn, end: end.min(live_from), steps }
                }
            });
        }
        proxy.push_next = None;
        proxy.heartbeat_due.then_some(Repair::Heartbeat)
    }

    /// Returns the position of the sample or fragment that is sent next.
    fn position(&self, index: u32, step: &Repair) -> Option<(SequenceNumber, u32)> {
        match step {
            Repair::Change(change) => Some((change.sn, self.proxies.get(index)?.repair_fragment(change.sn))),
            Repair::Fragment(change, fragments) => Some((change.sn, fragments.iter().next()?)),
            Repair::Gap { .. } | Repair::Heartbeat => None,
        }
    }

    /// Returns the first sequence number from `start` on that may be relevant to the reader or is
    /// not sent yet, and the number of changes visited.
    fn gap_end(&self, index: u32, start: SequenceNumber) -> (SequenceNumber, usize) {
        let Some(proxy) = self.proxies.get(index) else { return (start.next(), 0) };
        let (mut end, mut steps) = (start, 0);
        while steps < GAP_STEPS {
            steps += 1;
            match self.history.at_or_after(end) {
                None => end = self.window.cursor.sn,
                Some(change) if proxy.is_relevant(change) => {
                    end = change.sn;
                    break;
                }
                Some(change) => end = change.sn.next(),
            }
            if end >= self.window.cursor.sn {
                break;
            }
        }
        (end.min(self.window.cursor.sn).max(start.next()), steps)
    }

    fn emit_gap(
        &mut self,
        message: &mut Message<'_>,
        index: u32,
        start: SequenceNumber,
        end: SequenceNumber,
        ctx: &mut Context,
    ) -> Result<(), Full> {
        let Some(proxy) = self.proxies.get_mut(index) else { return Err(Full) };
        // DEVIATION(RTPS 2.5 §8.7.5): a GAP has no group sequence numbers, because a writer does
        // not keep those of removed changes. Heartbeats, and the numbers of the changes before and
        // after, suffice.
        message.builder.gap(&Gap {
            reader: proxy.guid.entity_id,
            writer: self.entity_id,
            gap_start: start,
            gap_list: SequenceNumberSet::new(end),
        })?;
        ctx.counters.gaps_sent += 1;
        proxy.requested.clear_below(end);
        proxy.push_next = proxy.push_next.map(|next| if next == start { end } else { next });
        Ok(())
    }

    fn emit_change(
        &mut self,
        message: &mut Message<'_>,
        index: u32,
        change: &Change,
        empty: usize,
        ctx: &mut Context,
    ) -> Result<(), Full> {
        let Some(proxy) = self.proxies.get(index) else { return Err(Full) };
        let (reader, directed_to) = addressee(proxy, change);
        if self.loans_to(proxy, change) {
            if message.builder.len() > empty {
                return Err(Full);
            }
            self.emit(message, change, reader, directed_to, Part::Loan)?;
            ctx.loan = self.history.pool.loan(change.payload).cloned();
            ctx.counters.data_sent += 1;
            ctx.counters.repairs_sent += 1;
            self.repaired(index, change.sn);
            // A repaired sample has its datagram to itself.
            return Err(Full);
        }
        let size = fragment_size(&self.directed_path(proxy, ctx), proxy.live_from, change, self.route.more);
        if change.payload.len() <= usize::from(size) {
            self.emit(message, change, reader, directed_to, Part::Whole)?;
            ctx.counters.data_sent += 1;
            ctx.counters.repairs_sent += 1;
            self.repaired(index, change.sn);
            return Ok(());
        }
        if message.builder.len() > empty {
            return Err(Full);
        }
        let number = proxy.repair_fragment(change.sn);
        ctx.is_fragment = true;
        self.emit(message, change, reader, directed_to, Part::Fragment { number, size, in_tail: false })?;
        ctx.counters.data_frags_sent += 1;
        ctx.counters.repairs_sent += 1;
        if number >= fragment_count(change.payload.len(), size) {
            self.repaired(index, change.sn);
        } else if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.set_repair_position(change.sn, number + 1);
        }
        // One fragment fills a packet.
        Err(Full)
    }

    /// Records that a requested or pushed change has been sent completely.
    fn repaired(&mut self, index: u32, sn: SequenceNumber) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        proxy.reset_repair();
        if proxy.requested.lowest() == Some(sn) {
            proxy.requested.clear_below(sn.next());
            proxy.heartbeat_due |= proxy.reliable && proxy.requested.is_empty();
        } else {
            proxy.push_next = Some(sn.next());
        }
    }

    fn emit_fragment(
        &mut self,
        message: &mut Message<'_>,
        index: u32,
        change: &Change,
        fragments: FragmentNumberSet,
        empty: usize,
        ctx: &mut Context,
    ) -> Result<(), Full> {
        let Some(proxy) = self.proxies.get(index) else { return Err(Full) };
        let (reader, directed_to) = addressee(proxy, change);
        let size = fragment_size(&self.directed_path(proxy, ctx), proxy.live_from, change, self.route.more);
        let count = fragment_count(change.payload.len(), size);
        let Some(number) = fragments.iter().find(|number| (1..=count).contains(number)) else {
            return self.replace_fragments(index, change.sn, fragments);
        };
        if message.builder.len() > empty {
            return Err(Full);
        }
        ctx.is_fragment = true;
        self.emit(message, change, reader, directed_to, Part::Fragment { number, size, in_tail: false })?;
        ctx.counters.data_frags_sent += 1;
        ctx.counters.repairs_sent += 1;
        let mut remaining = FragmentNumberSet::new(fragments.base());
        for later in fragments.iter().filter(|later| *later > number && *later <= count) {
            remaining.insert(later);
        }
        let Some(proxy) = self.proxies.get_mut(index) else { return Err(Full) };
        proxy.set_fragment_request(change.sn, remaining);
        proxy.heartbeat_due |= remaining.is_empty();
        Ok(())
    }

    /// Replaces fragments of another size. The reader holds fragments that were in transit to other
    /// readers when it joined. It gets the whole change instead, and drops those fragments.
    fn replace_fragments(&mut self, index: u32, sn: SequenceNumber, requested: FragmentNumberSet) -> Result<(), Full> {
        let Some(proxy) = self.proxies.get_mut(index) else { return Err(Full) };
        proxy.set_fragment_request(sn, FragmentNumberSet::new(1));
        if requested.is_empty() {
            proxy.heartbeat_due = true;
        } else {
            proxy.requested.insert(sn);
        }
        Ok(())
    }

    fn emit_directed_heartbeat(
        &mut self,
        message: &mut Message<'_>,
        index: u32,
        ctx: &mut Context,
    ) -> Result<(), Full> {
        let Some(proxy) = self.proxies.get_mut(index) else { return Err(Full) };
        let (reader, first_relevant) = (proxy.guid.entity_id, proxy.first_relevant);
        let up_to_date = proxy.acked >= self.window.cursor.sn.prev();
        let heartbeat = self.heartbeat_submessage(reader, first_relevant, up_to_date);
        message.builder.heartbeat(&heartbeat)?;
        ctx.counters.heartbeats_sent += 1;
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.heartbeat_due = false;
        }
        Ok(())
    }
}

enum Repair {
    /// `steps`: number of changes visited to find the end of the gap.
    Gap {
        start: SequenceNumber,
        end: SequenceNumber,
        steps: usize,
    },
    Change(Change),
    Fragment(Change, FragmentNumberSet),
    Heartbeat,
}

impl Repair {
    fn steps(&self) -> usize {
        if let Self::Gap { steps, .. } = self { *steps } else { 0 }
    }
}

/// Returns the addressee of a repair. Repairs name their reader, so that other readers do not count
/// them as duplicates.
fn addressee(proxy: &ReaderProxy, change: &Change) -> (EntityId, Option<takt_wire::Guid>) {
    let directed = !change.directed.readers().is_empty();
    (proxy.guid.entity_id, directed.then_some(proxy.guid))
}

/// Returns the fragment size of a change on a path, for a reader that is sent new changes from
/// `live_from` on.
pub(super) fn fragment_size(path: &Path, live_from: SequenceNumber, change: &Change, more: usize) -> u16 {
    let own = route::fragment_size(path, more);
    if change.sn < live_from { own } else { own.min(change.fragment_size) }
}
