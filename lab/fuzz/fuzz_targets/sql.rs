//! Fuzz target of filters, queries and topic expressions with their payloads.
#![no_main]

#[path = "../src/sql.rs"]
mod sql;
#[allow(dead_code)]
#[path = "../../../crates/protocol/takt-xtypes/tests/it/zoo.rs"]
mod zoo;

libfuzzer_sys::fuzz_target!(|input: &[u8]| sql::run(input));
