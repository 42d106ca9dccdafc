//! Checks of the samples that a reader takes.

use takt_core::{ChangeKind, SampleRef};
use takt_wire::{GuidPrefix, Timestamp};

use super::alter::ever_matched;
use super::{Checker, EndpointId, Rule};
use crate::clock::Nanos;
use crate::model;
use crate::sample::{self, Identity};
use crate::scenario::QosPlan;

impl Checker {
    /// Checks and records a sample or an instance state change that a reader took.
    pub fn took(&mut self, at: Nanos, wall: Timestamp, reader: EndpointId, found: &SampleRef<'_>) {
        self.taken += 1;
        self.endpoints[reader as usize].took_at = at;
        self.record_state(at, reader, found);
        let verdict = self.check_view(reader, &found.info);
        let verdict = verdict.and_then(|()| {
            if found.info.valid_data {
                self.check_sample(at, wall, reader, found)
                    .map(|identity| self.recover(at, identity.writer, reader, identity.number))
            } else {
                self.check_state_change(wall, reader, found)
            }
        });
        if let Err((rule, text)) = verdict {
            self.report(at, rule, format!("reader {reader}: {text}"));
        }
    }

    fn check_sample(
        &mut self,
        at: Nanos,
        wall: Timestamp,
        reader: EndpointId,
        found: &SampleRef<'_>,
    ) -> Result<Identity, (Rule, String)> {
        let (payload, publication) = (found.payload, found.info.publication);
        let invented = |text: String| (Rule::UnknownSample, text);
        let Some(identity) = sample::identify(payload, &mut self.scratch) else {
            return Err(invented(format!("{} octets that nobody wrote", payload.len())));
        };
        let Some(&writer) = self.by_guid.get(&publication).filter(|writer| **writer == identity.writer) else {
            return Err(invented(format!("{identity:?} comes from {publication:?}")));
        };
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let index = identity.number.wrapping_sub(1) as usize;
        let written =
            from.written.get(index).filter(|it| it.kind == ChangeKind::Alive && it.instance == identity.instance);
        let Some(&written) =
            written.filter(|_| self.number_of(writer, found.info.sequence_number.0) == Some(identity.number))
        else {
            return Err(invented(format!("{identity:?} was never written")));
        };
        if let Some(only) = written.to.filter(|only| *only != reader) {
            return Err(invented(format!("{identity:?} is for reader {only}")));
        }
        if found.info.instance_handle.0 != sample::key_hash(identity.instance) {
            return Err(invented(format!("{identity:?} as one of {:?}", found.info.instance_handle)));
        }
        self.check_grants(writer, reader)?;
        if from.topic != to.topic || !ever_matched(from, to) || !self.is_in_reach(from, to, identity.number) {
            return Err(invented(format!("{identity:?} is not for this reader")));
        }
        let wants = |qos: &QosPlan| model::wants(qos, identity.number, identity.instance);
        // Samples in the cache stay when the filter changes. Without losses, this reader takes
        // samples at their arrival.
        let holds_nothing = self.exact && self.take_period(reader) == 0;
        if !(wants(&to.qos) || !holds_nothing && to.past.iter().any(wants)) {
            return Err((Rule::Filter, format!("{identity:?} passes the filter {:?}", to.qos.filter)));
        }
        let by_instance = to.qos.separation.is_some() || self.is_taken_by_instance();
        let pair = self.pairs.entry((writer, reader)).or_default();
        let number = identity.number;
        if !pair.arrived.insert(number) {
            return Err((Rule::Duplicate, format!("{identity:?}")));
        }
        let last = match pair.advance(number, identity.instance, by_instance) {
            Ok(last) => last,
            Err(last) => return Err((Rule::Order, format!("{identity:?} behind number {last}"))),
        };
        let precedes = |number: &u32| !by_instance || from.written[*number as usize - 1].instance == identity.instance;
        let skipped = (last + 1..number).filter(precedes).find(|number| pair.is_promised(from, *number));
        let complete = model::is_complete(&from.qos, &to.qos) && self.shows_all(writer, reader) && !self.drops_sets();
        if let Some(skipped) = skipped.filter(|_| complete) {
            return Err((Rule::Gap, format!("{identity:?} where number {skipped} must come")));
        }
        self.record_taken(reader, writer, number);
        self.check_order(reader, identity.instance, &found.info)?;
        self.check_separation(at, reader, identity.instance, &found.info)?;
        self.check_lifespan(wall, writer, &found.info)?;
        self.check_timestamps(wall, writer, reader, number, &found.info)?;
        self.check_time(at, writer, reader, number)?;
        self.check_owner(writer, reader, &identity)?;
        self.check_ignored(writer, reader, number)?;
        Ok(identity)
    }

    /// Reports whether a participant may still have to send, since one of its readers, or a reader
    /// of its writers, has taken something since `since`. A full reader of coherent sets may
    /// progress by one set per take, while others wait for space.
    #[must_use]
    pub fn is_at_work(&self, prefix: GuidPrefix, since: Nanos) -> bool {
        let of = |id: EndpointId| &self.endpoints[id as usize];
        let is_concerned = |writer, reader| of(writer).guid.prefix == prefix || of(reader).guid.prefix == prefix;
        self.pairs.keys().any(|&(writer, reader)| is_concerned(writer, reader) && of(reader).took_at >= since)
    }

    /// Reports whether a writer's history may stay full although all readers have received
    /// everything: it keeps samples for late joiners, or waits for readers that ignore or refuse
    /// it.
    #[must_use]
    pub fn may_stay_full(&self, writer: EndpointId) -> bool {
        let of = &self.endpoints[writer as usize];
        of.qos.transient_local || !of.is_entitled || self.is_ignored(writer)
    }

    /// Reports whether resource limits apply to this reader.
    #[must_use]
    pub fn has_limits(&self, reader: EndpointId) -> bool {
        let qos = &self.endpoints[reader as usize].qos;
        qos.max_samples.is_some() || qos.keep_last.is_some()
    }

    /// Checks the number of samples that a reader holds in total and of its fullest instance.
    pub fn held(&mut self, at: Nanos, reader: EndpointId, samples: u32, of_one_instance: u32) {
        let qos = self.endpoints[reader as usize].qos;
        let over = |limit: Option<u32>, count: u32| limit.is_some_and(|limit| count > limit);
        if over(qos.max_samples, samples) || over(qos.keep_last, of_one_instance) {
            let text = format!("reader {reader} held {samples} samples, {of_one_instance} of one instance: {qos:?}");
            self.report(at, Rule::Limits, text);
        }
    }
}
