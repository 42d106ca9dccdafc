//! Content-filtered topics (DDS 1.4 §2.2.2.3.3).
//!
//! Filter expressions follow the grammar of `Condition` in DDS 1.4 annex B ([`sql`]). A reader
//! evaluates the expression on the payload of each sample before the sample enters its history. A
//! rejected sample occupies no memory there, displaces no sample under KEEP_LAST, starts no
//! DEADLINE period and creates no instance. Dispose and unregister messages are not filtered.
//!
//! The reader announces the filter, so writers may omit samples that it rejects. The reader
//! evaluates the filter in any case.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use takt_core::{ContentFilter, FilterFactory, ReaderFilter, ReaderHandle};
use takt_wire::discovery::ContentFilterProperty;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::sql::{self, Condition, Filter};

use crate::dynamic::DynamicTypeSupport;
use crate::{Error, Result, Topic, TypeSupport};

/// Name of the filter class that DDS defines (RTPS 2.5 §8.7.3).
const FILTER_CLASS: &str = "DDSSQL";

/// Maximum total length in octets of names, expression and parameters: one parameter of a parameter
/// list carries them all.
const ANNOUNCED_LEN_MAX: usize = 32 * 1024;

/// Octets of the length, the NUL and the padding of an announced parameter, at most.
const PARAMETER_OVERHEAD_LEN: usize = 8;

/// Topic restricted to the samples that pass a filter. Readers are created from it as from a
/// [`Topic`]. Clones refer to the same topic.
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
    /// The expression with its current parameters, bound to the type.
    filter: Filter,
    parameters: Vec<String>,
    /// Readers created from this topic. Some may have been deleted.
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

    /// Returns the name of the filtered topic, which differs from that of the related topic.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the related topic, whose samples are filtered.
    #[must_use]
    pub fn related_topic(&self) -> &Topic<T> {
        &self.inner.topic
    }

    /// Returns the filter expression, which is immutable.
    #[must_use]
    pub fn filter_expression(&self) -> &str {
        &self.inner.expression
    }

    /// Returns the values of the parameters `%0`, `%1`, ...
    #[must_use]
    pub fn expression_parameters(&self) -> Vec<String> {
        self.lock().parameters.clone()
    }

    /// Replaces the parameters for all readers of this topic. The new values apply to samples that
    /// arrive from now on. Writers that filter use the former values until the announcement reaches
    /// them.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if a parameter of the expression has no value or a value of the
    /// wrong type. The parameters are then unchanged.
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

    /// Creates a reader with the current filter by calling `create`, and registers it for later
    /// changes of the parameters.
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

/// Topic that readers can be created from: a [`Topic`] or a [`ContentFilteredTopic`]
/// (DDS 1.4 §2.2.2.3.1). Sealed.
pub trait TopicDescription: sealed::Describe {
    /// Type of the topic's samples.
    type Data: TypeSupport;

    /// Returns the topic by which readers match writers.
    fn topic(&self) -> &Topic<Self::Data>;

    /// Returns the content-filtered topic, if this is one.
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

/// Filter that evaluates a bound expression on payloads.
pub(crate) struct PayloadFilter(pub(crate) Filter);

impl ContentFilter for PayloadFilter {
    fn passes(&mut self, payload: &[u8]) -> bool {
        self.0.matches(payload).unwrap_or(true)
    }

    fn passes_within(&mut self, payload: &[u8], steps: &mut u64) -> Option<bool> {
        self.0.matches_within(payload, steps).unwrap_or(Some(true))
    }
}

/// Limits, in predicates and in octets of expression and parameters, of the filters that a writer
/// evaluates for remote readers. Each filter costs the writer time with every sample.
const REMOTE_PREDICATES_MAX: usize = 16;
const REMOTE_FILTER_LEN_MAX: usize = 1024;

/// Compiles the filters of remote readers for a writer.
pub(crate) struct Factory {
    /// Builds the dynamic type when the first filter needs it.
    make: Box<dyn Fn() -> Option<DynamicType> + Send + Sync>,
    type_: OnceLock<Option<Arc<DynamicType>>>,
}

impl Factory {
    /// Creates the factory of a derived type.
    pub(crate) fn of<T: TypeSupport>() -> Self {
        // Types that exceed a limit of dynamic types are not filtered.
        let make = || DynamicTypeSupport::of::<T>().ok().and_then(|support| support.dynamic_type().cloned());
        Self { make: Box::new(make), type_: OnceLock::new() }
    }

    /// Creates the factory of a type that is known only at run time.
    pub(crate) fn of_known(support: &DynamicTypeSupport) -> Self {
        let support = support.clone();
        Self { make: Box::new(move || support.dynamic_type().cloned()), type_: OnceLock::new() }
    }
}

impl FilterFactory for Factory {
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>> {
        let parameters = &property.expression_parameters;
        let len = property.filter_expression.len() + parameters.iter().map(String::len).sum::<usize>();
        if property.filter_class_name != FILTER_CLASS || len > REMOTE_FILTER_LEN_MAX {
            return None;
        }
        let Ok(condition) = Condition::parse(&property.filter_expression) else { return None };
        if condition.is_empty() || condition.len() > REMOTE_PREDICATES_MAX {
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

/// Returns the announced properties of a reader's filter together with the filter itself.
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

/// Parses an expression and binds it to a type.
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
        return Err(Error::bad_parameter(format!(
            "content-filtered topic {name:?} needs a name of 1 to 255 bytes other than {topic:?}"
        )));
    }
    let len = expression.len() + parameters.iter().map(|text| text.len() + PARAMETER_OVERHEAD_LEN).sum::<usize>();
    if len > ANNOUNCED_LEN_MAX {
        return Err(Error::OutOfResources { limit: "content filter length in bytes", value: ANNOUNCED_LEN_MAX as u64 });
    }
    Ok(())
}

/// Returns the dynamic type of a type support; fails if the type support is opaque.
pub(crate) fn type_of(support: &DynamicTypeSupport) -> Result<&DynamicType> {
    let opaque = || Error::bad_parameter(format!("the definition of type {} is unknown", support.type_name()));
    support.dynamic_type().ok_or_else(opaque)
}

pub(crate) fn owned(parameters: &[&str]) -> Vec<String> {
    parameters.iter().map(|&text| text.to_owned()).collect()
}

pub(crate) fn refused(error: sql::SqlError) -> Error {
    Error::bad_parameter_from(format!("expression {error}"), error)
}
