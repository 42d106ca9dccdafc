//! Multitopics: topics that join other topics (DDS 1.4 §2.2.2.3.4).
//!
//! The expression of a [`MultiTopic`] names the topics to join, the fields that make up a sample of
//! the result, and a condition: `SELECT flight, x, height AS z FROM Position NATURAL JOIN Plan
//! WHERE z > 100`. Topics are joined where members of the same name are equal. Names in `WHERE` are
//! names of the result.
//!
//! A [`MultiTopicReader`] has an ordinary reader of each topic. It stores the latest sample of each
//! alive instance. Each new sample is joined with the stored samples of the other topics. Joining
//! is part of `take` and runs in the caller's thread. It allocates, so it is not part of the data
//! plane.

mod join;
mod reader;

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::sql::{Filter, TopicExpression};

use crate::content_filter::{owned, refused, type_of};
use crate::dynamic::DynamicTypeSupport;
use crate::{DomainParticipant, Error, Result, Topic, TypeSupport};
use join::Plan;

pub use reader::MultiTopicReader;

/// Maximum number of topics that a multitopic joins.
pub const JOINED_TOPICS_MAX: usize = 8;

/// Topic that can be part of a [`MultiTopic`]. Sealed: implemented for [`Topic`] only.
pub trait Constituent: sealed::Typed {}

impl<T: TypeSupport> Constituent for Topic<T> {}

mod sealed {
    use super::*;

    pub trait Typed {
        fn topic_name(&self) -> &str;
        fn type_support(&self) -> Result<DynamicTypeSupport>;
    }

    impl<T: TypeSupport> Typed for Topic<T> {
        fn topic_name(&self) -> &str {
            self.name()
        }

        fn type_support(&self) -> Result<DynamicTypeSupport> {
            DynamicTypeSupport::of::<T>()
        }
    }
}

/// Topic of samples of `T` that are joined from several topics. Clones refer to the same topic.
pub struct MultiTopic<T> {
    inner: Arc<Inner>,
    type_: PhantomData<fn(&T)>,
}

pub(crate) struct Inner {
    name: String,
    expression: String,
    /// Joined topics in the order of the expression, each with its type.
    constituents: Vec<(String, DynamicTypeSupport)>,
    plan: Plan,
    /// Type of the result.
    type_: Arc<DynamicType>,
    state: Mutex<State>,
}

struct State {
    filter: Filter,
    parameters: Vec<String>,
}

impl Inner {
    fn filter(&self) -> Filter {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).filter.clone()
    }
}

impl DomainParticipant {
    /// Creates a multitopic from an expression of DDS 1.4 annex B: `SELECT fields FROM topic
    /// NATURAL JOIN topic WHERE condition`. `topics` must contain every topic that the expression
    /// names.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the expression is invalid, does not match the types or the
    /// parameters, or joins topics without a common member; [`Error::OutOfResources`] for more than
    /// [`JOINED_TOPICS_MAX`] topics.
    pub fn create_multitopic<T: TypeSupport>(
        &self,
        name: &str,
        expression: &str,
        parameters: &[&str],
        topics: &[&dyn Constituent],
    ) -> Result<MultiTopic<T>> {
        let parsed = TopicExpression::parse(expression).map_err(refused)?;
        if parsed.topics.len() > JOINED_TOPICS_MAX {
            return Err(Error::OutOfResources { limit: "joined topics", value: JOINED_TOPICS_MAX as u64 });
        }
        let mut constituents = Vec::new();
        for name in &parsed.topics {
            let topic = topics.iter().find(|topic| topic.topic_name() == *name);
            let unknown = || Error::bad_parameter(format!("topic {name} is not among the given topics"));
            constituents.push((name.clone(), topic.ok_or_else(unknown)?.type_support()?));
        }
        let support = DynamicTypeSupport::of::<T>()?;
        let type_ = Arc::new(type_of(&support)?.clone());
        let types: Vec<&DynamicType> =
            constituents.iter().map(|(_, constituent)| type_of(constituent)).collect::<Result<_>>()?;
        let plan = Plan::new(&parsed.selected, &types, &type_)?;
        let filter = Filter::bind(Arc::clone(&type_), parsed.condition, parameters).map_err(refused)?;
        let state = Mutex::new(State { filter, parameters: owned(parameters) });
        let (name, expression) = (name.to_owned(), expression.to_owned());
        let inner = Arc::new(Inner { name, expression, constituents, plan, type_, state });
        Ok(MultiTopic { inner, type_: PhantomData })
    }
}

impl<T: TypeSupport> MultiTopic<T> {
    /// Returns the name of the topic.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the expression, which is immutable.
    #[must_use]
    pub fn subscription_expression(&self) -> &str {
        &self.inner.expression
    }

    /// Returns the values of the parameters `%0`, `%1`, ...
    #[must_use]
    pub fn expression_parameters(&self) -> Vec<String> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner).parameters.clone()
    }

    /// Replaces the parameters, for samples that readers join from now on.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if a parameter of the expression has no value or a value of the
    /// wrong type. The parameters are then unchanged.
    pub fn set_expression_parameters(&self, parameters: &[&str]) -> Result<()> {
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.filter.set_parameters(parameters).map_err(refused)?;
        state.parameters = owned(parameters);
        Ok(())
    }
}

impl<T> Clone for MultiTopic<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), type_: PhantomData }
    }
}

impl<T> fmt::Debug for MultiTopic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiTopic")
            .field("name", &self.inner.name)
            .field("subscription_expression", &self.inner.expression)
            .finish_non_exhaustive()
    }
}
