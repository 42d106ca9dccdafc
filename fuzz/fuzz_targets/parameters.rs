//! Parameter lists and discovery data of takt-wire.
#![no_main]

#[path = "../src/parameters.rs"]
mod parameters;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parameters::run(bytes));
