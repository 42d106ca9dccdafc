//! Types of remote endpoints: the TypeInformation that an endpoint announces, and the type
//! definitions that the TypeLookup service of its participant returns (XTypes 1.3 §7.6.3.3).

use std::fmt;
use std::time::Duration as StdDuration;

use takt_core::{Instant, OfferedType, Participant, TypeAnswer, TypeRequestId};
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::type_lookup::{EquivalenceId, TYPE_IDS_MAX, UnionForm};
use takt_wire::{Guid, GuidPrefix};
use takt_xtypes::assignability::Inassignable;
use takt_xtypes::type_object::{
    MAX_TYPE_OBJECT_LEN, TypeError, TypeIdentifier, TypeInformation, TypeObject, TypeRegistry,
};
use takt_xtypes::{DecodeError, TypeSupport};

use super::DynamicTypeSupport;
use crate::consistency::{self, Definition, announced};
use crate::runtime::clock;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::{DomainParticipant, Duration, Error, Result};

/// Time after which an unanswered request is repeated with the other union form.
const REQUEST_TIMEOUT: StdDuration = StdDuration::from_millis(500);
/// Period of the search for an endpoint of the topic.
const SEARCH_PERIOD: StdDuration = StdDuration::from_millis(20);
/// Consecutive answers without a new definition after which the server is assumed not to know the
/// types.
const EMPTY_ANSWERS_MAX: u32 = 2;

/// Reason why a type cannot be learned.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeUnavailable {
    /// No remote endpoint has the topic.
    NoEndpoint {
        /// Name of the topic.
        topic_name: String,
    },
    /// The endpoint announces only the name of its type.
    NotAnnounced {
        /// GUID of the endpoint.
        endpoint: Guid,
        /// Name of the endpoint's type.
        type_name: String,
    },
    /// The TypeInformation of the endpoint is malformed.
    Malformed {
        /// GUID of the endpoint.
        endpoint: Guid,
        /// Description of the error.
        what: String,
        /// Error of the parser, if it reported one.
        source: Option<DecodeError>,
    },
    /// The endpoint's participant has no TypeLookup service.
    NoService {
        /// GUID of the endpoint.
        endpoint: Guid,
    },
    /// The endpoint's participant did not answer before the timeout.
    NoAnswer {
        /// GUID of the endpoint.
        endpoint: Guid,
    },
    /// The answers of the endpoint's participant lack definitions.
    Incomplete {
        /// GUID of the endpoint.
        endpoint: Guid,
        /// Number of missing definitions.
        missing: usize,
    },
    /// The definitions are complete, but the type is not supported.
    Unusable {
        /// Name of the type.
        type_name: String,
        /// Reason why it is not supported.
        what: String,
        /// Error of the definitions, if they are invalid.
        source: Option<TypeError>,
    },
}

impl fmt::Display for TypeUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEndpoint { topic_name } => write!(f, "topic {topic_name} has no writer or reader"),
            Self::NotAnnounced { endpoint, type_name } => {
                write!(f, "{endpoint} announces only the name of its type, {type_name}")
            }
            Self::Malformed { endpoint, what, .. } => {
                write!(f, "type information of {endpoint} cannot be parsed: {what}")
            }
            Self::NoService { endpoint } => {
                write!(f, "the participant of {endpoint} announces a type but offers no type lookup service")
            }
            Self::NoAnswer { endpoint } => write!(f, "the participant of {endpoint} did not answer in time"),
            Self::Incomplete { endpoint, missing } => {
                write!(
                    f,
                    "the participant of {endpoint} does not return {missing} of the type definitions, or one exceeds the limit \
                     of {} KiB",
                    MAX_TYPE_OBJECT_LEN / 1024
                )
            }
            Self::Unusable { type_name, what, .. } => write!(f, "type {type_name}: {what}"),
        }
    }
}

impl std::error::Error for TypeUnavailable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed { source, .. } => source.as_ref().map(|source| source as _),
            Self::Unusable { source, .. } => source.as_ref().map(|source| source as _),
            Self::NoEndpoint { .. }
            | Self::NotAnnounced { .. }
            | Self::NoService { .. }
            | Self::NoAnswer { .. }
            | Self::Incomplete { .. } => None,
        }
    }
}

impl From<TypeUnavailable> for Error {
    fn from(reason: TypeUnavailable) -> Self {
        Self::TypeUnavailable(reason)
    }
}

/// Attributes of an endpoint that identify its type.
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

/// Registers definitions with the core so that it serves them to remote participants. Returns false
/// if they exceed its limits.
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

/// Registers a type of the program with the core. Returns the TypeInformation to announce, or
/// `None` if the core cannot serve the type.
pub(crate) fn announce<T: TypeSupport>(core: &mut Participant) -> Option<Vec<u8>> {
    let mut types = TypeRegistry::new();
    let information = T::type_information(&mut types);
    let known = !information.complete.type_id.is_none();
    (known && offer(core, &types, &information)).then(|| information.to_bytes())
}

/// The result of a comparison of the types of a writer and a reader; see
/// [`DomainParticipant::compare_types`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeComparison {
    /// The types permit a match.
    Compatible,
    /// The types permit a match, but other implementations may refuse it.
    CompatibleWithCaution {
        /// The members that differ, and how.
        what: String,
    },
    /// The types prevent a match.
    Incompatible {
        /// The member that differs, and how.
        reason: String,
    },
}

impl DomainParticipant {
    /// Explains why the types of a remote writer and a remote reader with equal type names prevent
    /// a match. Returns `None` if they permit it, or if a type is unavailable and the reader does
    /// not set `force_type_validation`. Like [`compare_types`](Self::compare_types), but without
    /// cautions.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant is closed, [`Error::BadParameter`] for a
    /// negative timeout.
    pub fn type_difference(
        &self,
        writer: &PublicationData,
        reader: &SubscriptionData,
        timeout: impl Into<Duration>,
    ) -> Result<Option<String>> {
        Ok(match self.compare_types(writer, reader, timeout)? {
            TypeComparison::Incompatible { reason } => Some(reason),
            TypeComparison::Compatible | TypeComparison::CompatibleWithCaution { .. } => None,
        })
    }

    /// Compares the types of a remote writer and a remote reader with equal type names. Waits up to
    /// `timeout` for their participants to answer. A type that remains unavailable permits the
    /// match unless the reader sets `force_type_validation`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant is closed, [`Error::BadParameter`] for a
    /// negative timeout.
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
        let forced = |reason: String| match reader.qos.type_consistency.force_type_validation {
            true => TypeComparison::Incompatible { reason },
            false => TypeComparison::Compatible,
        };
        let of_writer = announced(writer.type_information.as_deref());
        let (Some(of_writer), Some(of_reader)) = (of_writer, announced(reader.type_information.as_deref())) else {
            return Ok(forced("force_type_validation is set, but an endpoint announces no type".to_owned()));
        };
        if consistency::is_same(&of_writer, &of_reader) {
            return Ok(TypeComparison::Compatible);
        }
        let learned = self.definition(writer.guid, of_writer, deadline).and_then(|of_writer| {
            let of_reader = self.definition(reader.guid, of_reader, deadline)?;
            Ok(consistency::compare(writer, reader, &of_writer, &of_reader))
        });
        match learned {
            Ok(Ok(cautions)) if cautions.is_empty() => Ok(TypeComparison::Compatible),
            Ok(Ok(cautions)) => {
                let guids = [writer.guid, reader.guid];
                let vendors = self.inspect(|core| guids.map(|guid| core.vendor_of(guid.prefix)))?;
                Ok(match consistency::involves_cyclone(vendors) {
                    true => TypeComparison::Incompatible { reason: consistency::refused_by_cyclone(&cautions) },
                    false => TypeComparison::CompatibleWithCaution { what: consistency::join_cautions(&cautions) },
                })
            }
            Ok(Err(reason @ Inassignable::Differs { .. })) => {
                Ok(TypeComparison::Incompatible { reason: reason.to_string() })
            }
            Ok(Err(reason)) => Ok(forced(reason.to_string())),
            Err(Error::TypeUnavailable(reason)) => Ok(forced(reason.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Returns the definition of an endpoint's type, the complete form if available.
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

    /// Learns the type of a topic from a remote writer or reader. Waits up to `timeout` until an
    /// endpoint is discovered and its participant answers. Writers are queried before readers.
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
            // Endpoints that announce their type come first.
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
            self.wait_search_period(now)?;
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

    /// Starts to learn the type of a writer without blocking. Poll the result with
    /// [`TypeLearning::poll`]. The writer's participant has `timeout` to answer.
    ///
    /// # Errors
    /// [`Error::TypeUnavailable`] if the writer announces no type or a malformed one;
    /// [`Error::BadParameter`] for a negative timeout.
    pub fn start_learning_type_of_writer(
        &self,
        data: &PublicationData,
        timeout: impl Into<Duration>,
    ) -> Result<TypeLearning> {
        let source = TypeSource::from(data);
        let deadline = deadline_after(timeout)?;
        let (information, root, listed) = announced_type(source)?;
        let type_fetch = TypeFetch::new(source.guid, root, listed);
        Ok(TypeLearning {
            participant: self.clone(),
            type_fetch,
            type_name: source.type_name.to_owned(),
            information,
            deadline,
        })
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
        self.engine().inspect(|driver| {
            let core = &driver.core;
            let publications = core.discovered_publications().filter(|data| data.topic_name == topic_name);
            let subscriptions = core.discovered_subscriptions().filter(|data| data.topic_name == topic_name);
            Ok((publications.cloned().collect(), subscriptions.cloned().collect()))
        })
    }

    /// Drives discovery for one [`SEARCH_PERIOD`].
    fn wait_search_period(&self, now: Instant) -> Result<()> {
        let until = Some(now.after(SEARCH_PERIOD));
        match self.engine().block_on(&EventCount::new(), || until, |_, _| Ok(None::<()>)) {
            Ok(()) | Err(Error::Timeout { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn learn_from(&self, source: TypeSource<'_>, deadline: Option<Instant>) -> Result<DynamicTypeSupport> {
        let endpoint = source.guid;
        let (information, root, listed) = announced_type(source)?;
        let mut types = TypeRegistry::new();
        fetch(self.engine(), &mut types, endpoint, &root, listed, deadline)?;
        let type_name = source.type_name.to_owned();
        DynamicTypeSupport::learned(type_name, endpoint.entity_id.has_key(), &root, information, types)
    }
}

/// Returns the announced type of an endpoint: its TypeInformation, the identifier to look up, and
/// the listed dependencies.
fn announced_type(source: TypeSource<'_>) -> Result<(TypeInformation, TypeIdentifier, Vec<TypeIdentifier>)> {
    let endpoint = source.guid;
    let Some(bytes) = source.information else {
        return Err(TypeUnavailable::NotAnnounced { endpoint, type_name: source.type_name.to_owned() }.into());
    };
    let malformed =
        |error: DecodeError| TypeUnavailable::Malformed { endpoint, what: error.to_string(), source: Some(error) };
    let information = TypeInformation::parse(bytes).map_err(malformed)?;
    let form = if information.complete.type_id.is_none() { &information.minimal } else { &information.complete };
    let listed = form.dependencies.iter().map(|(identifier, _)| identifier.clone()).collect();
    let root = form.type_id.clone();
    Ok((information, root, listed))
}

/// Returns the end of a timeout of the application; `None` if it is infinite.
fn deadline_after(timeout: impl Into<Duration>) -> Result<Option<Instant>> {
    Ok(clock::deadline(clock::now(), clock::timeout(timeout)?))
}

/// Requests all definitions that make up `root` from an endpoint's participant. The first request
/// names those that are `listed`.
fn fetch(
    engine: &Engine,
    types: &mut TypeRegistry,
    endpoint: Guid,
    root: &TypeIdentifier,
    listed: Vec<TypeIdentifier>,
    deadline: Option<Instant>,
) -> Result<()> {
    let progress = std::sync::Arc::clone(&engine.enter()?.type_answers);
    let mut type_fetch = TypeFetch::new(endpoint, root.clone(), listed);
    loop {
        if type_fetch.step(engine, deadline)? {
            *types = std::mem::take(&mut type_fetch.types);
            return Ok(());
        }
        let until = [deadline, type_fetch.repetition()].into_iter().flatten().min();
        match engine.block_on(&progress, || until, |driver, _| Ok(type_fetch.take_answer(&mut driver.core))) {
            Ok(()) | Err(Error::Timeout { .. }) => {}
            result => return result,
        }
    }
}

/// Outstanding request.
#[derive(Debug)]
struct Request {
    id: TypeRequestId,
    wanted: Vec<TypeIdentifier>,
    /// Time at which the request is repeated with the other union form.
    repetition: Instant,
}

/// Requests to the participant of one endpoint until all definitions of its type are known. At most
/// one request is outstanding.
#[derive(Debug)]
struct TypeFetch {
    endpoint: Guid,
    root: TypeIdentifier,
    types: TypeRegistry,
    wanted: Vec<TypeIdentifier>,
    /// Consecutive answers without a new definition.
    empty_answers: u32,
    form: UnionForm,
    request: Option<Request>,
    answer: Option<(TypeAnswer, Vec<TypeIdentifier>)>,
}

impl TypeFetch {
    fn new(endpoint: Guid, root: TypeIdentifier, listed: Vec<TypeIdentifier>) -> Self {
        let types = TypeRegistry::new();
        let mut wanted = types.missing(&root);
        wanted.extend(listed.into_iter().filter(|identifier| *identifier != root && identifier.hash().is_some()));
        let (empty_answers, form, request, answer) = Default::default();
        Self { endpoint, root, types, wanted, empty_answers, form, request, answer }
    }

    /// Returns the time at which the outstanding request is repeated.
    fn repetition(&self) -> Option<Instant> {
        self.request.as_ref().map(|request| request.repetition)
    }

    /// Takes the answer to the outstanding request from the core, if it has arrived.
    fn take_answer(&mut self, core: &mut Participant) -> Option<()> {
        let answer = core.take_type_answer(self.request.as_ref()?.id)?;
        self.answer = self.request.take().map(|request| (answer, request.wanted));
        Some(())
    }

    /// Cancels the outstanding request.
    fn cancel(&mut self, core: &mut Participant) {
        if let Some(request) = self.request.take() {
            core.cancel_type_request(request.id);
        }
    }

    /// Performs all steps that do not block. Returns true when all definitions are known.
    fn step(&mut self, engine: &Engine, deadline: Option<Instant>) -> Result<bool> {
        let endpoint = self.endpoint;
        if self.answer.is_none() && self.request.is_some() {
            engine.call(|driver, _| Ok(self.take_answer(&mut driver.core)))?;
        }
        if let Some((answer, wanted)) = self.answer.take() {
            self.store(answer, &wanted)?;
        }
        let missing = self.types.missing(&self.root);
        if missing.is_empty() {
            return Ok(true);
        }
        if self.empty_answers > EMPTY_ANSWERS_MAX {
            return Err(TypeUnavailable::Incomplete { endpoint, missing: missing.len() }.into());
        }
        let now = clock::now();
        let is_late = deadline.is_some_and(|deadline| now >= deadline);
        if self.repetition().is_some_and(|repetition| is_late || now >= repetition) {
            engine.inspect(|driver| {
                self.cancel(&mut driver.core);
                Ok(())
            })?;
            // A server does not announce which form it understands.
            self.form = self.form.other();
        }
        if is_late {
            return Err(TypeUnavailable::NoAnswer { endpoint }.into());
        }
        if self.request.is_none() {
            self.send_request(engine, missing)?;
        }
        Ok(false)
    }

    /// Sends one request for the missing definitions.
    fn send_request(&mut self, engine: &Engine, missing: Vec<TypeIdentifier>) -> Result<()> {
        let participant: GuidPrefix = self.endpoint.prefix;
        if !engine.inspect(|driver| Ok(driver.core.serves_types(participant)))? {
            return Err(TypeUnavailable::NoService { endpoint: self.endpoint }.into());
        }
        // The announced list may be wrong, or longer than one answer: later requests name the
        // definitions that are known to be missing.
        self.wanted.retain(|identifier| self.types.get(identifier).is_none());
        if self.wanted.is_empty() || self.empty_answers > 0 {
            self.wanted = missing;
        }
        let wanted = self.wanted.clone();
        let ids = wanted.iter().filter_map(|id| EquivalenceId::from_bytes(&id.to_bytes()));
        let ids: Vec<EquivalenceId> = ids.take(TYPE_IDS_MAX).collect();
        let form = self.form;
        let id = engine.call(|driver, now| Ok(driver.core.request_types(now, participant, &ids, form)?))?;
        self.request = Some(Request { id, wanted, repetition: clock::now().after(REQUEST_TIMEOUT) });
        Ok(())
    }

    /// Stores the definitions of an answer that were requested and that match their identifiers.
    fn store(&mut self, answer: TypeAnswer, wanted: &[TypeIdentifier]) -> Result<()> {
        let (endpoint, before) = (self.endpoint, self.types.len());
        match answer {
            TypeAnswer::Types { types: found, big_endian: false, .. } => {
                for (id, object) in found {
                    let identifier = TypeIdentifier::parse(&id.to_bytes());
                    let (Ok(identifier), Ok(object)) = (identifier, TypeObject::parse(&object)) else { continue };
                    if wanted.contains(&identifier) {
                        // Rejects a definition that does not match its identifier or is too large;
                        // the identifier stays missing.
                        let stored = self.types.insert_as(&identifier, object);
                        drop(stored);
                    }
                }
            }
            // A type identifier is the hash of the definition in little endian. No known
            // implementation answers a little-endian request in big endian.
            TypeAnswer::Types { .. } => {
                let what = "definitions in big endian".into();
                return Err(TypeUnavailable::Malformed { endpoint, what, source: None }.into());
            }
            TypeAnswer::Gone => return Err(TypeUnavailable::NoAnswer { endpoint }.into()),
            TypeAnswer::Refused(_) | TypeAnswer::Dependencies { .. } => {}
        }
        self.empty_answers = if self.types.len() > before { 0 } else { self.empty_answers + 1 };
        self.form = UnionForm::default();
        Ok(())
    }
}

/// Non-blocking lookup of a remote writer's type. Dropping it cancels the request.
pub struct TypeLearning {
    participant: DomainParticipant,
    type_fetch: TypeFetch,
    type_name: String,
    information: TypeInformation,
    deadline: Option<Instant>,
}

impl TypeLearning {
    /// Performs all steps that do not block. Returns `None` while an answer is outstanding. Call it
    /// when answers may have arrived, and at least every 500 ms, so that it repeats a lost request.
    /// Do not call it after it has returned a type or an error.
    ///
    /// # Errors
    /// [`Error::TypeUnavailable`] with the reason, also when the timeout expires;
    /// [`Error::OutOfResources`] if too many requests are outstanding.
    pub fn poll(&mut self) -> Result<Option<DynamicTypeSupport>> {
        if !self.type_fetch.step(self.participant.engine(), self.deadline)? {
            return Ok(None);
        }
        let (root, types) = (&self.type_fetch.root, std::mem::take(&mut self.type_fetch.types));
        let has_key = self.type_fetch.endpoint.entity_id.has_key();
        DynamicTypeSupport::learned(self.type_name.clone(), has_key, root, self.information.clone(), types).map(Some)
    }
}

impl Drop for TypeLearning {
    fn drop(&mut self) {
        let Self { participant, type_fetch, .. } = self;
        let canceled = participant.engine().inspect(|driver| {
            type_fetch.cancel(&mut driver.core);
            Ok(())
        });
        // A closed participant has no requests.
        drop(canceled);
    }
}

impl fmt::Debug for TypeLearning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeLearning").field("type_name", &self.type_name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_definitions_may_exceed_the_limit() {
        let error = TypeUnavailable::Incomplete { endpoint: Guid::default(), missing: 1 }.to_string();
        assert!(error.contains("does not return 1 of the type definitions, or one exceeds the limit"), "{error}");
    }
}
