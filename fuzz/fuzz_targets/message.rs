//! Messages and submessages of takt-wire.
#![no_main]

#[path = "../src/message.rs"]
mod message;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| message::run(bytes));
