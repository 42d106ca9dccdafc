//! The programs of the project's documents, as they are there. `tests/it` runs them and compares them with the documents.
