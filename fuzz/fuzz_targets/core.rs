//! The whole core, as a sequence of hostile datagrams interleaved with time, the application and its own output.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/takt-core/tests/it/network.rs"]
mod network;
#[allow(dead_code)]
#[path = "../../crates/takt-core/tests/it/puppet.rs"]
mod puppet;
#[path = "../../crates/takt-core/tests/it/session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(|script: &[u8]| session::play(script));
