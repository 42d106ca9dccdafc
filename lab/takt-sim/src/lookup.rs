//! Type lookup between participants (XTypes 1.3 §7.6.3.3), and the check of its replies.
//!
//! Each process offers its own types, which refer to one another in a cycle. A process has at most
//! one pending request, since a participant keeps few replies for retransmission. Each request is
//! answered: by the types of the other process, or, if that process has ended, by the notification
//! of its end.

use std::collections::BTreeSet;

use takt_core::{OfferedType, TypeAnswer};
use takt_wire::GuidPrefix;
use takt_wire::type_lookup::{ContinuationPoint, EquivalenceId};

use crate::clock::Nanos;

/// Maximum number of types that a process offers.
const TYPES_MAX: usize = 5;

/// A pending request.
#[derive(Clone, Debug)]
pub struct PendingTypeRequest {
    /// Index of the queried process.
    pub process: usize,
    /// GUID prefix of the queried participant.
    pub participant: GuidPrefix,
    /// Requested types.
    pub types: Vec<EquivalenceId>,
    /// Whether the dependencies of these types are requested, instead of the types themselves.
    pub for_dependencies: bool,
    /// Time of the request.
    pub at: Nanos,
}

/// Returns the types that a process offers.
#[must_use]
pub fn offered(process: usize) -> Vec<OfferedType> {
    let count = TYPES_MAX - process % 3;
    let offer = |number: usize| {
        // Small types, and some that need many fragments.
        let len = 40 << (2 * number);
        let mut object = (len as u32).to_le_bytes().to_vec();
        object.extend((0..len).map(|at| (at + process + 3 * number) as u8));
        let minimal = (number % 2 == 1).then(|| id(EquivalenceId::MINIMAL, process, number));
        OfferedType {
            id: complete(process, number),
            object: object.into(),
            dependencies: [complete(process, (number + 1) % count)].into(),
            minimal,
        }
    };
    (0..count).map(offer).collect()
}

/// Returns the identifier of a type, which need not be offered.
#[must_use]
pub fn complete(process: usize, number: usize) -> EquivalenceId {
    id(EquivalenceId::COMPLETE, process, number)
}

fn id(kind: u8, process: usize, number: usize) -> EquivalenceId {
    let mut hash = [0; 14];
    (hash[0], hash[1]) = (process as u8, number as u8);
    EquivalenceId::new(kind, hash)
}

impl PendingTypeRequest {
    /// Checks a reply of a participant that has the types of this process. `may_be_gone` states
    /// whether the participant may have ended.
    ///
    /// # Errors
    /// Describes what is wrong with the reply.
    pub fn check_reply(&self, answer: Option<TypeAnswer>, may_be_gone: bool) -> Result<(), String> {
        let all = offered(self.process);
        let find = |id: &EquivalenceId| all.iter().find(|offered| offered.id == *id);
        let known = self.types.iter().filter_map(find);
        let is_true = match &answer {
            Some(TypeAnswer::Types { types, complete_to_minimal, big_endian }) => {
                let minimal = known.clone().filter_map(|offered| Some((offered.id, offered.minimal?)));
                !self.for_dependencies
                    && !big_endian
                    && known.map(|offered| (offered.id, &*offered.object)).eq(types.iter().map(|(id, it)| (*id, &**it)))
                    && minimal.eq(complete_to_minimal.iter().copied())
            }
            Some(TypeAnswer::Dependencies { type_ids, continuation_point }) => {
                // All types are in one cycle.
                let others =
                    all.iter().filter(|offered| known.clone().next().is_some() && !self.types.contains(&offered.id));
                let expected: BTreeSet<_> = others.map(|offered| (offered.id, offered.object.len() as u32)).collect();
                self.for_dependencies
                    && *continuation_point == ContinuationPoint::default()
                    && type_ids.len() == expected.len()
                    && type_ids.iter().all(|id| expected.contains(id))
            }
            Some(TypeAnswer::Gone) => may_be_gone,
            Some(TypeAnswer::Refused(_)) | None => false,
        };
        if is_true { Ok(()) } else { Err(format!("{self:?} was answered by {answer:?}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_with_types_that_are_not_offered_fails() {
        let all = offered(0);
        let types = |numbers: &[usize]| TypeAnswer::Types {
            types: numbers.iter().map(|number| (all[*number].id, all[*number].object.clone())).collect(),
            complete_to_minimal: numbers.iter().filter_map(|it| Some((all[*it].id, all[*it].minimal?))).collect(),
            big_endian: false,
        };
        let request = |for_dependencies, types| PendingTypeRequest {
            process: 0,
            participant: GuidPrefix([1; 12]),
            types,
            for_dependencies,
            at: 0,
        };
        let ids = vec![complete(0, 2), complete(1, 0), complete(0, 1)];
        let types_request = request(false, ids.clone());
        assert_eq!(types_request.check_reply(Some(types(&[2, 1])), false), Ok(()), "those that are there");
        for wrong in [Some(types(&[2])), Some(types(&[2, 1, 0])), Some(TypeAnswer::Refused(1)), None] {
            assert!(types_request.check_reply(wrong.clone(), true).is_err(), "{wrong:?}");
        }
        assert!(types_request.check_reply(Some(TypeAnswer::Gone), true).is_ok());
        assert!(types_request.check_reply(Some(TypeAnswer::Gone), false).is_err());
        let dependencies = |numbers: &[usize]| TypeAnswer::Dependencies {
            type_ids: numbers.iter().map(|it| (all[*it].id, all[*it].object.len() as u32)).collect(),
            continuation_point: ContinuationPoint::default(),
        };
        let dependencies_request = request(true, ids);
        assert_eq!(dependencies_request.check_reply(Some(dependencies(&[0, 3, 4])), false), Ok(()));
        assert!(dependencies_request.check_reply(Some(dependencies(&[0, 4])), false).is_err(), "one is missing");
        assert!(types_request.check_reply(Some(dependencies(&[0, 3, 4])), false).is_err(), "something else was asked");
    }
}
