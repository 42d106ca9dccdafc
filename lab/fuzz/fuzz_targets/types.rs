//! Fuzz target of type objects and values of the resulting types.
#![no_main]

#[path = "../src/types.rs"]
mod types;

libfuzzer_sys::fuzz_target!(|input: &[u8]| types::run(input));
