//! Model of policies that are altered at run time.

use takt_wire::Guid;
use takt_wire::qos::UserData;

use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::Nanos;
use crate::model;
use crate::partitions;
use crate::process::user_data;
use crate::scenario::QosPlan;

impl Endpoint {
    /// Returns the current and all former policies of the endpoint.
    pub(super) fn policies(&self) -> impl Iterator<Item = &QosPlan> {
        self.past.iter().chain([&self.qos])
    }

    /// Reports whether the strength has changed. The checker does not know when other processes
    /// learn of the change.
    pub(super) fn has_other_strengths(&self) -> bool {
        self.past.iter().any(|past| past.strength != self.qos.strength)
    }

    /// Returns the time from which a sample may be sent: that of the write, or of the end of a
    /// suspension.
    pub(super) fn free_at(&self, number: u32) -> Nanos {
        let written = self.written_at[number as usize - 1];
        let before = self.suspended.iter().take_while(|(from, _)| *from <= written);
        before.last().map_or(written, |(_, until)| written.max(*until))
    }

    /// Returns the policies that were valid within `time` before or after a point in time.
    pub(super) fn policies_around(&self, at: Nanos, time: Nanos) -> impl Iterator<Item = &QosPlan> {
        let begins = [0].into_iter().chain(self.altered.iter().copied());
        let ends = self.altered.iter().copied().chain([Nanos::MAX]);
        let periods = self.policies().zip(begins.zip(ends));
        let is_near = move |(begin, end): (Nanos, Nanos)| begin <= at + time && at <= end.saturating_add(time);
        periods.filter(move |(_, period)| is_near(*period)).map(|(qos, _)| qos)
    }

    /// Reports whether the content filter has changed.
    pub(super) fn has_other_filters(&self) -> bool {
        self.past.iter().any(|past| past.filter != self.qos.filter)
    }

    /// Reports whether the endpoint has ever been in another partition.
    pub(super) fn has_moved(&self) -> bool {
        self.past.iter().any(|past| past.partition != self.qos.partition)
    }
}

/// Reports whether a writer and a reader may match, and have ever had compatible policies, which
/// other participants may still know.
pub(super) fn ever_matched(from: &Endpoint, to: &Endpoint) -> bool {
    from.might_match(to, 0)
        && from.policies().any(|offered| to.policies().any(|requested| model::matches(offered, requested)))
}

impl Checker {
    /// Returns the current policies of an endpoint.
    #[must_use]
    pub fn qos_of(&self, id: EndpointId) -> QosPlan {
        self.endpoints[id as usize].qos
    }

    /// Records that an application altered the policies of an endpoint.
    pub fn altered(&mut self, id: EndpointId, qos: QosPlan) {
        let endpoint = &mut self.endpoints[id as usize];
        let before = std::mem::replace(&mut endpoint.qos, qos);
        endpoint.past.push(before);
        endpoint.altered.push(self.now);
        if let Some(filter) = qos.filter.filter(|_| qos.filter != before.filter) {
            let of_reader = self.pairs.iter_mut().filter(|((_, reader), _)| *reader == id);
            of_reader.for_each(|(_, pair)| pair.add_filter(filter));
        }
        if before.partition != qos.partition && !endpoint.is_writer {
            // A match that persists is now in other partitions.
            for ((writer, _), pair) in self.pairs.iter_mut().filter(|((_, reader), _)| *reader == id) {
                pair.change_partition(qos.partition, self.endpoints[*writer as usize].written.len() as u32);
            }
        }
    }

    /// Records that an application suspended or resumed the publications of a writer.
    pub fn suspended(&mut self, id: EndpointId, is_suspended: bool) {
        let now = self.now;
        let periods = &mut self.endpoints[id as usize].suspended;
        match periods.last_mut().filter(|(_, until)| *until == Nanos::MAX) {
            Some((_, until)) if !is_suspended => *until = now,
            None if is_suspended => periods.push((now, Nanos::MAX)),
            _ => {}
        }
    }

    /// Reports whether no fault has occurred so far, and no application has altered the reader or
    /// its writers.
    pub(super) fn is_calm_at(&self, reader: EndpointId) -> bool {
        let is_untouched = |id: EndpointId| {
            let endpoint = &self.endpoints[id as usize];
            endpoint.past.is_empty() && endpoint.suspended.is_empty() && !self.is_ignored(id)
        };
        let mut writers = self.pairs.keys().filter(|(_, to)| *to == reader);
        let is_plain = is_untouched(reader) && writers.all(|(writer, _)| is_untouched(*writer));
        self.calm || self.sound && is_plain && !self.ignores_any(reader)
    }

    /// Reports whether policies of an endpoint that decide its matches were altered, or a match is
    /// ignored.
    pub(super) fn may_unmatch(&self, id: EndpointId) -> bool {
        let of = &self.endpoints[id as usize];
        let decides = |qos: &QosPlan| (qos.partition, qos.deadline, qos.budget);
        of.past.iter().any(|past| decides(past) != decides(&of.qos)) || self.is_ignored(id) || self.ignores_any(id)
    }

    /// Reports whether alterations end matches of a reader, so that its instances may be forgotten
    /// between two checks.
    pub(super) fn loses_writers(&self, reader: EndpointId) -> bool {
        let altered = |(writer, _): &(EndpointId, EndpointId)| !self.endpoints[*writer as usize].past.is_empty();
        let mut of_reader = self.pairs.keys().filter(|(_, to)| *to == reader);
        !self.endpoints[reader as usize].past.is_empty() || of_reader.any(altered) || self.ignores_any(reader)
    }

    /// Reports whether the endpoints must match in the end.
    pub(super) fn must_match(&self, from: &Endpoint, to: &Endpoint) -> bool {
        from.may_match(to)
            && model::matches(&from.qos, &to.qos)
            && !self.ignored_entities.separates(from, to)
            && !self.is_separated(from.guid.prefix, to.guid.prefix, 0)
    }

    /// Reports whether a sample was written in a partition in which the reader has been, or may be
    /// history there.
    pub(super) fn is_in_reach(&self, from: &Endpoint, to: &Endpoint, number: u32) -> bool {
        let written_in = from.written_in[number as usize - 1];
        to.policies().any(|qos| partitions::have_common(qos.partition, written_in))
            || (from.qos.transient_local && to.qos.transient_local)
    }

    /// Checks in the end that an endpoint knows the current USER_DATA of the endpoints matched with
    /// it.
    pub fn finish_user_data(&mut self, at: Nanos, id: EndpointId, peer: Guid, known: Option<&UserData>) {
        let Some(&of) = self.by_guid.get(&peer).filter(|_| !self.receives_nothing_from(id, peer)) else { return };
        let expected = user_data(&self.endpoints[of as usize].qos);
        if known.is_some_and(|known| *known != expected) {
            let text = format!("endpoint {id} knows {known:?} of endpoint {of}, which has {expected:?}");
            self.report(at, Rule::Matching, text);
        }
    }
}
