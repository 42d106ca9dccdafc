//! `takt echo`, `sub`, `pub` and `type`: topics of any vendor, by types that are learned from whoever has them, or read from files.
//!
//! Samples are JSON on the command line, on standard input and on standard output; `takt_xtypes::dynamic` says how
//! types map to it.

pub mod echo;
mod json;
mod learning;
mod library;
mod output;
mod policies;
pub mod publish;
mod receive;
pub mod show_type;
pub mod subscribe;
mod type_source;
