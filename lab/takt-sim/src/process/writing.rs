//! Writes of a simulated application: samples one by one or in batches, disposals and
//! unregistrations of instances, and coherent sets.

use takt_core::{ChangeKind, Error, NewChange, WriteError};
use takt_wire::Guid;

use super::{Endpoint, Moment, Process};
use crate::check::{Change, Checker, Rule};
use crate::sample::{self, Identity, SAMPLE_LEN_MIN};
use crate::scenario::TopicPlan;

/// Probabilities in parts of a million: an open coherent set ends, a coherent set begins, and a
/// sample is directed to one reader.
const SET_ENDS: u32 = 250_000;
const SET_BEGINS: u32 = 400_000;
const IS_DIRECTED: u32 = 300_000;

/// A change to write.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    identity: Identity,
    kind: ChangeKind,
    payload_len: usize,
    /// Reader to which the change is directed.
    only: Option<Guid>,
}

impl Process {
    /// Begins or ends a coherent set at random. If the process writes no more (`is_draining`), it
    /// ends an open set.
    pub fn toggle_coherent_set(&mut self, clock: Moment<'_>, is_draining: bool, checker: &mut Checker) {
        let (Some(core), Some((presentation, publisher, _))) = (&mut self.core, self.group) else { return };
        if !presentation.coherent_access {
            return;
        }
        let result = match self.open_set {
            Some(set) if is_draining || self.rng.chance(SET_ENDS) => {
                checker.end_set(set);
                self.open_set = None;
                core.end_coherent_changes(clock.local(), publisher)
            }
            None if !is_draining && self.rng.chance(SET_BEGINS) => {
                self.open_set = Some(checker.begin_set());
                core.begin_coherent_changes(publisher)
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            checker.report(clock.now, Rule::CallFailed, format!("coherent changes: {error}"));
        }
    }

    /// Returns the next change of a writer: a sample, or with a probability of `endings` in a
    /// million a disposal or unregistration of an instance. `None` if the writer waits for space.
    pub fn draft(&mut self, at: usize, (topic, endings): (&TopicPlan, u32), checker: &Checker) -> Option<Draft> {
        let core = self.core.as_mut()?;
        let Some(Endpoint::Writer { handle, id, blocked: None }) = self.endpoints[at] else { return None };
        let keys = u64::from(topic.instances.max(1));
        let instance = if topic.instances == 0 { 0 } else { 1 + self.rng.below(keys) as u8 };
        let identity = Identity { writer: id, number: checker.next_number(id), instance };
        let kind = if endings > 0 && self.rng.chance(endings) {
            *self.rng.pick(&[ChangeKind::Disposed, ChangeKind::Unregistered, ChangeKind::DisposedUnregistered])
        } else {
            ChangeKind::Alive
        };
        let payload_len = match kind {
            // DATA pads payloads to a multiple of four octets, so the receiver sees that length.
            ChangeKind::Alive => {
                let len = self.rng.between(topic.sizes.0 as u64, topic.sizes.1 as u64) as usize;
                len.max(SAMPLE_LEN_MIN).next_multiple_of(4)
            }
            _ => sample::KEY_LEN,
        };
        let directed = kind == ChangeKind::Alive && checker.directs(id) && self.rng.chance(IS_DIRECTED);
        let readers = if directed { core.matched_subscriptions(handle).unwrap_or_default() } else { Vec::new() };
        let only = if readers.is_empty() { None } else { Some(*self.rng.pick(&readers)) };
        Some(Draft { identity, kind, payload_len, only })
    }

    /// Reports whether a change would replace an unsent change of a KEEP_LAST history.
    pub fn displaces_unsent(&mut self, at: usize, draft: &Draft) -> bool {
        let (Some(core), Some(Endpoint::Writer { handle, .. })) = (&mut self.core, self.endpoints[at]) else {
            return false;
        };
        core.would_replace_unsent(handle, sample::key_hash(draft.identity.instance)).unwrap_or(false)
    }

    /// Writes a change. Returns false if the history is full; the writer then waits for space.
    pub fn write(&mut self, at: usize, draft: &Draft, clock: Moment<'_>, checker: &mut Checker) -> bool {
        let Some(core) = &mut self.core else { return false };
        let Some(Endpoint::Writer { handle, id, blocked }) = &mut self.endpoints[at] else { return false };
        let &Draft { identity, kind, payload_len, only } = draft;
        let instance = identity.instance;
        let change = NewChange {
            kind,
            key_hash: sample::key_hash(instance),
            source_timestamp: None,
            destinations: only.as_slice(),
            payload_len,
        };
        let result = core.write(clock.local(), *handle, &change, |slot| {
            match kind {
                ChangeKind::Alive => sample::fill(identity, slot),
                _ => sample::fill_key(instance, slot),
            }
            Some(payload_len)
        });
        match result {
            Ok(sn) => {
                let to = only.and_then(|guid| checker.id_of(guid));
                checker.wrote(clock.now, clock.wall(), *id, Change { instance, kind, to, len: payload_len });
                checker.assign_sequence_number(*id, sn.0, self.open_set);
            }
            Err(WriteError::WouldBlock) => {
                *blocked = Some(payload_len);
                checker.writer_blocked(*id);
            }
            // A TRANSIENT_LOCAL writer with a full history or memory never gets space again, so it
            // stays blocked.
            Err(WriteError::Refused(Error::OutOfResources {
                limit: "max_samples" | "default_max_samples" | "endpoint_memory_bytes",
                ..
            })) => *blocked = Some(payload_len),
            Err(error) => checker.report(clock.now, Rule::CallFailed, format!("writer {id} cannot write: {error:?}")),
        }
        blocked.is_none()
    }

    /// Postpones `count` samples of a batch, including the one that found no space.
    pub fn postpone(&mut self, at: usize, count: u32) {
        self.postponed[at] = count;
    }

    /// Reports whether samples of an earlier batch are postponed.
    #[must_use]
    pub fn is_postponed(&self, at: usize) -> bool {
        self.postponed[at] > 0
    }

    /// Returns the number of postponed samples of a batch, or one without a batch.
    pub fn resume(&mut self, at: usize) -> u32 {
        std::mem::take(&mut self.postponed[at]).max(1)
    }
}
