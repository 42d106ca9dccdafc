//! Applications that read before they take. They read all or only unread samples, and take
//! everything or one instance.

use takt_core::{InstanceStates, SampleInfo, SampleStates, Selector, ViewStates, ranks};

use super::taking::each;
use super::{Endpoint, Moment, Process};
use crate::check::{Checker, ReadKind, Rule};

/// Every read whose number is a multiple of this one takes everything.
pub const TAKES_EVERY: u32 = 4;

impl Process {
    /// Reads the samples of a reader, and takes all, one instance or none of them.
    pub fn read_and_take(&mut self, at: usize, clock: Moment<'_>, checker: &mut Checker) {
        self.read_counts[at] += 1;
        if self.rng.chance(500_000) {
            self.read(at, ReadKind::Unread, clock, checker);
        }
        let found = self.read(at, ReadKind::Everything, clock, checker);
        if self.read_counts[at].is_multiple_of(TAKES_EVERY) || self.rng.chance(200_000) {
            self.read(at, ReadKind::TakeAll, clock, checker);
        } else if !found.is_empty() && self.rng.chance(400_000) {
            let instance = self.rng.pick(&found).instance_handle;
            self.read(at, ReadKind::Take(instance), clock, checker);
        }
    }

    fn read(&mut self, at: usize, pass: ReadKind, clock: Moment<'_>, checker: &mut Checker) -> Vec<SampleInfo> {
        let mut found = Vec::new();
        let Some(core) = &mut self.core else { return found };
        let Some(Endpoint::Reader { handle, id }) = self.endpoints[at] else { return found };
        let selector = match pass {
            ReadKind::Unread => Selector::READ.in_states(SampleStates::NOT_READ, ViewStates::ANY, InstanceStates::ANY),
            ReadKind::Everything => Selector::READ,
            ReadKind::Take(instance) => Selector::TAKE.of(instance),
            ReadKind::TakeAll => Selector::TAKE,
        };
        let result = each(core, clock, handle, (selector, usize::MAX), |sample| {
            found.push(sample.info);
            let last = found.len() - 1;
            ranks::link(&mut found, last, sample.previous);
            if selector.take {
                checker.took(clock.now, clock.wall(), id, sample);
            }
        });
        if let Err(error) = result.and(core.end_read(clock.local(), handle)) {
            checker.report(clock.now, Rule::CallFailed, format!("reader {id}, {pass:?}: {error}"));
        }
        ranks::compute_ranks(&mut found);
        checker.read_or_took(clock.now, id, pass, &found);
        checker.end_access(clock.now);
        found
    }
}
