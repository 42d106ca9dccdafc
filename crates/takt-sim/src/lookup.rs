//! Participants that ask each other for types (XTypes 1.3 §7.6.3.3), and what the answers must be.
//!
//! Each process offers types of its own, which refer to each other in a circle. A process has one request under way at a time, since a
//! participant keeps few answers for repair. Each request is answered: by what the other process offers, or, if that has gone, by the
//! news of it.

use std::collections::BTreeSet;

use takt_core::{OfferedType, TypeAnswer};
use takt_wire::GuidPrefix;
use takt_wire::type_lookup::{ContinuationPoint, EquivalenceId};

use crate::clock::Nanos;

/// Most types that a process offers.
const TYPES_MAX: usize = 5;

/// A request that is under way.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Which process, and which participant of it.
    pub process: usize,
    /// See there.
    pub whom: GuidPrefix,
    /// What it is about.
    pub types: Vec<EquivalenceId>,
    /// It is about what these types refer to, not about themselves.
    pub for_dependencies: bool,
    /// Since when.
    pub at: Nanos,
}

/// The types that a process offers.
#[must_use]
pub fn offered(process: usize) -> Vec<OfferedType> {
    let count = TYPES_MAX - process % 3;
    let offer = |number: usize| {
        // Small ones, and some that take many fragments.
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

/// The identifier of a type, which need not be offered.
#[must_use]
pub fn complete(process: usize, number: usize) -> EquivalenceId {
    id(EquivalenceId::COMPLETE, process, number)
}

fn id(kind: u8, process: usize, number: usize) -> EquivalenceId {
    let mut hash = [0; 14];
    (hash[0], hash[1]) = (process as u8, number as u8);
    EquivalenceId::new(kind, hash)
}

impl Asked {
    /// Whether an answer is that of a participant which has the types of this process; `may_be_gone` if it may have gone.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn judge(&self, answer: Option<TypeAnswer>, may_be_gone: bool) -> Result<(), String> {
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
                // All are in one circle.
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
    fn only_what_the_process_offers_is_an_answer() {
        let all = offered(0);
        let types = |numbers: &[usize]| TypeAnswer::Types {
            types: numbers.iter().map(|number| (all[*number].id, all[*number].object.clone())).collect(),
            complete_to_minimal: numbers.iter().filter_map(|it| Some((all[*it].id, all[*it].minimal?))).collect(),
            big_endian: false,
        };
        let asked =
            |for_dependencies, types| Asked { process: 0, whom: GuidPrefix([1; 12]), types, for_dependencies, at: 0 };
        let ids = vec![complete(0, 2), complete(1, 0), complete(0, 1)];
        let asked_types = asked(false, ids.clone());
        assert_eq!(asked_types.judge(Some(types(&[2, 1])), false), Ok(()), "those that are there");
        for wrong in [Some(types(&[2])), Some(types(&[2, 1, 0])), Some(TypeAnswer::Refused(1)), None] {
            assert!(asked_types.judge(wrong.clone(), true).is_err(), "{wrong:?}");
        }
        assert!(asked_types.judge(Some(TypeAnswer::Gone), true).is_ok());
        assert!(asked_types.judge(Some(TypeAnswer::Gone), false).is_err());
        let rest = |numbers: &[usize]| TypeAnswer::Dependencies {
            type_ids: numbers.iter().map(|it| (all[*it].id, all[*it].object.len() as u32)).collect(),
            continuation_point: ContinuationPoint::default(),
        };
        let asked_rest = asked(true, ids);
        assert_eq!(asked_rest.judge(Some(rest(&[0, 3, 4])), false), Ok(()));
        assert!(asked_rest.judge(Some(rest(&[0, 4])), false).is_err(), "one is missing");
        assert!(asked_types.judge(Some(rest(&[0, 3, 4])), false).is_err(), "something else was asked");
    }
}
