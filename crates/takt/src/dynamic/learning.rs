//! Types from other participants: what an endpoint announces of its type, and the definitions that its participant
//! gives out (XTypes 1.3 §7.6.3.3).

use std::fmt;
use std::time::Duration as StdDuration;

use takt_core::{Instant, OfferedType, Participant, TypeAnswer};
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::type_lookup::{EquivalenceId, TYPE_IDS_MAX, UnionForm};
use takt_wire::{Guid, GuidPrefix};
use takt_xtypes::TypeSupport;
use takt_xtypes::assignability::Inassignable;
use takt_xtypes::type_object::{MAX_TYPE_OBJECT_LEN, TypeIdentifier, TypeInformation, TypeObject, TypeRegistry};

use super::DynamicTypeSupport;
use crate::consistency::{self, Definition, announced};
use crate::runtime::clock;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::{DomainParticipant, Duration, Error, Result};

/// How long one request waits for its answer before it is sent again, in the other form.
const PATIENCE: StdDuration = StdDuration::from_millis(500);
/// How often to look whether an endpoint of the topic has appeared.
const LOOK_PERIOD: StdDuration = StdDuration::from_millis(20);
/// Answers in a row that bring nothing new before a server counts as not knowing the types.
const FUTILE_ANSWERS_MAX: u32 = 2;

/// Why a type cannot be learned.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeUnavailable {
    /// No endpoint of another participant has the topic.
    NoEndpoint {
        /// The topic.
        topic_name: String,
    },
    /// The endpoint announces nothing of its type but the name.
    NotAnnounced {
        /// The endpoint.
        endpoint: Guid,
        /// The name of its type.
        type_name: String,
    },
    /// What it announces of its type cannot be read.
    Malformed {
        /// The endpoint.
        endpoint: Guid,
        /// What is wrong.
        what: String,
    },
    /// Its participant has no service that gives out types.
    NoService {
        /// The endpoint.
        endpoint: Guid,
    },
    /// Its participant did not answer in time.
    NoAnswer {
        /// The endpoint.
        endpoint: Guid,
    },
    /// Its participant answered without what was asked for.
    Incomplete {
        /// The endpoint.
        endpoint: Guid,
        /// How many definitions are missing.
        missing: usize,
    },
    /// The definitions are there and make no type that can be worked with.
    Unusable {
        /// The name of the type.
        type_name: String,
        /// Why not.
        what: String,
    },
}

impl fmt::Display for TypeUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEndpoint { topic_name } => write!(f, "nobody writes or reads topic {topic_name}"),
            Self::NotAnnounced { endpoint, type_name } => {
                write!(f, "{endpoint} announces of its type no more than the name, {type_name}")
            }
            Self::Malformed { endpoint, what } => {
                write!(f, "what {endpoint} announces of its type cannot be read: {what}")
            }
            Self::NoService { endpoint } => {
                write!(f, "the participant of {endpoint} announces a type, but no service that gives it out")
            }
            Self::NoAnswer { endpoint } => write!(f, "the participant of {endpoint} did not answer in time"),
            Self::Incomplete { endpoint, missing } => {
                write!(
                    f,
                    "the participant of {endpoint} does not give out {missing} of the definitions, or one has more than {} KiB, \
                     which is not taken",
                    MAX_TYPE_OBJECT_LEN / 1024
                )
            }
            Self::Unusable { type_name, what } => write!(f, "type {type_name}: {what}"),
        }
    }
}

impl std::error::Error for TypeUnavailable {}

impl From<TypeUnavailable> for Error {
    fn from(reason: TypeUnavailable) -> Self {
        Self::TypeUnavailable(reason)
    }
}

/// An endpoint as far as its type matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeSource<'a> {
    guid: Guid,
    type_name: &'a str,
    information: Option<&'a [u8]>,
}

impl<'a> From<&'a PublicationData> for TypeSource<'a> {
    fn from(data: &'a PublicationData) -> Self {
        Self { guid: data.guid, type_name: &data.type_name, information: data.type_information.as_deref() }
    }
}

impl<'a> From<&'a SubscriptionData> for TypeSource<'a> {
    fn from(data: &'a SubscriptionData) -> Self {
        Self { guid: data.guid, type_name: &data.type_name, information: data.type_information.as_deref() }
    }
}

/// Makes the definitions known to the core, so that others may ask for them. False if they do not fit its limits.
pub(crate) fn offer(core: &mut Participant, types: &TypeRegistry, information: &TypeInformation) -> bool {
    let id_of = |identifier: &TypeIdentifier| EquivalenceId::from_bytes(&identifier.to_bytes());
    let root = id_of(&information.complete.type_id);
    types.iter().all(|(identifier, object)| {
        let Some(id) = id_of(identifier) else { return true };
        let dependencies = object.dependencies().iter().filter_map(id_of).collect();
        let minimal = if Some(id) == root { id_of(&information.minimal.type_id) } else { None };
        core.offer_type(OfferedType { id, object: object.to_bytes().into(), dependencies, minimal }).is_ok()
    })
}

/// Makes a type of the program known to the core. Returns what to announce of it; nothing if it cannot be given out.
pub(crate) fn announce<T: TypeSupport>(core: &mut Participant) -> Option<Vec<u8>> {
    let mut types = TypeRegistry::new();
    let information = T::type_information(&mut types);
    let known = !information.complete.type_id.is_none();
    (known && offer(core, &types, &information)).then(|| information.to_bytes())
}

/// What comes of comparing the types of a writer and a reader; see [`DomainParticipant::compare_types`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeComparison {
    /// The pair matches as far as the types go.
    Fit,
    /// It does, but other implementations may refuse it.
    FitWithCaution {
        /// The members that differ, and how.
        what: String,
    },
    /// The pair does not match.
    Differ {
        /// The member that differs, and how.
        why: String,
    },
}

impl DomainParticipant {
    /// Why the types of a writer and a reader of others, of one name, keep them apart; `None` if they do not, or if that
    /// cannot be learned and the reader does not insist. As [`compare_types`](Self::compare_types), without cautions.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant is closed, [`Error::BadParameter`] for a negative timeout.
    pub fn type_difference(
        &self,
        writer: &PublicationData,
        reader: &SubscriptionData,
        timeout: impl Into<Duration>,
    ) -> Result<Option<String>> {
        Ok(match self.compare_types(writer, reader, timeout)? {
            TypeComparison::Differ { why } => Some(why),
            TypeComparison::Fit | TypeComparison::FitWithCaution { .. } => None,
        })
    }

    /// Compares the types of a writer and a reader of others, of one name. Waits up to `timeout` for their participants to answer.
    /// What cannot be learned fits, unless the reader's `force_type_validation` is set.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant is closed, [`Error::BadParameter`] for a negative timeout.
    pub fn compare_types(
        &self,
        writer: &PublicationData,
        reader: &SubscriptionData,
        timeout: impl Into<Duration>,
    ) -> Result<TypeComparison> {
        self.compare_types_until(writer, reader, deadline_after(timeout)?)
    }

    fn compare_types_until(
        &self,
        writer: &PublicationData,
        reader: &SubscriptionData,
        deadline: Option<Instant>,
    ) -> Result<TypeComparison> {
        let forced = |why: String| match reader.qos.type_consistency.force_type_validation {
            true => TypeComparison::Differ { why },
            false => TypeComparison::Fit,
        };
        let of_writer = announced(writer.type_information.as_deref());
        let (Some(of_writer), Some(of_reader)) = (of_writer, announced(reader.type_information.as_deref())) else {
            return Ok(forced("force_type_validation is set, and one of them says nothing of its type".to_owned()));
        };
        if consistency::is_same(&of_writer, &of_reader) {
            return Ok(TypeComparison::Fit);
        }
        let learned = self.definition(writer.guid, of_writer, deadline).and_then(|of_writer| {
            let of_reader = self.definition(reader.guid, of_reader, deadline)?;
            Ok(consistency::compared(writer, reader, &of_writer, &of_reader))
        });
        match learned {
            Ok(Ok(cautions)) if cautions.is_empty() => Ok(TypeComparison::Fit),
            Ok(Ok(cautions)) => {
                let guids = [writer.guid, reader.guid];
                let vendors = self.look(|core| guids.map(|guid| core.vendor_of(guid.prefix)))?;
                Ok(match consistency::involves_cyclone(vendors) {
                    true => TypeComparison::Differ { why: consistency::refused_by_cyclone(&cautions) },
                    false => TypeComparison::FitWithCaution { what: consistency::in_words(&cautions) },
                })
            }
            Ok(Err(why @ Inassignable::Differs { .. })) => Ok(TypeComparison::Differ { why: why.to_string() }),
            Ok(Err(why)) => Ok(forced(why.to_string())),
            Err(Error::TypeUnavailable(why)) => Ok(forced(why.to_string())),
            Err(error) => Err(error),
        }
    }

    /// The definition of an endpoint's type, complete if it can be had.
    fn definition(
        &self,
        endpoint: Guid,
        information: TypeInformation,
        deadline: Option<Instant>,
    ) -> Result<Definition> {
        let form = if information.complete.type_id.is_none() { information.minimal } else { information.complete };
        let mut types = TypeRegistry::new();
        let listed = form.dependencies.into_iter().map(|(identifier, _)| identifier).collect();
        fetch(self.engine(), &mut types, endpoint, &form.type_id, listed, deadline)?;
        Ok(Definition { root: form.type_id, types })
    }

    /// Learns the type of a topic from whoever writes or reads it. Waits up to `timeout` for an endpoint to appear and
    /// for its participant to answer; writers are asked first.
    ///
    /// # Errors
    /// [`Error::TypeUnavailable`] with the reason, [`Error::BadParameter`] for a negative timeout.
    pub fn learn_type(&self, topic_name: &str, timeout: impl Into<Duration>) -> Result<DynamicTypeSupport> {
        self.learn_type_until(topic_name, deadline_after(timeout)?)
    }

    fn learn_type_until(&self, topic_name: &str, deadline: Option<Instant>) -> Result<DynamicTypeSupport> {
        let mut reason = Error::from(TypeUnavailable::NoEndpoint { topic_name: topic_name.to_owned() });
        loop {
            let (publications, subscriptions) = self.endpoints_of(topic_name)?;
            let sources = publications.iter().map(TypeSource::from).chain(subscriptions.iter().map(TypeSource::from));
            // One that announces its type is worth more than one that was there first.
            let mut sources: Vec<_> = sources.collect();
            sources.sort_by_key(|source| source.information.is_none());
            for source in sources {
                match self.learn_from(source, deadline) {
                    Err(error @ Error::TypeUnavailable(_)) => reason = error,
                    result => return result,
                }
            }
            let now = clock::now();
            let impossible = matches!(&reason, Error::TypeUnavailable(reason) if !matches!(reason, TypeUnavailable::NoEndpoint { .. } | TypeUnavailable::NoAnswer { .. }));
            if impossible || deadline.is_some_and(|deadline| now >= deadline) {
                return Err(reason);
            }
            self.linger(now)?;
        }
    }

    /// Learns the type of a writer, as `learn_type` does.
    ///
    /// # Errors
    /// [`Error::TypeUnavailable`] with the reason, [`Error::BadParameter`] for a negative timeout.
    pub fn learn_type_of_writer(
        &self,
        data: &PublicationData,
        timeout: impl Into<Duration>,
    ) -> Result<DynamicTypeSupport> {
        self.learn_from(data.into(), deadline_after(timeout)?)
    }

    /// Learns the type of a reader, as `learn_type` does.
    ///
    /// # Errors
    /// [`Error::TypeUnavailable`] with the reason, [`Error::BadParameter`] for a negative timeout.
    pub fn learn_type_of_reader(
        &self,
        data: &SubscriptionData,
        timeout: impl Into<Duration>,
    ) -> Result<DynamicTypeSupport> {
        self.learn_from(data.into(), deadline_after(timeout)?)
    }

    fn endpoints_of(&self, topic_name: &str) -> Result<(Vec<PublicationData>, Vec<SubscriptionData>)> {
        self.engine().look(|driver| {
            let core = &driver.core;
            let publications = core.discovered_publications().filter(|data| data.topic_name == topic_name);
            let subscriptions = core.discovered_subscriptions().filter(|data| data.topic_name == topic_name);
            Ok((publications.cloned().collect(), subscriptions.cloned().collect()))
        })
    }

    /// Lets discovery go on for a moment.
    fn linger(&self, now: Instant) -> Result<()> {
        let until = Some(now.after(LOOK_PERIOD));
        match self.engine().block_on(&EventCount::new(), || until, |_, _| Ok(None::<()>)) {
            Ok(()) | Err(Error::Timeout { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn learn_from(&self, source: TypeSource<'_>, deadline: Option<Instant>) -> Result<DynamicTypeSupport> {
        let endpoint = source.guid;
        let type_name = source.type_name.to_owned();
        let Some(bytes) = source.information else {
            return Err(TypeUnavailable::NotAnnounced { endpoint, type_name }.into());
        };
        let information = TypeInformation::parse(bytes)
            .map_err(|error| TypeUnavailable::Malformed { endpoint, what: error.to_string() })?;
        let form = if information.complete.type_id.is_none() { &information.minimal } else { &information.complete };
        let mut types = TypeRegistry::new();
        let listed = form.dependencies.iter().map(|(identifier, _)| identifier.clone()).collect();
        fetch(self.engine(), &mut types, endpoint, &form.type_id, listed, deadline)?;
        let root = form.type_id.clone();
        DynamicTypeSupport::learned(type_name, endpoint.entity_id.has_key(), &root, information, types)
    }
}

/// When a time limit of the application's ends; `None` never comes.
fn deadline_after(timeout: impl Into<Duration>) -> Result<Option<Instant>> {
    Ok(clock::deadline(clock::now(), clock::timeout(timeout)?))
}

/// Asks an endpoint's participant for all definitions that make up `root`, those that it has `listed` at once.
fn fetch(
    engine: &Engine,
    types: &mut TypeRegistry,
    endpoint: Guid,
    root: &TypeIdentifier,
    listed: Vec<TypeIdentifier>,
    deadline: Option<Instant>,
) -> Result<()> {
    let mut futile = 0;
    let mut wanted = types.missing(root);
    wanted.extend(listed.into_iter().filter(|identifier| identifier != root && identifier.hash().is_some()));
    loop {
        let missing = types.missing(root);
        if missing.is_empty() {
            return Ok(());
        }
        if futile > FUTILE_ANSWERS_MAX {
            return Err(TypeUnavailable::Incomplete { endpoint, missing: missing.len() }.into());
        }
        // The list may be wrong, or more than an answer holds: what is known to be missing is asked for in the end.
        wanted.retain(|identifier| types.get(identifier).is_none());
        if wanted.is_empty() || futile > 0 {
            wanted = missing;
        }
        let before = types.len();
        ask(engine, types, endpoint, &wanted, deadline)?;
        futile = if types.len() > before { 0 } else { futile + 1 };
    }
}

/// One request, repeated until it is answered; keeps what is right in the answer.
fn ask(
    engine: &Engine,
    types: &mut TypeRegistry,
    endpoint: Guid,
    wanted: &[TypeIdentifier],
    deadline: Option<Instant>,
) -> Result<()> {
    let ids: Vec<EquivalenceId> =
        wanted.iter().filter_map(|id| EquivalenceId::from_bytes(&id.to_bytes())).take(TYPE_IDS_MAX).collect();
    match answer(engine, endpoint, &ids, deadline)? {
        TypeAnswer::Types { types: found, big_endian: false, .. } => {
            for (id, object) in found {
                let identifier = TypeIdentifier::parse(&id.to_bytes());
                let (Ok(identifier), Ok(object)) = (identifier, TypeObject::parse(&object)) else { continue };
                if wanted.contains(&identifier) {
                    // A definition that belongs to another identifier, or is too large, stays missing.
                    let kept = types.insert_as(&identifier, object);
                    drop(kept);
                }
            }
            Ok(())
        }
        // The hashes are over little endian; nobody was seen to answer otherwise to a request that is.
        TypeAnswer::Types { .. } => {
            Err(TypeUnavailable::Malformed { endpoint, what: "definitions in big endian".into() }.into())
        }
        TypeAnswer::Gone => Err(TypeUnavailable::NoAnswer { endpoint }.into()),
        TypeAnswer::Refused(_) | TypeAnswer::Dependencies { .. } => Ok(()),
    }
}

/// Requests of which the last is waited for; the others are forgotten.
fn answer(engine: &Engine, endpoint: Guid, ids: &[EquivalenceId], deadline: Option<Instant>) -> Result<TypeAnswer> {
    let whom: GuidPrefix = endpoint.prefix;
    let progress = std::sync::Arc::clone(&engine.enter()?.type_answers);
    let mut form = UnionForm::default();
    loop {
        let now = clock::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Err(TypeUnavailable::NoAnswer { endpoint }.into());
        }
        if !engine.look(|driver| Ok(driver.core.serves_types(whom)))? {
            return Err(TypeUnavailable::NoService { endpoint }.into());
        }
        let request = engine.call(|driver, now| Ok(driver.core.request_types(now, whom, ids, form)?))?;
        let until = [deadline, Some(now.after(PATIENCE))].into_iter().flatten().min();
        let result = engine.block_on(&progress, || until, |driver, _| Ok(driver.core.take_type_answer(request)));
        match result {
            Err(Error::Timeout { .. }) => engine.look(|driver| {
                driver.core.cancel_type_request(request);
                Ok(())
            })?,
            result => return result,
        }
        // Which form a server understands cannot be seen from outside.
        form = form.other();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_that_are_missing_may_exceed_the_limit() {
        let error = TypeUnavailable::Incomplete { endpoint: Guid::default(), missing: 1 }.to_string();
        assert!(error.contains("does not give out 1 of the definitions, or one has more than 256 KiB"), "{error}");
    }
}
