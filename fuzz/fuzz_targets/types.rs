//! Type objects, and values of the types that they make.
#![no_main]

#[path = "../src/types.rs"]
mod types;

libfuzzer_sys::fuzz_target!(|input: &[u8]| types::run(input));
