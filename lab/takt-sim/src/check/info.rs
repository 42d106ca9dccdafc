//! Checks of SampleInfo: source timestamp, view state and generation counts.

use takt_core::{ChangeKind, InstanceState, SampleInfo, ViewState};
use takt_wire::Timestamp;

use super::{Checker, EndpointId, Rule};
use crate::clock::MILLISECOND;
use crate::sample;

/// Tolerance of a timestamp in nanoseconds: its resolution is 2^-32 s, and a clock advances by one
/// nanosecond.
const STAMP_SLACK: u64 = 1_000;

/// Maximum time from the arrival of a sample until a reader that takes on data available has taken
/// it, without faults.
const TAKEN_WITHIN: i64 = 5 * MILLISECOND as i64;

/// State of an instance at its last read or take.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewedInstance {
    pass: u64,
    generation: u32,
    state: InstanceState,
    view: ViewState,
}

impl Checker {
    /// Checks the source timestamp of a taken sample.
    pub(super) fn check_timestamps(
        &self,
        wall: Timestamp,
        writer: EndpointId,
        reader: EndpointId,
        number: u32,
        info: &SampleInfo,
    ) -> Result<(), (Rule, String)> {
        let from = &self.endpoints[writer as usize];
        let stamps = if from.qos.by_source { &from.stamps } else { &from.walls };
        let written = stamps[number as usize - 1];
        if written.to_nanos().abs_diff(info.source_timestamp.to_nanos()) > STAMP_SLACK {
            let text = format!("number {number} of writer {writer} bears {}, not {written}", info.source_timestamp);
            return Err((Rule::Info, text));
        }
        let age = wall.to_nanos() - info.reception_timestamp.to_nanos();
        let is_at_once =
            self.exact && self.take_period(reader) == 0 && self.endpoints[reader as usize].qos.separation.is_none();
        if is_at_once && !(0..=TAKEN_WITHIN).contains(&age) {
            let text = format!("number {number} of writer {writer} arrived {age} ns before it was taken");
            return Err((Rule::Info, text));
        }
        Ok(())
    }

    /// Checks that an instance is NEW exactly if its current generation has not been seen before.
    pub(super) fn check_view(&mut self, reader: EndpointId, info: &SampleInfo) -> Result<(), (Rule, String)> {
        let Some(instance) = sample::instance_of(&info.instance_handle.0) else { return Ok(()) };
        let qos = &self.endpoints[reader as usize].qos;
        // Reads and checks of limits see instances too, a purge forgets them, and an expired or
        // delayed sample may end an instance unseen.
        let hides = self.reads || qos.purge.is_some() || qos.separation.is_some() || self.expires_at(reader);
        if hides || self.has_limits(reader) || self.uses_presentation() || self.loses_writers(reader) {
            return Ok(());
        }
        // The generation of the instance now: the instance may have been written again since this
        // sample arrived.
        let generation = info.generation() + info.absolute_generation_rank;
        let sight = ViewedInstance { pass: self.passes, generation, state: info.instance_state, view: info.view_state };
        let is_slow = self.take_period(reader) > 0;
        let before = self.viewed_instances.insert((reader, instance), sight);
        let expected = match before {
            None => ViewState::New,
            Some(before) if before.pass == sight.pass => before.view,
            Some(before) if before.state == InstanceState::Alive && before.generation == sight.generation => {
                ViewState::NotNew
            }
            Some(before) if before.state == InstanceState::Alive => ViewState::New,
            Some(_) if !info.valid_data => return Ok(()),
            // The rest of an instance that had ended when a part of it was taken, or the first
            // sample after it was forgotten.
            Some(before) if self.takes_parts && before.generation == sight.generation => return Ok(()),
            // An instance is forgotten when it has ended for good, and its counts then restart at
            // zero. A reader that takes rarely may miss this. The first change afterwards may be
            // another end, which is not seen if a later one in the same pass replaces it.
            Some(before) if is_slow || sight.generation > before.generation => ViewState::New,
            Some(_) if self.endings(reader, instance) >= info.generation() as usize => ViewState::New,
            Some(before) => {
                return Err((Rule::Info, format!("{info:?} has come back, its generation is {}", before.generation)));
            }
        };
        // A sample that a later one of another writer overtook is dropped. Its writer is alive, so
        // an instance without writers is alive again and new (DDS 1.4 §2.2.2.5.1.3). The ranks of
        // the remaining samples do not count that generation.
        let mut writers = self.pairs.keys().filter(|(_, to)| *to == reader);
        let may_revive_unseen = self.endpoints[reader as usize].qos.by_source && writers.nth(1).is_some();
        let is_revived = may_revive_unseen && (expected, info.view_state) == (ViewState::NotNew, ViewState::New);
        if info.view_state != expected && !is_revived {
            return Err((Rule::Info, format!("{info:?} must be {expected:?}, it was {before:?}")));
        }
        Ok(())
    }

    /// Returns how often the writers of a reader have ended an instance.
    fn endings(&self, reader: EndpointId, instance: u8) -> usize {
        let writers = self.pairs.keys().filter(|(_, to)| *to == reader);
        let changes = writers.flat_map(|(writer, _)| &self.endpoints[*writer as usize].written);
        changes.filter(|change| change.instance == instance && change.kind != ChangeKind::Alive).count()
    }
}
