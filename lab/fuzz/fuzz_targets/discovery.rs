//! Fuzz target of discovery data, parsed and written by takt-wire and handled by the core.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

#[allow(dead_code)]
#[path = "../../../crates/protocol/takt-core/tests/it/announcements.rs"]
mod announcements;
#[path = "../src/memory.rs"]
mod memory;
#[allow(dead_code)]
#[path = "../../../crates/protocol/takt-core/tests/it/network.rs"]
mod network;
#[path = "../../../crates/protocol/takt-core/tests/it/outbound.rs"]
mod outbound;
#[allow(dead_code)]
#[path = "../../../crates/protocol/takt-core/tests/it/puppet.rs"]
mod puppet;
#[allow(dead_code)]
#[path = "../../../crates/protocol/takt-core/tests/it/session.rs"]
mod session;
#[allow(dead_code)]
#[path = "../src/structure.rs"]
mod structure;

fuzz_target!(|script: &[u8]| memory::within(session::MEMORY_BYTES, || announcements::play(script)));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate(data, size, max_size, seed, structure::script, fuzzer_mutate)
});
