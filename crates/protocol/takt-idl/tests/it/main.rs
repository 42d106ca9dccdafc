//! Integration tests of takt-idl: derived types, printed types, the CycloneDDS compiler, error
//! positions, hostile texts.

mod compilers;
mod corpus;
mod grammar;
mod malformed;
mod octets;
mod preprocessor;
mod random_types;
mod ros2;
mod round_trip;
mod support;
#[allow(dead_code)]
#[path = "../../../takt-xtypes/tests/it/zoo.rs"]
mod zoo;
