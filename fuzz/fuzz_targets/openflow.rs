//! Messages of OpenFlow, and the channel.
#![no_main]

#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/openflow.rs"]
mod openflow;

/// Memory that one input may take at a time: a few messages, decoded, and two channels.
const MEMORY_BYTES: usize = 8 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::within(MEMORY_BYTES, || openflow::run(input)));
