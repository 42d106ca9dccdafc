//! Fuzz target of takt-security handshake, key exchange and protection between two participants.
#![no_main]

#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/security_session.rs"]
mod security_session;

/// Maximum memory of one input, without that of OpenSSL: two participants and their documents.
const MEMORY_BYTES: usize = 8 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    memory::within(MEMORY_BYTES, || {
        let _delivered = security_session::run(input);
    });
});
