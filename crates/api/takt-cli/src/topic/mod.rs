//! `takt echo`, `sub`, `pub`, `type`, `hz`, `bw` and `delay`: topics of any vendor. Their types are learned from remote
//! participants or read from files.
//!
//! Samples are JSON on the command line, on standard input and on standard output.
//! `takt_xtypes::dynamic` documents the mapping of types to JSON.

pub mod echo;
mod field;
mod json;
mod learning;
mod library;
pub mod measure;
mod output;
mod policies;
pub mod publish;
mod receive;
mod several;
pub mod show_type;
pub mod subscribe;
mod type_source;
