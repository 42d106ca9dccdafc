//! Documents, tokens and messages of takt-security.
#![no_main]

#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/security_documents.rs"]
mod security_documents;

/// Memory that one input may take at a time, besides that of OpenSSL: a document and what it says.
const MEMORY_BYTES: usize = 4 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::within(MEMORY_BYTES, || security_documents::run(input)));
