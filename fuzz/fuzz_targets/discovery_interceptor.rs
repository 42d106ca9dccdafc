//! Scripts of frames, verdicts and time for the interceptor of discovery.
#![no_main]

#[path = "../src/discovery_interceptor.rs"]
mod discovery_interceptor;
#[path = "../src/memory.rs"]
mod memory;

/// Memory that one script may take at a time: announcements of 64 steps, what waits to be sent, and reassemblies.
const MEMORY_BYTES: usize = 64 << 20;

libfuzzer_sys::fuzz_target!(|script: &[u8]| memory::within(MEMORY_BYTES, || discovery_interceptor::run(script)));
