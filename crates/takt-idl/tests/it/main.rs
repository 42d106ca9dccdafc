//! IDL read into types: against derived types, printed types, CycloneDDS's compiler; errors with their places; hostile texts.

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
