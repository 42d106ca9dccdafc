//! Topics that are filtered by content (DDS 1.4 §2.2.2.3.3).
//!
//! The expression is the `Condition` of DDS 1.4 annex B ([`sql`]). A reader evaluates it on each sample's payload before
//! the sample enters its history, so what does not pass takes no place there, under KEEP_LAST displaces nothing, starts no
//! period of DEADLINE and creates no instance. What happens to an instance, disposing and unregistering, is not filtered.
//! The filter is announced, so that writers need not send what does not pass; the reader evaluates all the same.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use takt_core::{ContentFilter, FilterFactory, ReaderFilter, ReaderHandle};
use takt_wire::discovery::ContentFilterProperty;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::sql::{self, Condition, Filter};

use crate::dynamic::DynamicTypeSupport;
use crate::{Error, Result, Topic, TypeSupport};

/// The language of expressions that DDS defines (RTPS 2.5 §8.7.3).
const FILTER_CLASS: &str = "DDSSQL";

/// Octets of names, expression and parameters together: they are announced in one parameter of a list.
const ANNOUNCED_LEN_MAX: usize = 32 * 1024;

/// The samples of a topic that pass a filter. Readers are created of it as of the topic. Handles are clones of one
/// another.
pub struct ContentFilteredTopic<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    name: String,
    topic: Topic<T>,
    expression: String,
    state: Mutex<State>,
}

struct State {
    /// The expression and its present parameters, bound to the type.
    filter: Filter,
    parameters: Vec<String>,
    /// Those that were created of it; some may be gone.
    readers: Vec<ReaderHandle>,
}

impl<T: TypeSupport> ContentFilteredTopic<T> {
    pub(crate) fn new(name: &str, topic: &Topic<T>, expression: &str, parameters: &[&str]) -> Result<Self> {
        let support = DynamicTypeSupport::of::<T>()?;
        let filter = bind(type_of(&support)?, name, topic.name(), expression, parameters)?;
        let parameters = owned(parameters);
        let state = Mutex::new(State { filter, parameters, readers: Vec::new() });
        let (name, expression) = (name.to_owned(), expression.to_owned());
        Ok(Self { inner: Arc::new(Inner { name, topic: topic.clone(), expression, state }) })
    }

    /// Its name, which differs from the topic's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The topic that is filtered.
    #[must_use]
    pub fn related_topic(&self) -> &Topic<T> {
        &self.inner.topic
    }

    /// The expression, which cannot be changed.
    #[must_use]
    pub fn filter_expression(&self) -> &str {
        &self.inner.expression
    }

    /// What `%0`, `%1`, ... stand for.
    #[must_use]
    pub fn expression_parameters(&self) -> Vec<String> {
        self.lock().parameters.clone()
    }

    /// Gives the parameters other values, for all readers of this topic and for the samples that arrive from now on.
    /// Writers that filter go by the former values until they hear of it.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if one that the expression has has no value, or none of the right type; then all is as
    /// before.
    pub fn set_expression_parameters(&self, parameters: &[&str]) -> Result<()> {
        let mut state = self.lock();
        check_len(&self.inner.name, self.inner.topic.name(), &self.inner.expression, parameters)?;
        state.filter.set_parameters(parameters).map_err(refused)?;
        state.parameters = owned(parameters);
        let engine = &self.inner.topic.inner.participant.engine;
        let mut readers = core::mem::take(&mut state.readers);
        let filters: Vec<_> = readers.iter().map(|_| self.reader_filter(&state)).collect();
        let result = engine.call(|driver, now| {
            for (reader, filter) in readers.clone().into_iter().zip(filters) {
                match driver.core.set_content_filter(now, reader, Some(filter)) {
                    Ok(()) => {}
                    Err(takt_core::Error::AlreadyDeleted) => readers.retain(|other| *other != reader),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        });
        state.readers = readers;
        result
    }

    /// Creates a reader with the present filter, by `create`, and remembers it.
    pub(crate) fn attach<R>(
        &self,
        create: impl FnOnce(ReaderFilter) -> Result<(ReaderHandle, R)>,
    ) -> Result<(ReaderHandle, R)> {
        let mut state = self.lock();
        let created = create(self.reader_filter(&state))?;
        state.readers.push(created.0);
        Ok(created)
    }

    fn reader_filter(&self, state: &State) -> ReaderFilter {
        let (name, topic) = (&self.inner.name, self.inner.topic.name());
        reader_filter(state.filter.clone(), name, topic, &self.inner.expression, &state.parameters)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for ContentFilteredTopic<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for ContentFilteredTopic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentFilteredTopic")
            .field("name", &self.inner.name)
            .field("filter_expression", &self.inner.expression)
            .finish_non_exhaustive()
    }
}

/// What readers are created of: a [`Topic`] or a [`ContentFilteredTopic`] (DDS 1.4 §2.2.2.3.1). Implemented here alone.
pub trait TopicDescription: sealed::Describe {
    /// The type of its samples.
    type Data: TypeSupport;

    /// The topic that writers are matched by.
    fn topic(&self) -> &Topic<Self::Data>;

    /// The filter, if there is one.
    fn filtered(&self) -> Option<&ContentFilteredTopic<Self::Data>>;
}

mod sealed {
    pub trait Describe {}
}

impl<T: TypeSupport> sealed::Describe for Topic<T> {}

impl<T: TypeSupport> TopicDescription for Topic<T> {
    type Data = T;

    fn topic(&self) -> &Self {
        self
    }

    fn filtered(&self) -> Option<&ContentFilteredTopic<T>> {
        None
    }
}

impl<T: TypeSupport> sealed::Describe for ContentFilteredTopic<T> {}

impl<T: TypeSupport> TopicDescription for ContentFilteredTopic<T> {
    type Data = T;

    fn topic(&self) -> &Topic<T> {
        &self.inner.topic
    }

    fn filtered(&self) -> Option<&Self> {
        Some(self)
    }
}

/// Evaluates a bound expression on payloads.
pub(crate) struct PayloadFilter(pub(crate) Filter);

impl ContentFilter for PayloadFilter {
    fn passes(&mut self, payload: &[u8]) -> bool {
        self.0.matches(payload).unwrap_or(true)
    }

    fn passes_within(&mut self, payload: &[u8], steps: &mut u64) -> Option<bool> {
        self.0.matches_within(payload, steps).unwrap_or(Some(true))
    }
}

/// Predicates, and octets of expression and parameters, of a filter that a reader asks writers to apply: it costs them time
/// with each sample that they write.
const ASKED_PREDICATES_MAX: usize = 16;
const ASKED_LEN_MAX: usize = 1024;

/// Compiles what readers ask for, for a writer.
pub(crate) struct Factory {
    /// What makes the type, which is not needed before the first filter.
    make: Box<dyn Fn() -> Option<DynamicType> + Send + Sync>,
    type_: OnceLock<Option<Arc<DynamicType>>>,
}

impl Factory {
    /// Of a derived type.
    pub(crate) fn of<T: TypeSupport>() -> Self {
        // A type that exceeds a limit of types at run time is not filtered.
        let make = || DynamicTypeSupport::of::<T>().ok().and_then(|support| support.dynamic_type().cloned());
        Self { make: Box::new(make), type_: OnceLock::new() }
    }

    /// Of a type that is known at run time.
    pub(crate) fn of_known(support: &DynamicTypeSupport) -> Self {
        let support = support.clone();
        Self { make: Box::new(move || support.dynamic_type().cloned()), type_: OnceLock::new() }
    }
}

impl FilterFactory for Factory {
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>> {
        let parameters = &property.expression_parameters;
        let len = property.filter_expression.len() + parameters.iter().map(String::len).sum::<usize>();
        if property.filter_class_name != FILTER_CLASS || len > ASKED_LEN_MAX {
            return None;
        }
        let Ok(condition) = Condition::parse(&property.filter_expression) else { return None };
        if condition.is_empty() || condition.len() > ASKED_PREDICATES_MAX {
            return None;
        }
        let type_ = self.type_.get_or_init(|| (self.make)().map(Arc::new)).as_ref()?;
        match Filter::bind(Arc::clone(type_), condition, parameters) {
            Ok(filter) => Some(Box::new(PayloadFilter(filter))),
            Err(_) => None,
        }
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Factory").finish_non_exhaustive()
    }
}

/// What others are told of a reader's filter, and the filter.
pub(crate) fn reader_filter(
    filter: Filter,
    name: &str,
    topic: &str,
    expression: &str,
    parameters: &[String],
) -> ReaderFilter {
    let property = ContentFilterProperty {
        content_filtered_topic_name: name.to_owned(),
        related_topic_name: topic.to_owned(),
        filter_class_name: FILTER_CLASS.to_owned(),
        filter_expression: expression.to_owned(),
        expression_parameters: parameters.to_vec(),
    };
    ReaderFilter { property, filter: Box::new(PayloadFilter(filter)) }
}

/// An expression bound to a type.
pub(crate) fn bind(
    type_: &DynamicType,
    name: &str,
    topic: &str,
    expression: &str,
    parameters: &[&str],
) -> Result<Filter> {
    check_len(name, topic, expression, parameters)?;
    Filter::new(Arc::new(type_.clone()), expression, parameters).map_err(refused)
}

fn check_len(name: &str, topic: &str, expression: &str, parameters: &[&str]) -> Result<()> {
    if name.is_empty() || name.len() > 255 || name == topic {
        return Err(Error::BadParameter {
            what: format!("a filtered topic has a name of its own of 1 to 255 bytes, not {name:?}"),
        });
    }
    let len = expression.len() + parameters.iter().map(|text| text.len() + 8).sum::<usize>();
    if len > ANNOUNCED_LEN_MAX {
        return Err(Error::OutOfResources { limit: "octets of a filter", value: ANNOUNCED_LEN_MAX as u64 });
    }
    Ok(())
}

/// The type of a support that is not opaque.
pub(crate) fn type_of(support: &DynamicTypeSupport) -> Result<&DynamicType> {
    let opaque = || Error::BadParameter { what: format!("nothing is known of type {}", support.type_name()) };
    support.dynamic_type().ok_or_else(opaque)
}

pub(crate) fn owned(parameters: &[&str]) -> Vec<String> {
    parameters.iter().map(|&text| text.to_owned()).collect()
}

pub(crate) fn refused(error: sql::SqlError) -> Error {
    Error::BadParameter { what: format!("expression {error}") }
}
