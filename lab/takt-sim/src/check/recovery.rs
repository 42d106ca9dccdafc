//! Measurement of the recovery time: from the end of a partition until readers have all samples
//! that they must receive.

use super::{Checker, EndpointId};
use crate::clock::Nanos;
use crate::model;

/// Last end of a partition, and the recovery since then.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    healed: Option<Nanos>,
    /// For each match at the end of the partition: the sample that its reader waits for.
    waiting: Vec<(EndpointId, EndpointId, RecoveryEvent)>,
    longest: Nanos,
}

/// Event that completes the recovery of one match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryEvent {
    /// Arrival of this sample, the last one written before the end of the partition.
    Number(u32),
    /// Arrival of any sample, since no earlier sample is missing.
    Anything,
}

impl Checker {
    /// Records the end of the last active partition. Earlier ends are discarded.
    pub fn healed(&mut self, at: Nanos) {
        let mut waiting = Vec::new();
        for (writer, from) in self.endpoints.iter().enumerate().filter(|(_, writer)| writer.is_writer && writer.alive) {
            for (reader, to) in self.endpoints.iter().enumerate().filter(|(_, reader)| !reader.is_writer) {
                if to.alive && from.topic == to.topic && self.must_match(from, to) {
                    let (writer, reader) = (writer as EndpointId, reader as EndpointId);
                    let pair = self.pairs.get(&(writer, reader)).filter(|pair| pair.is_matched());
                    let is_reliable = pair.is_some() && model::is_reliable(&from.qos, &to.qos);
                    match self.newest_owed((writer, reader)) {
                        Some(number) => waiting.push((writer, reader, RecoveryEvent::Number(number))),
                        None if is_reliable => {}
                        None => waiting.push((writer, reader, RecoveryEvent::Anything)),
                    }
                }
            }
        }
        self.recovery = Recovery { healed: Some(at), waiting, longest: 0 };
    }

    /// Records the arrival of a sample.
    pub(super) fn recover(&mut self, at: Nanos, writer: EndpointId, reader: EndpointId, number: u32) {
        let Recovery { healed: Some(healed), waiting, longest } = &mut self.recovery else { return };
        let ends = |wait: &RecoveryEvent| match wait {
            RecoveryEvent::Number(last) => number >= *last,
            RecoveryEvent::Anything => true,
        };
        let before = waiting.len();
        waiting.retain(|(from, to, wait)| (*from, *to) != (writer, reader) || !ends(wait));
        if waiting.len() < before {
            *longest = at - *healed;
        }
    }

    /// Returns the time from the last end of a partition until all readers had their samples;
    /// `None` without a partition, or if a reader still waits.
    #[must_use]
    pub fn recovery(&self) -> Option<Nanos> {
        let Recovery { healed, waiting, longest } = &self.recovery;
        (healed.is_some() && waiting.is_empty()).then_some(*longest)
    }
}
