//! Fuzz target of XCDR1 and XCDR2 for a type of every kind.
#![no_main]

#[path = "../src/xcdr.rs"]
mod xcdr;
#[allow(dead_code)]
#[path = "../../../crates/protocol/takt-xtypes/tests/it/zoo.rs"]
mod zoo;

libfuzzer_sys::fuzz_target!(|input: &[u8]| xcdr::run(input));
