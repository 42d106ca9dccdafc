//! Filter program of an interface: assembly, loading, attachment, and its tables.

pub(crate) mod assembler;
pub(crate) mod attach;
pub(crate) mod bpf;
pub(crate) mod filter;
