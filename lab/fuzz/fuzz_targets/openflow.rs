//! Fuzz target of OpenFlow messages and channels.
#![no_main]

#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/openflow.rs"]
mod openflow;

/// Maximum memory of one input: a few decoded messages and two channels.
const MEMORY_BYTES: usize = 8 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::within(MEMORY_BYTES, || openflow::run(input)));
