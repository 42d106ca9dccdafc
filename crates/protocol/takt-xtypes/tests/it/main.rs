//! Integration tests of takt-xtypes with derived types: encoding, round trips, evolution, hostile
//! input, allocation, compile errors.

mod allocation;
mod assignability;
mod compile_errors;
mod corpus;
mod dynamic;
mod encoding;
mod evolution;
mod idl_compilers;
mod key;
mod malformed;
mod peer_vectors;
mod random;
mod reports;
mod round_trip;
mod sql;
mod support;
mod type_objects;
mod zoo;
