//! Query conditions: conditions on the content of samples in a reader's history
//! (DDS 1.4 §2.2.2.5.9).

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use takt_core::{SampleQuery, Selector};
use takt_xtypes::sql::Query;

use crate::condition::{Condition, ReadCondition};
use crate::content_filter::{owned, refused, type_of};
use crate::dynamic::DynamicTypeSupport;
use crate::{DataReader, Result, TypeSupport};

/// [`ReadCondition`] that also filters by the content of samples. Dereferences to its
/// [`ReadCondition`]. Created by
/// [`DataReader::query_condition`](crate::DataReader::query_condition).
///
/// [`take_w_condition`](crate::dcps::ReadOperations::take_w_condition) and the other `_w_condition`
/// methods accept it and return samples in the order of its `ORDER BY`. A sample without data never
/// satisfies a filter. With `ORDER BY` alone, samples without data come first.
#[derive(Clone)]
pub struct QueryCondition {
    read: ReadCondition,
    query: Arc<BoundQuery>,
}

/// Expression with its parameters, which can be replaced.
pub(crate) struct BoundQuery {
    expression: String,
    /// Replaced as a whole, so that a read in progress keeps using the former snapshot.
    state: Mutex<Arc<Snapshot>>,
}

/// Expression bound to fixed parameters.
pub(crate) struct Snapshot {
    query: Query,
    parameters: Vec<String>,
}

impl Snapshot {
    /// Reports whether the expression has an `ORDER BY`.
    pub(crate) fn is_ordered(&self) -> bool {
        self.query.is_ordered()
    }
}

impl SampleQuery for Snapshot {
    fn matches(&self, payload: Option<&[u8]>) -> bool {
        match payload {
            Some(payload) => self.query.filter().matches(payload).unwrap_or(false),
            None => self.query.filter().is_empty(),
        }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.query.compare(a, b)
    }
}

impl BoundQuery {
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl QueryCondition {
    /// Returns the expression, which is immutable.
    #[must_use]
    pub fn query_expression(&self) -> &str {
        &self.query.expression
    }

    /// Returns the values of the parameters `%0`, `%1`, ...
    #[must_use]
    pub fn query_parameters(&self) -> Vec<String> {
        self.query.snapshot().parameters.clone()
    }

    /// Replaces the parameters.
    ///
    /// # Errors
    /// [`Error::BadParameter`](crate::Error::BadParameter) if a parameter of the expression has no
    /// value or a value of the wrong type. The parameters are then unchanged.
    pub fn set_query_parameters(&self, parameters: &[&str]) -> Result<()> {
        let mut query = self.query.snapshot().query.clone();
        query.set_parameters(parameters).map_err(refused)?;
        let snapshot = Arc::new(Snapshot { query, parameters: owned(parameters) });
        *self.query.state.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
        // The condition may have become true.
        self.read.signal.waiters.wake();
        Ok(())
    }
}

impl Deref for QueryCondition {
    type Target = ReadCondition;

    fn deref(&self) -> &ReadCondition {
        &self.read
    }
}

impl fmt::Debug for QueryCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryCondition")
            .field("query_expression", &self.query_expression())
            .field("query_parameters", &self.query_parameters())
            .finish_non_exhaustive()
    }
}

impl From<&QueryCondition> for Condition {
    fn from(condition: &QueryCondition) -> Self {
        Self::Read(condition.read.clone())
    }
}

impl From<QueryCondition> for Condition {
    fn from(condition: QueryCondition) -> Self {
        Self::Read(condition.read)
    }
}

impl<T: TypeSupport> DataReader<T> {
    /// Creates a condition that is true while the reader holds samples that match the selector and
    /// satisfy an expression (`create_querycondition`). The expression is a condition of DDS 1.4
    /// annex B, optionally followed by `ORDER BY` with fields.
    ///
    /// # Errors
    /// [`Error::BadParameter`](crate::Error::BadParameter) if the expression is invalid, or does
    /// not match the type or the parameters.
    pub fn query_condition(&self, selector: Selector, expression: &str, parameters: &[&str]) -> Result<QueryCondition> {
        let support = DynamicTypeSupport::of::<T>()?;
        let type_ = Arc::new(type_of(&support)?.clone());
        let query = Query::new(type_, expression, parameters).map_err(refused)?;
        let state = Mutex::new(Arc::new(Snapshot { query, parameters: owned(parameters) }));
        let query = Arc::new(BoundQuery { expression: expression.to_owned(), state });
        let read = ReadCondition { query: Some(Arc::clone(&query)), ..self.read_condition(selector) };
        Ok(QueryCondition { read, query })
    }
}
