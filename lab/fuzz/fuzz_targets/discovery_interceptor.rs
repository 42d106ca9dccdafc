//! Fuzz target of the discovery interceptor: scripts of frames, verdicts and time.
#![no_main]

#[path = "../src/discovery_interceptor.rs"]
mod discovery_interceptor;
#[path = "../src/memory.rs"]
mod memory;

/// Maximum memory of one script: announcements of 64 steps, frames that wait to be sent, and
/// reassemblies.
const MEMORY_BYTES: usize = 64 << 20;

libfuzzer_sys::fuzz_target!(|script: &[u8]| memory::within(MEMORY_BYTES, || discovery_interceptor::run(script)));
