//! Type lookup requests of a process.

use takt_core::TypeRequestId;
use takt_wire::GuidPrefix;
use takt_wire::type_lookup::{ContinuationPoint, UnionForm};

use super::{Moment, Process};
use crate::check::{Checker, Rule};
use crate::clock::{Nanos, SECOND};
use crate::lookup::{self, PendingTypeRequest};

/// Time within which a reply arrives without faults.
const REPLY_MAX: Nanos = SECOND;

impl Process {
    /// Registers the types that the process offers.
    pub(super) fn offer_types(&mut self) {
        let Some(core) = &mut self.core else { return };
        for offered in lookup::offered(self.index) {
            core.offer_type(offered).expect("there is room for a few types");
        }
    }

    /// Requests types from one of the other participants that it knows, alive or not, unless a
    /// request is pending. Each of `others` is a process with its GUID prefix.
    pub fn request_types(&mut self, others: &[(usize, GuidPrefix)], clock: Moment<'_>, checker: &mut Checker) {
        let Some(core) = self.core.as_mut().filter(|_| self.type_request.is_none()) else { return };
        let known: Vec<_> = others.iter().filter(|(_, prefix)| core.serves_types(*prefix)).collect();
        if known.is_empty() {
            return;
        }
        let &&(process, participant) = self.rng.pick(&known);
        let mut types: Vec<_> = lookup::offered(process).into_iter().map(|offered| offered.id).collect();
        types.retain(|_| self.rng.chance(500_000));
        if types.is_empty() || self.rng.chance(300_000) {
            // A type that is not offered.
            types.push(lookup::complete(self.index, 0));
        }
        let (for_dependencies, now) = (self.rng.chance(400_000), clock.local());
        let form = *self.rng.pick(&[UnionForm::Final, UnionForm::Appendable]);
        let request = if for_dependencies {
            core.request_type_dependencies(now, participant, &types, ContinuationPoint::default())
        } else {
            core.request_types(now, participant, &types, form)
        };
        match request {
            Ok(id) => {
                self.type_request =
                    Some((id, PendingTypeRequest { process, participant, types, for_dependencies, at: clock.now }))
            }
            Err(error) => checker.report(clock.now, Rule::CallFailed, format!("process {} asks: {error}", self.index)),
        }
    }

    /// Handles the reply to a request.
    pub(super) fn handle_reply(&mut self, now: Nanos, id: TypeRequestId, checker: &mut Checker) {
        let Some(core) = &mut self.core else { return };
        let answer = core.take_type_answer(id);
        let request = self.type_request.take_if(|(request, _)| *request == id);
        let is_gone = |request: &PendingTypeRequest| !checker.sound || checker.has_ended(request.participant);
        let verdict = match request {
            Some((_, request)) => request.check_reply(answer, is_gone(&request)).and_then(|()| {
                let is_late = now - request.at > REPLY_MAX && !is_gone(&request);
                if is_late { Err(format!("{request:?} was answered late")) } else { Ok(()) }
            }),
            None => Err(format!("no request is {id:?}, which was answered by {answer:?}")),
        };
        if let Err(text) = verdict {
            checker.report(now, Rule::Lookup, format!("process {}: {text}", self.index));
        }
    }

    /// Checks at rest that no request is pending.
    pub(super) fn check_no_request_pending(&self, now: Nanos, checker: &mut Checker) {
        if let Some((_, request)) = self.type_request.as_ref().filter(|_| self.core.is_some()) {
            checker.report(now, Rule::Lookup, format!("process {}: {request:?} was never answered", self.index));
        }
    }
}
