//! How long it takes after a partition has healed until readers have what they are owed: measured, not judged.

use super::{Checker, EndpointId};
use crate::clock::Nanos;
use crate::model;

/// The last heal, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    healed: Option<Nanos>,
    /// Per match when the heal came: what its reader still waits for.
    waiting: Vec<(EndpointId, EndpointId, Wait)>,
    longest: Nanos,
}

/// What ends the recovery of one match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// This sample: the last of those that were written before the heal.
    Number(u32),
    /// Whatever comes next: nothing of what was written before is owed.
    Anything,
}

impl Checker {
    /// The last partition that was on has healed. An earlier heal is forgotten.
    pub fn healed(&mut self, at: Nanos) {
        let mut waiting = Vec::new();
        for (writer, from) in self.endpoints.iter().enumerate().filter(|(_, writer)| writer.is_writer && writer.alive) {
            for (reader, to) in self.endpoints.iter().enumerate().filter(|(_, reader)| !reader.is_writer) {
                if to.alive && from.topic == to.topic && self.must_match(from, to) {
                    let (writer, reader) = (writer as EndpointId, reader as EndpointId);
                    let pair = self.pairs.get(&(writer, reader)).filter(|pair| pair.is_matched());
                    let is_reliable = pair.is_some() && model::is_reliable(&from.qos, &to.qos);
                    match self.newest_owed((writer, reader)) {
                        Some(number) => waiting.push((writer, reader, Wait::Number(number))),
                        None if is_reliable => {}
                        None => waiting.push((writer, reader, Wait::Anything)),
                    }
                }
            }
        }
        self.recovery = Recovery { healed: Some(at), waiting, longest: 0 };
    }

    /// A sample has arrived.
    pub(super) fn recover(&mut self, at: Nanos, writer: EndpointId, reader: EndpointId, number: u32) {
        let Recovery { healed: Some(healed), waiting, longest } = &mut self.recovery else { return };
        let ends = |wait: &Wait| match wait {
            Wait::Number(last) => number >= *last,
            Wait::Anything => true,
        };
        let before = waiting.len();
        waiting.retain(|(from, to, wait)| (*from, *to) != (writer, reader) || !ends(wait));
        if waiting.len() < before {
            *longest = at - *healed;
        }
    }

    /// From the last heal until the last reader had what it was owed; `None` if nothing healed or somebody waits still.
    #[must_use]
    pub fn recovery(&self) -> Option<Nanos> {
        let Recovery { healed, waiting, longest } = &self.recovery;
        (healed.is_some() && waiting.is_empty()).then_some(*longest)
    }
}
