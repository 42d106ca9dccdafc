//! Do the types of a writer and a reader fit (XTypes 1.3 §7.6.3.7)? Pairs that wait for the answer, and the answers.
//!
//! Types are bytes here. Equal type information is one type. Where it differs, whoever knows types is asked by
//! [`Event::TypeChecks`], takes the pairs with [`Participant::poll_type_check`] and answers with
//! [`Participant::judge_types`]; the match waits until then, for as long as that takes. Nobody is asked unless
//! [`Participant::check_types`] was called: then names decide. Without type information on one side names decide too,
//! unless the reader's `force_type_validation` is set.
//!
//! Bounds: one entry for each pair of one topic and type name whose type information differs, until one of the two
//! goes.

use crate::context::Context;
use crate::event::Event;
use crate::participant::Participant;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::{Guid, GuidPrefix};

/// A pair of one topic whose type information differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeCheck {
    /// The writer.
    pub writer: Guid,
    /// The reader.
    pub reader: Guid,
}

/// Whether the types of a pair fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeVerdict {
    /// They do, or nothing is known and nothing forbids the match.
    Fit,
    /// They do here, but another implementation may refuse the pair: see [`Participant::cautions`].
    FitWithCaution {
        /// What differs, in words.
        what: Box<str>,
    },
    /// They do not.
    Differ {
        /// In words.
        why: Box<str>,
    },
}

/// What is known of a pair now.
pub(super) enum Fit {
    Yes,
    /// Somebody is asked.
    Wait,
    No(String),
}

#[derive(Debug, Default)]
pub(crate) struct TypeChecks {
    is_on: bool,
    /// `None`: not answered yet.
    verdicts: BTreeMap<TypeCheck, Option<TypeVerdict>>,
    /// The same pairs, readers first.
    by_reader: BTreeSet<(Guid, Guid)>,
    /// Not polled yet; some may have gone.
    asked: VecDeque<TypeCheck>,
}

impl TypeChecks {
    pub(crate) fn len(&self) -> usize {
        self.verdicts.len()
    }

    pub(super) fn fit(
        &mut self,
        ctx: &mut Context,
        publication: &PublicationData,
        subscription: &SubscriptionData,
    ) -> Fit {
        let (writer, reader) = (&publication.type_information, &subscription.type_information);
        let (Some(writer), Some(reader)) = (writer, reader) else {
            let who = if writer.is_none() { "writer" } else { "reader" };
            return match subscription.qos.type_consistency.force_type_validation {
                true => Fit::No(alloc::format!("force_type_validation is set, and the {who} says nothing of its type")),
                false => Fit::Yes,
            };
        };
        if writer == reader || !self.is_on {
            return Fit::Yes;
        }
        let check = TypeCheck { writer: publication.guid, reader: subscription.guid };
        match self.verdicts.get(&check) {
            Some(Some(TypeVerdict::Fit | TypeVerdict::FitWithCaution { .. })) => Fit::Yes,
            Some(Some(TypeVerdict::Differ { why })) => Fit::No(String::from(&**why)),
            Some(None) => Fit::Wait,
            None => {
                self.verdicts.insert(check, None);
                self.by_reader.insert((check.reader, check.writer));
                self.asked.push_back(check);
                ctx.notify(Event::TypeChecks);
                Fit::Wait
            }
        }
    }

    /// The pairs that others may refuse, and why.
    pub(super) fn cautions(&self) -> impl Iterator<Item = (TypeCheck, &str)> {
        self.verdicts.iter().filter_map(|(check, verdict)| match verdict {
            Some(TypeVerdict::FitWithCaution { what }) => Some((*check, &**what)),
            _ => None,
        })
    }

    /// A writer or reader has gone, or begins anew.
    pub(crate) fn forget(&mut self, ctx: &mut Context, guid: Guid) {
        let zero = Guid::from_bytes([0; 16]);
        let from = TypeCheck { writer: guid, reader: zero };
        while let Some(check) = self.verdicts.range(from..).next().map(|(check, _)| *check) {
            if check.writer != guid {
                break;
            }
            self.remove(ctx, check);
        }
        while let Some((reader, writer)) = self.by_reader.range((guid, zero)..).next().copied() {
            if reader != guid {
                break;
            }
            self.remove(ctx, TypeCheck { writer, reader });
        }
    }

    /// A participant has gone.
    pub(super) fn forget_all_of(&mut self, ctx: &mut Context, prefix: GuidPrefix) {
        let zero = Guid::from_bytes([0; 16]);
        let first = Guid { prefix, ..zero };
        let from = TypeCheck { writer: first, reader: zero };
        while let Some(check) = self.verdicts.range(from..).next().map(|(check, _)| *check) {
            if check.writer.prefix != prefix {
                break;
            }
            self.remove(ctx, check);
        }
        while let Some((reader, writer)) = self.by_reader.range((first, zero)..).next().copied() {
            if reader.prefix != prefix {
                break;
            }
            self.remove(ctx, TypeCheck { writer, reader });
        }
    }

    fn remove(&mut self, ctx: &mut Context, check: TypeCheck) {
        ctx.work.steps(1);
        self.verdicts.remove(&check);
        self.by_reader.remove(&(check.reader, check.writer));
        if self.verdicts.is_empty() {
            self.asked.clear();
        }
    }

    /// The next pair that waits and was not polled.
    fn poll(&mut self) -> Option<TypeCheck> {
        loop {
            let check = self.asked.pop_front()?;
            if self.verdicts.get(&check).is_some_and(Option::is_none) {
                return Some(check);
            }
        }
    }
}

impl Participant {
    /// From now on pairs whose type information differs wait for [`Participant::judge_types`].
    pub fn check_types(&mut self) {
        self.type_checks.is_on = true;
    }

    /// The next pair whose types are to be compared.
    pub fn poll_type_check(&mut self) -> Option<TypeCheck> {
        self.type_checks.poll()
    }

    /// Says whether the types of a pair fit, and matches the two if nothing else speaks against it. Does nothing if the
    /// pair waits no more.
    pub fn judge_types(&mut self, now: Instant, check: TypeCheck, verdict: TypeVerdict) {
        let Some(waiting) = self.type_checks.verdicts.get_mut(&check).filter(|verdict| verdict.is_none()) else {
            return;
        };
        let has_caution = matches!(verdict, TypeVerdict::FitWithCaution { .. });
        *waiting = Some(verdict);
        let publication = self.publication(check.writer).cloned();
        let subscription = self.subscription(check.reader).cloned();
        let (Some(publication), Some(subscription)) = (publication, subscription) else { return };
        if let Some(index) = self.local_reader(check.reader) {
            self.match_reader(now, index, &publication);
        }
        if let Some(index) = self.local_writer(check.writer) {
            self.match_writer(now, index, &subscription);
        }
        if has_caution {
            self.ctx.notify(Event::PairsCautioned);
        }
    }

    fn local_writer(&self, guid: Guid) -> Option<u32> {
        let index = *self.writer_ids.get(&guid.entity_id)?;
        (guid.prefix == self.header.prefix).then_some(index)
    }

    fn local_reader(&self, guid: Guid) -> Option<u32> {
        let is_it = |index: &u32| self.readers.get(*index).is_some_and(|reader| reader.data.guid == guid);
        let mut from = super::BUILTIN_ENDPOINTS;
        core::iter::from_fn(|| {
            let index = self.readers.next_index(from)?;
            from = index + 1;
            Some(index)
        })
        .find(is_it)
    }

    /// What a writer, known or our own, announces.
    #[must_use]
    pub fn publication(&self, guid: Guid) -> Option<&PublicationData> {
        if guid.prefix != self.header.prefix {
            return self.publications.get(&guid).map(|data| &**data);
        }
        self.local_writer(guid).and_then(|index| self.writers.get(index)).map(|writer| &*writer.data)
    }

    /// What a reader, known or our own, announces. Looks at each reader of ours.
    #[must_use]
    pub fn subscription(&self, guid: Guid) -> Option<&SubscriptionData> {
        if guid.prefix != self.header.prefix {
            return self.subscriptions.get(&guid).map(|data| &**data);
        }
        self.local_reader(guid).and_then(|index| self.readers.get(index)).map(|reader| &*reader.data)
    }
}
