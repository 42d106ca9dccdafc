//! Checks of policies that decide which received samples an application sees, and when.

use std::cmp::Reverse;

use takt_core::{ChangeKind, InstanceState, SampleInfo};
use takt_wire::{Guid, Timestamp};

use super::exact::DRIFT_PARTS;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos};
use crate::model;

/// Lifespan that exceeds the delivery time of a sample without faults.
const LIFESPAN_ENOUGH: Nanos = 6 * super::progress::HEARTBEAT_PERIOD;

/// Tolerance of a purge, for clock drift and for stalled processes that take and purge later.
const PURGE_SLACK: Nanos = 20 * MILLISECOND;

impl Checker {
    /// Reports whether no sample of the writer expires before the reader has taken it.
    pub(super) fn outlives_takes(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let certain = || self.is_calm_at(reader) && self.light && self.steady && self.take_period(reader) == 0;
        let mut lifespans = self.endpoints[writer as usize].policies().filter_map(|qos| qos.lifespan);
        lifespans.all(|lifespan| lifespan >= LIFESPAN_ENOUGH && certain())
    }

    /// Reports whether samples of any writer of the reader expire.
    pub(super) fn expires_at(&self, reader: EndpointId) -> bool {
        let mut writers = self.pairs.keys().filter(|(_, to)| *to == reader);
        writers.any(|(writer, _)| self.endpoints[*writer as usize].qos.lifespan.is_some())
    }

    /// Checks that a sample had not expired when it was taken at the reader's wall clock `wall`.
    pub(super) fn check_lifespan(
        &self,
        wall: Timestamp,
        writer: EndpointId,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        let lifespans = self.endpoints[writer as usize].policies().filter_map(|qos| qos.lifespan);
        let Some(lifespan) = lifespans.max() else { return Ok(()) };
        let age = wall.to_nanos() - info.source_timestamp.to_nanos();
        if age >= lifespan as i64 {
            return Err((
                Rule::Lifespan,
                format!("writer {writer}: a sample of {age} ns, the lifespan is {lifespan} ns"),
            ));
        }
        Ok(())
    }

    /// Reports whether samples of the writer may be dropped because a sample of another writer
    /// overtook them.
    pub(super) fn may_be_overtaken(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let others = || self.pairs.keys().filter(|(other, to)| *to == reader && *other != writer);
        self.orders_by_source(reader) && others().next().is_some()
    }

    fn orders_by_source(&self, reader: EndpointId) -> bool {
        let qos = &self.endpoints[reader as usize].qos;
        qos.by_source && qos.strength.is_none()
    }

    /// Checks that no later sample of the instance was taken before.
    pub(super) fn check_order(
        &mut self,
        reader: EndpointId,
        instance: u8,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        if !self.orders_by_source(reader) {
            return Ok(());
        }
        let (written, writer) = (info.source_timestamp, info.publication);
        let before = self.latest.insert((reader, instance), (written, writer));
        let Some((latest, other)) = before else { return Ok(()) };
        if (written, Reverse(writer)) >= (latest, Reverse(other)) {
            return Ok(());
        }
        // An instance without writers is forgotten, and the next sample is then the first one
        // known.
        if self.is_calm_at(reader)
            && info.no_writers_generation_count == 0
            && !self.has_instance_ended(reader, instance)
        {
            return Err((Rule::SourceOrder, format!("a sample of {written} follows one of {latest}")));
        }
        Ok(())
    }

    /// Reports whether any writer of the reader has ended the instance, or has itself ended.
    fn has_instance_ended(&self, reader: EndpointId, instance: u8) -> bool {
        let ends = |writer: &Endpoint| {
            writer.written.iter().any(|change| change.instance == instance && change.kind != ChangeKind::Alive)
        };
        let writers = self.pairs.iter().filter(|((_, to), _)| *to == reader);
        self.lapsed.contains(&reader)
            || writers.into_iter().any(|((writer, _), pair)| {
                let writer = &self.endpoints[*writer as usize];
                !writer.alive || !pair.is_matched() || ends(writer)
            })
    }

    /// Checks in the end that the last sample of each instance has arrived, if its writer
    /// retransmits.
    pub(super) fn finish_order(&mut self, at: Nanos) {
        let mut lost = None;
        for reader in (0..self.endpoints.len() as EndpointId).filter(|reader| self.orders_by_source(*reader)) {
            for instance in 0..=u8::MAX {
                let Some((_, _, writer, number)) = self.last_of(reader, instance) else { continue };
                let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
                let Some(pair) = self.pairs.get(&(writer, reader)).filter(|pair| pair.is_matched()) else { continue };
                let owed = from.alive
                    && to.alive
                    && model::is_reliable(&from.qos, &to.qos)
                    && self.outlives_takes(writer, reader)
                    && self.takes_in_time(reader)
                    && pair.is_promised(from, number);
                if owed && !pair.arrived.contains(number) {
                    lost.get_or_insert((reader, instance, writer, number));
                }
            }
        }
        if let Some((reader, instance, writer, number)) = lost {
            let text =
                format!("reader {reader} never got the last of instance {instance}: {number} of writer {writer}");
            self.report(at, Rule::Missing, text);
        }
    }

    /// Returns the last change of an instance by any writer of the reader: source timestamp,
    /// writer, and number.
    fn last_of(&self, reader: EndpointId, instance: u8) -> Option<(Timestamp, Reverse<Guid>, EndpointId, u32)> {
        let writers = self.pairs.keys().filter(|(_, to)| *to == reader).map(|(writer, _)| *writer);
        let last = |writer: EndpointId| {
            let from = &self.endpoints[writer as usize];
            let mut changes = from.written.iter().zip(&from.stamps).enumerate().rev();
            let (index, (_, stamp)) = changes.find(|(_, (change, _))| change.instance == instance)?;
            Some((*stamp, Reverse(from.guid), writer, index as u32 + 1))
        };
        writers.filter_map(last).max()
    }

    /// Checks that the previous sample of the instance was shown at least the minimum separation
    /// before.
    pub(super) fn check_separation(
        &mut self,
        at: Nanos,
        reader: EndpointId,
        instance: u8,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        // The time at which a sample was shown is known only for readers that take on data
        // available.
        let separations = self.endpoints[reader as usize].policies().filter_map(|qos| qos.separation);
        let Some(separation) = separations.min() else { return Ok(()) };
        let births = info.disposed_generation_count + info.no_writers_generation_count;
        let before = self.shown.insert((reader, instance), (at, births));
        let Some((last, _)) = before.filter(|(_, before)| *before == births) else { return Ok(()) };
        let soon = at - last < separation - separation / DRIFT_PARTS;
        if soon
            && self.take_period(reader) == 0
            && self.is_calm_at(reader)
            && !self.has_instance_ended(reader, instance)
        {
            let text = format!("instance {instance} after {} ns, the separation is {separation} ns", at - last);
            return Err((Rule::Separation, text));
        }
        Ok(())
    }

    /// Reports whether the reader takes so often that no untaken sample is purged.
    pub(super) fn takes_in_time(&self, reader: EndpointId) -> bool {
        let period = self.take_period(reader);
        let purge = self.endpoints[reader as usize].qos.purge;
        period == 0 || purge.is_none_or(|delay| self.is_calm_at(reader) && delay > period + PURGE_SLACK)
    }

    /// Checks that an instance state change was taken before it had to be purged.
    pub(super) fn check_purge(
        &self,
        wall: Timestamp,
        reader: EndpointId,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        let Some(delay) = self.endpoints[reader as usize].qos.purge else { return Ok(()) };
        let kept = wall.to_nanos() - info.reception_timestamp.to_nanos();
        if info.instance_state != InstanceState::Alive && self.steady && kept > (delay + PURGE_SLACK) as i64 {
            let text = format!("news of {:?} was kept for {kept} ns, {delay} ns are allowed", info.instance_handle);
            return Err((Rule::Lifecycle, text));
        }
        Ok(())
    }
}
