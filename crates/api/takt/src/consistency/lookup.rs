//! Lookup of one remote type, repeated until all its definitions are known (XTypes 1.3 §7.6.3.3).

use std::time::Duration;

use takt_core::{Instant, Participant, TypeAnswer, TypeCheck, TypeRequestId};
use takt_wire::type_lookup::{EquivalenceId, TYPE_IDS_MAX, UnionForm};
use takt_wire::{Guid, GuidPrefix};
use takt_xtypes::type_object::{
    TypeIdentifier, TypeIdentifierWithDependencies, TypeInformation, TypeObject, TypeRegistry,
};

use super::verdict::Definition;
use super::{LOOKUP_BYTES, LOOKUP_TIME};

/// Time after which an unanswered request is repeated with the other union form. A server does not
/// announce which form it understands.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(400);
/// Consecutive answers without a new definition after which the server is assumed not to know the
/// types.
const EMPTY_ANSWERS_MAX: u32 = 2;

/// Progress of a lookup.
pub(super) enum Progress {
    /// An answer is outstanding.
    Waits,
    /// All definitions are known.
    Learned,
    /// The participant did not answer before the deadline.
    Silent,
    /// The answers lack definitions.
    Incomplete,
    /// The participant is gone, and with it the endpoint pairs of the lookup.
    Gone,
}

/// Lookup of a type at a remote participant.
#[derive(Debug)]
pub(super) struct Lookup {
    participant: GuidPrefix,
    root: TypeIdentifier,
    types: TypeRegistry,
    /// Identifiers to request next.
    wanted: Vec<TypeIdentifier>,
    /// The other form (complete or minimal) of the type, in case this one is not available.
    fallback: Option<TypeIdentifierWithDependencies>,
    request: Option<TypeRequestId>,
    form: UnionForm,
    repeat_at: Instant,
    deadline: Instant,
    empty_answers: u32,
    checks: Vec<TypeCheck>,
}

impl Lookup {
    /// Starts a lookup and sends its first request. Returns `None` if there is nothing to request.
    pub(super) fn new(
        core: &mut Participant,
        now: Instant,
        participant: Guid,
        information: &TypeInformation,
        check: TypeCheck,
    ) -> Option<Self> {
        let mut forms =
            [&information.complete, &information.minimal].into_iter().filter(|form| !form.type_id.is_none());
        let first = forms.next()?;
        let mut lookup = Self {
            participant: participant.prefix,
            root: TypeIdentifier::default(),
            types: TypeRegistry::with_limit(LOOKUP_BYTES),
            wanted: Vec::new(),
            fallback: forms.next().cloned(),
            request: None,
            form: UnionForm::default(),
            repeat_at: now,
            deadline: now.after(LOOKUP_TIME),
            empty_answers: 0,
            checks: vec![check],
        };
        lookup.set_target(first);
        lookup.send_request(core, now);
        Some(lookup)
    }

    fn set_target(&mut self, form: &TypeIdentifierWithDependencies) {
        self.root = form.type_id.clone();
        self.empty_answers = 0;
        self.wanted = self.types.missing(&self.root);
        let listed = form.dependencies.iter().map(|(identifier, _)| identifier);
        let further = listed.filter(|identifier| **identifier != form.type_id && identifier.hash().is_some());
        self.wanted.extend(further.take(TYPE_IDS_MAX).cloned());
    }

    /// Reports whether this is the lookup of the given type at the given participant.
    pub(super) fn is_of(&self, participant: GuidPrefix, information: &TypeInformation) -> bool {
        let is_it = [&information.complete.type_id, &information.minimal.type_id].contains(&&self.root);
        participant == self.participant && is_it
    }

    pub(super) fn add(&mut self, check: TypeCheck) {
        self.checks.push(check);
    }

    pub(super) fn waits_for(&self, request: TypeRequestId) -> bool {
        self.request == Some(request)
    }

    pub(super) fn due(&self) -> Instant {
        self.repeat_at.min(self.deadline)
    }

    fn send_request(&mut self, core: &mut Participant, now: Instant) {
        self.cancel(core);
        let ids = self.wanted.iter().filter_map(|id| EquivalenceId::from_bytes(&id.to_bytes()));
        let ids: Vec<EquivalenceId> = ids.take(TYPE_IDS_MAX).collect();
        // If the core has no capacity for a request, the timeout repeats the attempt.
        if let Ok(request) = core.request_types(now, self.participant, &ids, self.form) {
            self.request = Some(request);
        }
        self.repeat_at = now.after(REQUEST_TIMEOUT);
    }

    fn cancel(&mut self, core: &mut Participant) {
        if let Some(request) = self.request.take() {
            core.cancel_type_request(request);
        }
    }

    pub(super) fn handle_answer(&mut self, core: &mut Participant, now: Instant) -> Progress {
        let answer = self.request.and_then(|request| core.take_type_answer(request));
        let Some(answer) = answer else { return Progress::Waits };
        self.request = None;
        let before = self.types.len();
        match answer {
            TypeAnswer::Types { types, big_endian: false, .. } => self.store(types),
            // Type hashes are computed over little-endian definitions. No known implementation
            // answers a little-endian request in big endian.
            TypeAnswer::Types { .. } | TypeAnswer::Refused(_) | TypeAnswer::Dependencies { .. } => {}
            TypeAnswer::Gone => return Progress::Gone,
        }
        let missing = self.types.missing(&self.root);
        if missing.is_empty() {
            return Progress::Learned;
        }
        self.empty_answers = if self.types.len() > before { 0 } else { self.empty_answers + 1 };
        if self.empty_answers > EMPTY_ANSWERS_MAX {
            let Some(fallback) = self.fallback.take() else { return Progress::Incomplete };
            self.set_target(&fallback);
        } else {
            // The list may be wrong, or longer than one answer holds. The last requests name the
            // identifiers known to be missing.
            self.wanted.retain(|identifier| self.types.get(identifier).is_none());
            if self.wanted.is_empty() || self.empty_answers > 0 {
                self.wanted = missing;
            }
        }
        self.send_request(core, now);
        Progress::Waits
    }

    fn store(&mut self, found: Vec<(EquivalenceId, Box<[u8]>)>) {
        for (id, object) in found {
            let identifier = TypeIdentifier::parse(&id.to_bytes());
            let (Ok(identifier), Ok(object)) = (identifier, TypeObject::parse(&object)) else { continue };
            if self.wanted.contains(&identifier) {
                // Rejects a definition that does not match its identifier or is too large; the
                // identifier stays missing.
                let stored = self.types.insert_as(&identifier, object);
                drop(stored);
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, core: &mut Participant, now: Instant) -> Progress {
        if now >= self.deadline {
            return Progress::Silent;
        }
        self.form = self.form.other();
        self.send_request(core, now);
        Progress::Waits
    }

    /// Ends the lookup. Returns the participant, the endpoint pairs and the definitions learned.
    pub(super) fn finish(mut self, core: &mut Participant) -> (GuidPrefix, Vec<TypeCheck>, Definition) {
        self.cancel(core);
        (self.participant, self.checks, Definition { root: self.root, types: self.types })
    }
}
