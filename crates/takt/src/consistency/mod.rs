//! Do the types of two endpoints fit (TYPE_CONSISTENCY_ENFORCEMENT, XTypes 1.3 §7.6.3.7)? The core asks where type
//! information differs; here the definitions are learned from the other participant, compared, and the core is told.
//!
//! Nothing waits: requests for types and their answers go through the core, and [`TypeChecks`] is driven like it, by
//! [`handle_event`](TypeChecks::handle_event) and [`handle_timeout`](TypeChecks::handle_timeout). What cannot be
//! learned, because the participant gives out no types, does not answer, or answers without them, is matched by name,
//! or not at all if the reader's `force_type_validation` is set.
//!
//! Bounds: [`LOOKUPS_MAX`] participants are asked at a time, each for at most [`LOOKUP_TIME`] and [`LOOKUP_BYTES`] of
//! definitions; a pair waits at most [`WAIT_TIME`] for its turn; who did not answer is not asked again for
//! [`SILENCE_TIME`]. One comparison takes at most `takt_xtypes::assignability::MAX_STEPS` steps.

mod lookup;
mod verdict;

use std::collections::VecDeque;
use std::time::Duration;

use takt_core::{Event, Instant, Participant, TypeCheck, TypeVerdict};
use takt_wire::{Guid, GuidPrefix};
use takt_xtypes::type_object::TypeInformation;

use lookup::{Lookup, Progress};
use verdict::{judged, own, unlearned};

pub(crate) use verdict::{Definition, compared, in_words, involves_cyclone, refused_by_cyclone};

/// How many lookups are under way at a time.
const LOOKUPS_MAX: usize = 16;
/// How long one may take.
pub(crate) const LOOKUP_TIME: Duration = Duration::from_secs(2);
/// Bytes of definitions that one may bring.
const LOOKUP_BYTES: usize = 512 * 1024;
/// How long a pair waits at most before its lookup begins.
const WAIT_TIME: Duration = Duration::from_secs(4);
/// How long a participant that did not answer is not asked again.
const SILENCE_TIME: Duration = Duration::from_secs(10);
/// How many such are remembered.
const SILENT_MAX: usize = 64;

/// Pairs whose types are being learned.
#[derive(Debug, Default)]
pub(crate) struct TypeChecks {
    lookups: Vec<Lookup>,
    /// Pairs whose turn has not come, with the time until which they wait.
    waiting: VecDeque<(TypeCheck, Instant)>,
    /// Who did not answer, and until when that counts.
    silent: VecDeque<(GuidPrefix, Instant)>,
}

impl TypeChecks {
    /// Takes what is for it. False if the event is for somebody else.
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
                self.go_on(core, now, at, progress);
                true
            }
            _ => false,
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
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
            if !self.go_on(core, now, at, progress) {
                at += 1;
            }
        }
        while self.waiting.front().is_some_and(|(_, until)| *until <= now) {
            if let Some((check, _)) = self.waiting.pop_front() {
                judge(core, now, check, |reader| unlearned(reader, "too many others are to be asked first"));
            }
        }
    }

    /// A pair is to be judged: at once if what is here suffices, else when its lookup is done.
    fn begin(&mut self, core: &mut Participant, now: Instant, check: TypeCheck) {
        let unknown = |core: &mut Participant, why: &str| judge(core, now, check, |reader| unlearned(reader, why));
        let Some([of_writer, of_reader]) = informations(core, check) else {
            return unknown(core, "what it says of its type cannot be read");
        };
        if is_same(&of_writer, &of_reader) {
            return core.judge_types(now, check, TypeVerdict::Fit);
        }
        let (whom, theirs) = match (is_own(core, check.writer), is_own(core, check.reader)) {
            (true, true) => return conclude(core, now, check, None),
            (false, _) => (check.writer, &of_writer),
            (true, false) => (check.reader, &of_reader),
        };
        if !core.serves_types(whom.prefix) {
            return unknown(core, "its participant gives out no types");
        }
        self.silent.retain(|(_, until)| *until > now);
        if self.silent.iter().any(|(prefix, _)| *prefix == whom.prefix) {
            return unknown(core, "its participant does not answer");
        }
        if let Some(lookup) = self.lookups.iter_mut().find(|lookup| lookup.is_of(whom.prefix, theirs)) {
            return lookup.add(check);
        }
        if self.lookups.len() >= LOOKUPS_MAX {
            return self.waiting.push_back((check, now.after(WAIT_TIME)));
        }
        match Lookup::new(core, now, whom, theirs, check) {
            Some(lookup) => self.lookups.push(lookup),
            None => unknown(core, "it says nothing of its type"),
        }
    }

    /// A lookup has come further. True if it is done and gone.
    fn go_on(&mut self, core: &mut Participant, now: Instant, at: usize, progress: Progress) -> bool {
        if matches!(progress, Progress::Waits) {
            return false;
        }
        let lookup = self.lookups.swap_remove(at);
        let (whom, checks, definition) = lookup.finish(core);
        let why = match progress {
            Progress::Learned | Progress::Waits => None,
            Progress::Silent => {
                if self.silent.len() >= SILENT_MAX {
                    self.silent.pop_front();
                }
                self.silent.push_back((whom, now.after(SILENCE_TIME)));
                Some("its participant does not answer")
            }
            Progress::Gone => Some("its participant has gone"),
            Progress::Incomplete => Some("its participant does not give out all definitions"),
        };
        for check in checks {
            match why {
                None => conclude(core, now, check, Some(&definition)),
                Some(why) => judge(core, now, check, |reader| unlearned(reader, why)),
            }
        }
        for _ in 0..LOOKUPS_MAX {
            // What waits may join one that has begun; what does not comes last again.
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

/// What writer and reader announce of their types; `None` if one of them has gone, or announces no such thing.
fn informations(core: &Participant, check: TypeCheck) -> Option<[TypeInformation; 2]> {
    let writer = announced(core.publication(check.writer)?.type_information.as_deref())?;
    let reader = announced(core.subscription(check.reader)?.type_information.as_deref())?;
    Some([writer, reader])
}

/// What an endpoint announces of its type; `None` if that is nothing, or nothing that can be read.
pub(crate) fn announced(information: Option<&[u8]>) -> Option<TypeInformation> {
    TypeInformation::parse(information?).ok()
}

/// Equal identifiers are equal types (XTypes 1.3 §7.3.4.7).
pub(crate) fn is_same(writer: &TypeInformation, reader: &TypeInformation) -> bool {
    let same = |a: &takt_xtypes::type_object::TypeIdentifier, b| !a.is_none() && a == b;
    same(&writer.minimal.type_id, &reader.minimal.type_id) || same(&writer.complete.type_id, &reader.complete.type_id)
}

/// Compares a pair, where `theirs` is the definition of the other participant's type.
fn conclude(core: &mut Participant, now: Instant, check: TypeCheck, theirs: Option<&Definition>) {
    let verdict = (|| {
        let writer = core.publication(check.writer)?;
        let reader = core.subscription(check.reader)?;
        let mut kept = [None, None];
        let sides = [(check.writer, &writer.type_information), (check.reader, &reader.type_information)];
        for (kept, (guid, information)) in kept.iter_mut().zip(sides) {
            if is_own(core, guid) {
                *kept = own(core, information.as_deref()?);
            }
        }
        let [of_writer, of_reader] = &kept;
        let vendors = [check.writer, check.reader].map(|guid| core.vendor_of(guid.prefix));
        Some(judged(vendors, writer, reader, of_writer.as_ref().or(theirs)?, of_reader.as_ref().or(theirs)?))
    })();
    match verdict {
        Some(verdict) => core.judge_types(now, check, verdict),
        None => judge(core, now, check, |reader| unlearned(reader, "our own type is too large to be given out")),
    }
}

fn judge(
    core: &mut Participant,
    now: Instant,
    check: TypeCheck,
    verdict: impl FnOnce(&takt_wire::discovery::SubscriptionData) -> TypeVerdict,
) {
    let verdict = core.subscription(check.reader).map_or(TypeVerdict::Fit, verdict);
    core.judge_types(now, check, verdict);
}

#[cfg(test)]
mod tests;
