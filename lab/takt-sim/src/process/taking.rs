//! Takes of an application: all samples, or a batch of samples at a time.

use takt_core::{Participant, ReadCursor, ReaderHandle, Selector, SubscriberHandle};
use takt_wire::qos::{AccessScope, Presentation};

use super::{Endpoint, Moment, Process};
use crate::check::{Checker, Rule};

impl Process {
    /// Takes at most `most` samples of a reader, or with PRESENTATION scope GROUP all samples of
    /// all readers. Reports whether there may be more.
    pub fn take(&mut self, at: usize, most: usize, clock: Moment<'_>, checker: &mut Checker) -> bool {
        let has_more = match self.group {
            Some((presentation, _, subscriber)) if presentation.access_scope == AccessScope::Group => {
                self.access(presentation, subscriber, clock, checker);
                false
            }
            _ => self.take_one(at, most, clock, checker) == most,
        };
        checker.end_access(clock.now);
        has_more
    }

    /// Takes all samples of the readers in the order that a group access prescribes.
    fn access(
        &mut self,
        presentation: Presentation,
        subscriber: SubscriberHandle,
        clock: Moment<'_>,
        checker: &mut Checker,
    ) {
        let Some(core) = &mut self.core else { return };
        let begun = core.begin_access(subscriber);
        if presentation.ordered_access {
            let readers = core.readers_with(subscriber, &Selector::READ).unwrap_or_default();
            for reader in readers {
                let id = self.endpoints.iter().flatten().find_map(|endpoint| endpoint.reader_id(reader));
                let found = core.read_next(clock.local(), reader, Selector::TAKE, &mut ReadCursor::default());
                if let (Some(id), Ok(Some(found))) = (id, found) {
                    checker.took(clock.now, clock.wall(), id, &found);
                }
            }
        }
        for at in 0..self.endpoints.len() {
            self.take_one(at, usize::MAX, clock, checker);
        }
        let Some(core) = &mut self.core else { return };
        let ended = core.end_access(clock.local(), subscriber);
        if let Err(error) = begun.and(ended) {
            checker.report(clock.now, Rule::CallFailed, format!("no access: {error}"));
        }
    }

    /// Takes at most `most` samples of a reader and returns their number.
    fn take_one(&mut self, at: usize, most: usize, clock: Moment<'_>, checker: &mut Checker) -> usize {
        let Some(core) = &mut self.core else { return 0 };
        let Some(Endpoint::Reader { handle, id }) = self.endpoints[at] else { return 0 };
        if checker.has_limits(id) {
            let mut held = HeldSamples::default();
            let all = each(core, clock, handle, (Selector::READ, usize::MAX), |found| held.count(found));
            if all.is_ok() {
                checker.held(clock.now, id, held.samples, held.of_one_instance());
            }
        }
        let taken = each(core, clock, handle, (Selector::TAKE, most), |found| {
            checker.took(clock.now, clock.wall(), id, found);
        });
        if let Err(error) = &taken {
            checker.report(clock.now, Rule::CallFailed, format!("reader {id} cannot take: {error}"));
        }
        if let Err(error) = core.end_read(clock.local(), handle) {
            checker.report(clock.now, Rule::CallFailed, format!("reader {id} cannot end a take: {error}"));
        }
        taken.unwrap_or(0)
    }
}

/// Samples that a reader holds at one time.
struct HeldSamples {
    samples: u32,
    of_instance: [u32; 256],
}

impl Default for HeldSamples {
    fn default() -> Self {
        Self { samples: 0, of_instance: [0; 256] }
    }
}

impl HeldSamples {
    fn count(&mut self, found: &takt_core::SampleRef<'_>) {
        // Changes of the instance state without data do not count.
        if found.info.valid_data {
            self.samples += 1;
            self.of_instance[usize::from(found.payload.get(4).copied().unwrap_or(0))] += 1;
        }
    }

    fn of_one_instance(&self) -> u32 {
        self.of_instance.into_iter().max().unwrap_or(0)
    }
}

/// Reads or takes a limited number of samples and returns their number.
pub(super) fn each(
    core: &mut Participant,
    clock: Moment<'_>,
    reader: ReaderHandle,
    (selector, most): (Selector, usize),
    mut call: impl FnMut(&takt_core::SampleRef<'_>),
) -> Result<usize, takt_core::Error> {
    let (mut cursor, mut count) = (ReadCursor::default(), 0);
    while count < most {
        let Some(found) = core.read_next(clock.local(), reader, selector, &mut cursor)? else { break };
        call(&found);
        count += 1;
    }
    Ok(count)
}
