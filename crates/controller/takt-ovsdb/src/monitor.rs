//! Monitored tables: copies that the server keeps up to date (RFC 7047 §4.1.5, §4.1.6).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Columns of a row.
pub type Row = Map<String, Value>;

/// Rows by their UUIDs.
pub type Table = BTreeMap<String, Row>;

/// Copies of the tables of one monitor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Monitor {
    tables: BTreeMap<String, Table>,
}

impl Monitor {
    /// Returns a table. It is empty if it has no rows or is not monitored.
    pub fn table(&self, name: &str) -> &Table {
        static EMPTY: Table = Table::new();
        self.tables.get(name).unwrap_or(&EMPTY)
    }

    /// Returns the number of rows of all tables.
    pub fn rows(&self) -> usize {
        self.tables.values().map(BTreeMap::len).sum()
    }

    /// Applies the initial state or an update in the form `<table-updates>`. A row without `new` is
    /// deleted. The `new` of a changed row contains all its monitored columns.
    ///
    /// # Errors
    /// [`Error::TooManyRows`] and [`Error::Unexpected`]. The copy is unusable afterwards.
    pub fn apply(&mut self, updates: &Value, rows_limit: usize) -> Result<()> {
        let expected = |what: &str| Error::Unexpected { expected: format!("{what} in the update of a monitor") };
        for (table, rows) in updates.as_object().ok_or_else(|| expected("an object of tables"))? {
            let rows = rows.as_object().ok_or_else(|| expected("an object of rows"))?;
            for (uuid, change) in rows {
                match change.get("new") {
                    Some(Value::Object(new)) => {
                        self.tables.entry(table.clone()).or_default().insert(uuid.clone(), new.clone());
                    }
                    None | Some(Value::Null) => {
                        self.tables.entry(table.clone()).or_default().remove(uuid);
                    }
                    Some(_) => return Err(expected("an object of columns")),
                }
            }
            if self.rows() > rows_limit {
                return Err(Error::TooManyRows { limit: rows_limit });
            }
        }
        Ok(())
    }
}
