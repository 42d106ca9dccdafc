//! Fuzz target of takt-security documents, tokens and messages.
#![no_main]

#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/security_documents.rs"]
mod security_documents;

/// Maximum memory of one input, without that of OpenSSL: a document and its parsed form.
const MEMORY_BYTES: usize = 4 << 20;

libfuzzer_sys::fuzz_target!(|input: &[u8]| memory::within(MEMORY_BYTES, || security_documents::run(input)));
