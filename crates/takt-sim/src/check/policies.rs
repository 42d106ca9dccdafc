//! Policies that decide which samples of all that arrive an application sees, and when.

use std::cmp::Reverse;

use takt_core::{ChangeKind, InstanceState, SampleInfo};
use takt_wire::{Guid, Timestamp};

use super::exact::DRIFT_PARTS;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos};
use crate::model;

/// A lifespan as long as this is longer than it takes to deliver a sample where nothing goes wrong.
const LIFESPAN_ENOUGH: Nanos = 6 * super::progress::HEARTBEAT_PERIOD;

/// Clocks drift, and a process that is stalled takes and purges later.
const PURGE_SLACK: Nanos = 20 * MILLISECOND;

impl Checker {
    /// Whether no sample of the writer expires before the reader has taken it.
    pub(super) fn lives_long_enough(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let certain = || self.is_calm_at(reader) && self.light && self.steady && self.take_period(reader) == 0;
        let mut lifespans = self.endpoints[writer as usize].policies().filter_map(|qos| qos.lifespan);
        lifespans.all(|lifespan| lifespan >= LIFESPAN_ENOUGH && certain())
    }

    /// Whether samples of some writer of the reader expire.
    pub(super) fn expires_at(&self, reader: EndpointId) -> bool {
        let mut writers = self.pairs.keys().filter(|(_, to)| *to == reader);
        writers.any(|(writer, _)| self.endpoints[*writer as usize].qos.lifespan.is_some())
    }

    /// A sample was taken when the reader's wall clock showed `wall`: was it of use still?
    pub(super) fn judge_lifespan(
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

    /// Whether samples of the writer may be dropped since one of another writer overtook them.
    pub(super) fn may_come_late(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let others = || self.pairs.keys().filter(|(other, to)| *to == reader && *other != writer);
        self.goes_by_source(reader) && others().next().is_some()
    }

    fn goes_by_source(&self, reader: EndpointId) -> bool {
        let qos = &self.endpoints[reader as usize].qos;
        qos.by_source && qos.strength.is_none()
    }

    /// A sample was taken: was no later one of its instance taken before?
    pub(super) fn judge_order(
        &mut self,
        reader: EndpointId,
        instance: u8,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        if !self.goes_by_source(reader) {
            return Ok(());
        }
        let (written, writer) = (info.source_timestamp, info.publication);
        let before = self.latest.insert((reader, instance), (written, writer));
        let Some((latest, other)) = before else { return Ok(()) };
        if (written, Reverse(writer)) >= (latest, Reverse(other)) {
            return Ok(());
        }
        // An instance that has no writers is forgotten, and what comes then is the first that is known of it.
        if self.is_calm_at(reader) && info.no_writers_generation_count == 0 && !self.some_end(reader, instance) {
            return Err((Rule::SourceOrder, format!("a sample of {written} follows one of {latest}")));
        }
        Ok(())
    }

    /// Whether a writer of the reader has ever ended the instance, or has gone.
    fn some_end(&self, reader: EndpointId, instance: u8) -> bool {
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

    /// In the end the last sample of each instance has arrived, if it comes from somebody who repeats it.
    pub(super) fn finish_order(&mut self, at: Nanos) {
        let mut lost = None;
        for reader in (0..self.endpoints.len() as EndpointId).filter(|reader| self.goes_by_source(*reader)) {
            for instance in 0..=u8::MAX {
                let Some((_, _, writer, number)) = self.last_of(reader, instance) else { continue };
                let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
                let Some(pair) = self.pairs.get(&(writer, reader)).filter(|pair| pair.is_matched()) else { continue };
                let owed = from.alive
                    && to.alive
                    && model::is_reliable(&from.qos, &to.qos)
                    && self.lives_long_enough(writer, reader)
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

    /// The last change of an instance that any writer of the reader ever made: when, whose, and its number.
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

    /// A sample was taken: was the last one of its instance shown long enough before?
    pub(super) fn judge_separation(
        &mut self,
        at: Nanos,
        reader: EndpointId,
        instance: u8,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        // Only what is taken at once tells when it was shown.
        let separations = self.endpoints[reader as usize].policies().filter_map(|qos| qos.separation);
        let Some(separation) = separations.min() else { return Ok(()) };
        let births = info.disposed_generation_count + info.no_writers_generation_count;
        let before = self.shown.insert((reader, instance), (at, births));
        let Some((last, _)) = before.filter(|(_, before)| *before == births) else { return Ok(()) };
        let soon = at - last < separation - separation / DRIFT_PARTS;
        if soon && self.take_period(reader) == 0 && self.is_calm_at(reader) && !self.some_end(reader, instance) {
            let text = format!("instance {instance} after {} ns, the separation is {separation} ns", at - last);
            return Err((Rule::Separation, text));
        }
        Ok(())
    }

    /// Whether the reader takes so often that nothing is purged that it has not taken.
    pub(super) fn takes_in_time(&self, reader: EndpointId) -> bool {
        let period = self.take_period(reader);
        let purge = self.endpoints[reader as usize].qos.purge;
        period == 0 || purge.is_none_or(|delay| self.is_calm_at(reader) && delay > period + PURGE_SLACK)
    }

    /// News of the end of an instance was taken: had it not to be gone already?
    pub(super) fn judge_purge(
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
