//! `takt echo`, `sub`, `pub` and `type`: topics of any vendor. Their types are learned from remote
//! participants or read from files.
//!
//! Samples are JSON on the command line, on standard input and on standard output.
//! `takt_xtypes::dynamic` documents the mapping of types to JSON.

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
