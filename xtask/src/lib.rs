//! The project's own checks, run by `make test` and by hand as `cargo xtask <command>`.
//!
//! - [`tidy`] holds the house rules that a compiler does not: which crate may depend on which,
//!   how long a file may grow, what must not be written in it.
//! - [`conformance`] collects the citations of the specifications and the `DEVIATION` and
//!   `INTEROP` tags into `docs/conformance.md`.
//! - [`teeth`] puts deliberate bugs into a copy of the sources, for the simulation to find.
//! - [`testing`] runs the tests of the workspace, and counts what did not run.
//!
//! All but the last read the work tree through [`tree`] and Rust files through [`rust_text`], a scanner that
//! tells code, comments and literals apart. It does not parse Rust: a rule that would need types
//! belongs in clippy.

pub mod conformance;
pub mod rust_text;
pub mod teeth;
pub mod testing;
pub mod tidy;
pub mod tree;

#[cfg(test)]
mod fixture;

use std::path::{Path, PathBuf};

/// The root of the workspace that this binary was built from.
pub fn workspace_root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().expect("xtask is a member directory of the workspace").to_path_buf()
}
