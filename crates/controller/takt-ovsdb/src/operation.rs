//! Transaction operations, conditions and values (RFC 7047 §5).

use serde_json::{Map, Value, json};

use crate::error::Failure;

/// Operation (RFC 7047 §5.2), with its kind and table for error texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    body: Value,
    name: String,
}

/// Columns and their values.
pub type Columns = Map<String, Value>;

/// Creates columns from pairs.
pub fn columns<const N: usize>(pairs: [(&str, Value); N]) -> Columns {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the UUID of a row as a value.
pub fn uuid(uuid: &str) -> Value {
    json!(["uuid", uuid])
}

/// Returns the UUID of a row that an `insert` of the same transaction creates, as a value.
pub fn named_uuid(name: &str) -> Value {
    json!(["named-uuid", name])
}

/// Returns a set.
pub fn set(values: impl IntoIterator<Item = Value>) -> Value {
    json!(["set", values.into_iter().collect::<Vec<_>>()])
}

/// Returns a map with texts as keys and values.
pub fn map<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    json!(["map", pairs.into_iter().map(|(key, value)| json!([key, value])).collect::<Vec<_>>()])
}

/// Returns the condition that a column equals a value.
pub fn equals(column: &str, value: Value) -> Value {
    json!([column, "==", value])
}

/// Returns the elements of a set. A single value is a set of one (RFC 7047 §5.1, `<set>`).
pub fn elements(value: &Value) -> &[Value] {
    match value.as_array().map(Vec::as_slice) {
        Some([Value::String(kind), Value::Array(values)]) if kind == "set" => values,
        _ => std::slice::from_ref(value),
    }
}

/// Returns the UUIDs in a set of rows.
pub fn uuids(value: &Value) -> impl Iterator<Item = &str> {
    elements(value).iter().filter_map(as_uuid)
}

fn as_uuid(value: &Value) -> Option<&str> {
    match value.as_array()?.as_slice() {
        [kind, Value::String(uuid)] if kind == "uuid" => Some(uuid),
        _ => None,
    }
}

impl Operation {
    fn new(kind: &str, table: &str, mut body: Value) -> Self {
        body["op"] = kind.into();
        if !table.is_empty() {
            body["table"] = table.into();
        }
        let name = if table.is_empty() { kind.to_owned() } else { format!("{kind} {table}") };
        Self { body, name }
    }

    /// Inserts a row. [`named_uuid`] refers to it by `name`.
    pub fn insert(table: &str, name: &str, row: Columns) -> Self {
        Self::new("insert", table, json!({ "row": row, "uuid-name": name }))
    }

    /// Selects columns of the rows that meet all conditions.
    pub fn select(table: &str, conditions: &[Value], columns: &[&str]) -> Self {
        Self::new("select", table, json!({ "where": conditions, "columns": columns }))
    }

    /// Sets columns of the rows that meet all conditions.
    pub fn update(table: &str, conditions: &[Value], row: Columns) -> Self {
        Self::new("update", table, json!({ "where": conditions, "row": row }))
    }

    /// Changes columns of the rows that meet all conditions. A mutation is a column, a mutator and
    /// a value (RFC 7047 §5.1, `<mutation>`).
    pub fn mutate(table: &str, conditions: &[Value], mutations: &[(&str, &str, Value)]) -> Self {
        let mutations: Vec<_> = mutations.iter().map(|(column, how, value)| json!([column, how, value])).collect();
        Self::new("mutate", table, json!({ "where": conditions, "mutations": mutations }))
    }

    /// Deletes the rows that meet all conditions.
    pub fn delete(table: &str, conditions: &[Value]) -> Self {
        Self::new("delete", table, json!({ "where": conditions }))
    }

    /// Makes the transaction fail.
    pub fn abort() -> Self {
        Self::new("abort", "", json!({}))
    }

    /// Writes a comment to the log of the server.
    pub fn comment(text: &str) -> Self {
        Self::new("comment", "", json!({ "comment": text }))
    }

    /// Returns kind and table.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the parameters of `transact` (RFC 7047 §4.1.3).
pub(crate) fn transaction(database: &str, operations: &[Operation]) -> Value {
    let bodies = operations.iter().map(|operation| operation.body.clone());
    Value::Array(std::iter::once(json!(database)).chain(bodies).collect())
}

/// Returns the failure in the results of a transaction, if any. Results after a failed operation
/// are null. If there is one more result than operations, it is the failure of the commit.
pub(crate) fn failure(operations: &[Operation], results: &[Value]) -> Option<Failure> {
    let is_error = |result: &&Value| result.get("error").is_some_and(|error| !error.is_null());
    let (index, result) = results.iter().enumerate().find(|(_, result)| is_error(result))?;
    let text = |key: &str| result[key].as_str().unwrap_or_default().to_owned();
    let name = operations.get(index).map(|operation| operation.name.clone());
    Some(Failure {
        operation: name.is_some().then_some(index),
        name: name.unwrap_or_default(),
        error: text("error"),
        details: text("details"),
    })
}
