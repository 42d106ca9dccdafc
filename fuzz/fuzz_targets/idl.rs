//! Texts of IDL, and messages of ROS 2.
#![no_main]

#[path = "../src/idl.rs"]
mod idl;

libfuzzer_sys::fuzz_target!(|input: &[u8]| idl::run(input));
