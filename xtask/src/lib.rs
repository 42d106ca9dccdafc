//! Checks and test runner of the project, run by `make test` and manually as
//! `cargo xtask <command>`.
//!
//! - [`tidy`] checks project rules that the compiler does not: dependencies between crates, maximum
//!   file sizes, and forbidden words.
//! - [`conformance`] collects the specification citations and the `DEVIATION` and `INTEROP` tags
//!   into `docs/reference/conformance.md`.
//! - [`mutation_test`] inserts deliberate bugs into a copy of the sources, to test that the
//!   simulation finds them.
//! - [`testing`] runs the tests of the workspace, and counts tests that did not run.
//!
//! All but the last read the work tree through [`tree`], and Rust files through [`rust_text`], a
//! scanner that distinguishes code, comments and literals. It does not parse Rust: a rule that
//! needs types belongs in clippy.

pub mod conformance;
pub mod mutation_test;
pub mod rust_text;
pub mod testing;
pub mod tidy;
pub mod tree;

#[cfg(test)]
mod fixture;

use std::path::{Path, PathBuf};

/// Returns the root of the workspace from which this binary was built.
pub fn workspace_root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().expect("xtask is a member directory of the workspace").to_path_buf()
}
