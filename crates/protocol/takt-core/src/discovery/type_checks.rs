//! Type compatibility of writers and readers (XTypes 1.3 §7.6.3.7): pending pairs and verdicts.
//!
//! Types are opaque bytes here. Equal type information denotes the same type. If it differs, the
//! driver is notified by [`Event::TypeChecks`], takes the pairs with
//! [`crate::Participant::poll_type_check`] and answers with
//! [`crate::Participant::set_type_verdict`]. The match waits for the answer without a time limit.
//! Unless [`crate::Participant::check_types`] was called, type names decide. They also decide if
//! one side has no type information, unless the reader's `force_type_validation` is set.
//!
//! Bounds: one entry for each pair with the same topic and type name whose type information
//! differs, until one of the two is deleted.

use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::event::Event;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::{Guid, GuidPrefix};

/// Pair with the same topic whose type information differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeCheck {
    /// GUID of the writer.
    pub writer: Guid,
    /// GUID of the reader.
    pub reader: Guid,
}

/// Verdict on the types of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeVerdict {
    /// The types are compatible, or nothing is known and nothing forbids the match.
    Compatible,
    /// The types are compatible here, but another implementation may refuse the pair: see
    /// [`crate::Participant::cautions`].
    CompatibleWithCaution {
        /// Description of the difference.
        what: Box<str>,
    },
    /// The types are incompatible.
    Incompatible {
        /// Description of the incompatibility.
        reason: Box<str>,
    },
}

/// Present knowledge about a pair.
pub(super) enum Compatibility {
    Yes,
    /// A verdict is pending.
    Pending,
    No(String),
}

#[derive(Debug, Default)]
pub(crate) struct TypeChecks {
    pub(crate) is_on: bool,
    /// Verdicts; `None`: pending.
    verdicts: BTreeMap<TypeCheck, Option<TypeVerdict>>,
    /// Pairs ordered by reader.
    by_reader: BTreeSet<(Guid, Guid)>,
    /// Pairs that were not polled yet; some may have been removed.
    queued: VecDeque<TypeCheck>,
}

impl TypeChecks {
    pub(crate) fn len(&self) -> usize {
        self.verdicts.len()
    }

    pub(super) fn compatibility(
        &mut self,
        ctx: &mut Context,
        publication: &PublicationData,
        subscription: &SubscriptionData,
    ) -> Compatibility {
        let (writer, reader) = (&publication.type_information, &subscription.type_information);
        let (Some(writer), Some(reader)) = (writer, reader) else {
            let side = if writer.is_none() { "writer" } else { "reader" };
            return match subscription.qos.type_consistency.force_type_validation {
                true => {
                    Compatibility::No(alloc::format!("force_type_validation is set, but the {side} announces no type"))
                }
                false => Compatibility::Yes,
            };
        };
        if writer == reader || !self.is_on {
            return Compatibility::Yes;
        }
        let check = TypeCheck { writer: publication.guid, reader: subscription.guid };
        match self.verdicts.get(&check) {
            Some(Some(TypeVerdict::Compatible | TypeVerdict::CompatibleWithCaution { .. })) => Compatibility::Yes,
            Some(Some(TypeVerdict::Incompatible { reason })) => Compatibility::No(String::from(&**reason)),
            Some(None) => Compatibility::Pending,
            None => {
                self.verdicts.insert(check, None);
                self.by_reader.insert((check.reader, check.writer));
                self.queued.push_back(check);
                ctx.notify(Event::TypeChecks);
                Compatibility::Pending
            }
        }
    }

    /// Returns the pairs that others may refuse, with the reason.
    pub(super) fn cautions(&self) -> impl Iterator<Item = (TypeCheck, &str)> {
        self.verdicts.iter().filter_map(|(check, verdict)| match verdict {
            Some(TypeVerdict::CompatibleWithCaution { what }) => Some((*check, &**what)),
            _ => None,
        })
    }

    /// Removes the pairs of an endpoint that was deleted or rediscovered.
    pub(crate) fn remove_endpoint(&mut self, ctx: &mut Context, guid: Guid) {
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

    /// Removes the pairs of a departed participant.
    pub(super) fn remove_participant(&mut self, ctx: &mut Context, prefix: GuidPrefix) {
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
            self.queued.clear();
        }
    }

    /// Returns the next pending pair that was not polled.
    pub(crate) fn poll(&mut self) -> Option<TypeCheck> {
        loop {
            let check = self.queued.pop_front()?;
            if self.verdicts.get(&check).is_some_and(Option::is_none) {
                return Some(check);
            }
        }
    }
}

impl Discovery {
    /// Sets the verdict on a pair, and matches it if nothing else forbids that.
    pub(crate) fn set_type_verdict(&mut self, call: &mut Call<'_>, check: TypeCheck, verdict: TypeVerdict) {
        let Some(waiting) = self.type_checks.verdicts.get_mut(&check).filter(|verdict| verdict.is_none()) else {
            return;
        };
        let has_caution = matches!(verdict, TypeVerdict::CompatibleWithCaution { .. });
        *waiting = Some(verdict);
        let publication = self.publication(call.ctx, call.endpoints, check.writer).cloned();
        let subscription = self.subscription(call.ctx, call.endpoints, check.reader).cloned();
        let (Some(publication), Some(subscription)) = (publication, subscription) else { return };
        if let Some(index) = call.endpoints.local_reader(check.reader) {
            self.match_reader(call, index, &publication);
        }
        if let Some(index) = call.endpoints.local_writer(call.ctx, check.writer) {
            self.match_writer(call, index, &subscription);
        }
        if has_caution {
            call.ctx.notify(Event::PairsCautioned);
        }
    }

    /// Returns the discovery data of a remote or local writer.
    #[must_use]
    pub(crate) fn publication<'a>(
        &'a self,
        ctx: &Context,
        endpoints: &'a Endpoints,
        guid: Guid,
    ) -> Option<&'a PublicationData> {
        if guid.prefix != ctx.header.prefix {
            return self.publications.get(&guid).map(|data| &**data);
        }
        endpoints.local_writer(ctx, guid).and_then(|index| endpoints.writers.get(index)).map(|writer| &*writer.data)
    }

    /// Returns the discovery data of a remote or local reader.
    #[must_use]
    pub(crate) fn subscription<'a>(
        &'a self,
        ctx: &Context,
        endpoints: &'a Endpoints,
        guid: Guid,
    ) -> Option<&'a SubscriptionData> {
        if guid.prefix != ctx.header.prefix {
            return self.subscriptions.get(&guid).map(|data| &**data);
        }
        endpoints.local_reader(guid).and_then(|index| endpoints.readers.get(index)).map(|reader| &*reader.data)
    }
}

impl Endpoints {
    fn local_writer(&self, ctx: &Context, guid: Guid) -> Option<u32> {
        let index = *self.writer_ids.get(&guid.entity_id)?;
        (guid.prefix == ctx.header.prefix).then_some(index)
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
}
