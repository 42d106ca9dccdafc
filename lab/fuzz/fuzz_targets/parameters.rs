//! Fuzz target of takt-wire parameter lists and discovery data.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

#[path = "../src/parameters.rs"]
mod parameters;
#[allow(dead_code)]
#[path = "../src/structure.rs"]
mod structure;

fuzz_target!(|bytes: &[u8]| parameters::run(bytes));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate(data, size, max_size, seed, structure::list, fuzzer_mutate)
});
