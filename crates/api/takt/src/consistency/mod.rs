//! Type consistency of writer and reader (TYPE_CONSISTENCY_ENFORCEMENT, XTypes 1.3 §7.6.3.7).
//!
//! The core requests a check if the announced TypeInformation of a pair differs. This module
//! obtains the definitions from the remote participant, compares them and reports the verdict to
//! the core.
//!
//! Nothing blocks. Type requests and their answers pass through the core. [`TypeChecks`] is driven
//! by [`handle_event`](TypeChecks::handle_event) and
//! [`handle_timeout`](TypeChecks::handle_timeout).
//!
//! A type is unavailable if its participant offers no TypeLookup service, does not answer, or
//! answers without the definitions. The pair is then matched by type name, or not at all if the
//! reader sets `force_type_validation`.
//!
//! Bounds:
//! - At most [`LOOKUPS_MAX`] lookups run concurrently, each for at most [`LOOKUP_TIME`] and
//!   [`LOOKUP_BYTES`] of definitions.
//! - A pair waits at most [`WAIT_TIME`] for its lookup to begin.
//! - A participant that did not answer is not queried again for [`SILENCE_TIME`].
//! - One comparison takes at most `takt_xtypes::assignability::MAX_STEPS` steps.

mod lookup;
mod verdict;

use std::collections::VecDeque;
use std::time::Duration;

use takt_core::{Event, Instant, Participant, TypeCheck, TypeVerdict};
use takt_wire::{Guid, GuidPrefix};
use takt_xtypes::type_object::TypeInformation;

use lookup::{Lookup, Progress};
use verdict::{compare_for_vendors, own, type_unavailable};

pub(crate) use verdict::{Definition, compare, involves_cyclone, join_cautions, refused_by_cyclone};

/// Maximum number of concurrent lookups.
const LOOKUPS_MAX: usize = 16;
/// Maximum duration of a lookup.
pub(crate) const LOOKUP_TIME: Duration = Duration::from_secs(2);
/// Maximum size in bytes of the definitions that one lookup collects.
const LOOKUP_BYTES: usize = 512 * 1024;
/// Maximum time that a pair waits for its lookup to begin.
const WAIT_TIME: Duration = Duration::from_secs(4);
/// Time for which a participant that did not answer is not queried again.
const SILENCE_TIME: Duration = Duration::from_secs(10);
/// Maximum number of such participants that are remembered.
const SILENT_MAX: usize = 64;

/// Endpoint pairs whose types are being looked up.
#[derive(Debug, Default)]
pub(crate) struct TypeChecks {
    lookups: Vec<Lookup>,
    /// Pairs that wait for a free lookup, each with the end of its waiting time.
    waiting: VecDeque<(TypeCheck, Instant)>,
    /// Participants that did not answer, each with the time until which they are not queried.
    silent: VecDeque<(GuidPrefix, Instant)>,
}

impl TypeChecks {
    /// Handles a core event that concerns type checks. Returns false for any other event.
    pub(crate) fn handle_event(&mut self, core: &mut Participant, now: Instant, event: Event) -> bool {
        match event {
            Event::TypeChecks => {
                while let Some(check) = core.poll_type_check() {
                    self.begin(core, now, check);
                }
                true
            }
            Event::TypeAnswer(request) => {
                let Some(at) = self.lookups.iter().position(|lookup| lookup.waits_for(request)) else { return false };
                let progress = self.lookups[at].handle_answer(core, now);
                self.handle_progress(core, now, at, progress);
                true
            }
            _ => false,
        }
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let lookups = self.lookups.iter().map(Lookup::due);
        lookups.chain(self.waiting.front().map(|(_, until)| *until)).min()
    }

    pub(crate) fn handle_timeout(&mut self, core: &mut Participant, now: Instant) {
        let mut at = 0;
        while at < self.lookups.len() {
            let progress = if self.lookups[at].due() <= now {
                self.lookups[at].handle_timeout(core, now)
            } else {
                Progress::Waits
            };
            if !self.handle_progress(core, now, at, progress) {
                at += 1;
            }
        }
        while self.waiting.front().is_some_and(|(_, until)| *until <= now) {
            if let Some((check, _)) = self.waiting.pop_front() {
                set_verdict(core, now, check, |reader| type_unavailable(reader, "too many type lookups are pending"));
            }
        }
    }

    /// Checks a pair: immediately if the known information suffices, else when its lookup ends.
    fn begin(&mut self, core: &mut Participant, now: Instant, check: TypeCheck) {
        let unknown = |core: &mut Participant, reason: &str| {
            set_verdict(core, now, check, |reader| type_unavailable(reader, reason))
        };
        let Some([of_writer, of_reader]) = informations(core, check) else {
            return unknown(core, "its type information cannot be parsed");
        };
        if is_same(&of_writer, &of_reader) {
            return core.set_type_verdict(now, check, TypeVerdict::Compatible);
        }
        let (remote, theirs) = match (is_own(core, check.writer), is_own(core, check.reader)) {
            (true, true) => return conclude(core, now, check, None),
            (false, _) => (check.writer, &of_writer),
            (true, false) => (check.reader, &of_reader),
        };
        if !core.serves_types(remote.prefix) {
            return unknown(core, "its participant offers no type lookup service");
        }
        self.silent.retain(|(_, until)| *until > now);
        if self.silent.iter().any(|(prefix, _)| *prefix == remote.prefix) {
            return unknown(core, "its participant does not answer type lookups");
        }
        if let Some(lookup) = self.lookups.iter_mut().find(|lookup| lookup.is_of(remote.prefix, theirs)) {
            return lookup.add(check);
        }
        if self.lookups.len() >= LOOKUPS_MAX {
            return self.waiting.push_back((check, now.after(WAIT_TIME)));
        }
        match Lookup::new(core, now, remote, theirs, check) {
            Some(lookup) => self.lookups.push(lookup),
            None => unknown(core, "it announces no type"),
        }
    }

    /// Handles the progress of a lookup. Returns true if the lookup has ended and was removed.
    fn handle_progress(&mut self, core: &mut Participant, now: Instant, at: usize, progress: Progress) -> bool {
        if matches!(progress, Progress::Waits) {
            return false;
        }
        let lookup = self.lookups.swap_remove(at);
        let (participant, checks, definition) = lookup.finish(core);
        let reason = match progress {
            Progress::Learned | Progress::Waits => None,
            Progress::Silent => {
                if self.silent.len() >= SILENT_MAX {
                    self.silent.pop_front();
                }
                self.silent.push_back((participant, now.after(SILENCE_TIME)));
                Some("its participant does not answer type lookups")
            }
            Progress::Gone => Some("its participant has left"),
            Progress::Incomplete => Some("its participant does not return all type definitions"),
        };
        for check in checks {
            match reason {
                None => conclude(core, now, check, Some(&definition)),
                Some(reason) => set_verdict(core, now, check, |reader| type_unavailable(reader, reason)),
            }
        }
        for _ in 0..LOOKUPS_MAX {
            // A waiting pair may join a lookup in progress. Otherwise it goes back to the end of
            // the queue.
            if self.lookups.len() >= LOOKUPS_MAX {
                break;
            }
            let Some((check, _)) = self.waiting.pop_front() else { break };
            self.begin(core, now, check);
        }
        true
    }
}

fn is_own(core: &Participant, guid: Guid) -> bool {
    guid.prefix == core.guid().prefix
}

/// Returns the announced TypeInformation of writer and reader; `None` if an endpoint is gone or
/// announced none that is valid.
fn informations(core: &Participant, check: TypeCheck) -> Option<[TypeInformation; 2]> {
    let writer = announced(core.publication(check.writer)?.type_information.as_deref())?;
    let reader = announced(core.subscription(check.reader)?.type_information.as_deref())?;
    Some([writer, reader])
}

/// Parses the TypeInformation of an endpoint; `None` if it is absent or malformed.
pub(crate) fn announced(information: Option<&[u8]>) -> Option<TypeInformation> {
    TypeInformation::parse(information?).ok()
}

/// Reports whether the types are identical, which equal identifiers imply (XTypes 1.3 §7.3.4.7).
pub(crate) fn is_same(writer: &TypeInformation, reader: &TypeInformation) -> bool {
    let same = |a: &takt_xtypes::type_object::TypeIdentifier, b| !a.is_none() && a == b;
    same(&writer.minimal.type_id, &reader.minimal.type_id) || same(&writer.complete.type_id, &reader.complete.type_id)
}

/// Compares the types of a pair; `theirs` is the definition of the remote type.
fn conclude(core: &mut Participant, now: Instant, check: TypeCheck, theirs: Option<&Definition>) {
    let verdict = (|| {
        let writer = core.publication(check.writer)?;
        let reader = core.subscription(check.reader)?;
        let mut definitions = [None, None];
        let sides = [(check.writer, &writer.type_information), (check.reader, &reader.type_information)];
        for (definition, (guid, information)) in definitions.iter_mut().zip(sides) {
            if is_own(core, guid) {
                *definition = own(core, information.as_deref()?);
            }
        }
        let [of_writer, of_reader] = &definitions;
        let vendors = [check.writer, check.reader].map(|guid| core.vendor_of(guid.prefix));
        Some(compare_for_vendors(
            vendors,
            writer,
            reader,
            of_writer.as_ref().or(theirs)?,
            of_reader.as_ref().or(theirs)?,
        ))
    })();
    match verdict {
        Some(verdict) => core.set_type_verdict(now, check, verdict),
        None => set_verdict(core, now, check, |reader| {
            type_unavailable(reader, "the local type is too large for a type lookup")
        }),
    }
}

fn set_verdict(
    core: &mut Participant,
    now: Instant,
    check: TypeCheck,
    verdict: impl FnOnce(&takt_wire::discovery::SubscriptionData) -> TypeVerdict,
) {
    let verdict = core.subscription(check.reader).map_or(TypeVerdict::Compatible, verdict);
    core.set_type_verdict(now, check, verdict);
}

#[cfg(test)]
mod tests;
