//! Programs of the project's documentation. `tests/it` runs them and compares them with the
//! documents.
