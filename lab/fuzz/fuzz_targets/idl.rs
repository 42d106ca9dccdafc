//! Fuzz target of the IDL parser and the ROS 2 message parser.
#![no_main]

#[path = "../src/idl.rs"]
mod idl;

libfuzzer_sys::fuzz_target!(|input: &[u8]| idl::run(input));
