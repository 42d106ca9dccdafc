//! Takt against CycloneDDS 0.10, CycloneDDS 11, Fast DDS 2.9 and Fast DDS 3.2, and against itself over a bad link.
//!
//! Every test has two hosts of its own (network namespaces), so all may run at once. `interop/README.md` says what is
//! needed; `TAKT_TEST_LONG=1` runs the loss tests at full length.

mod captures;
mod confidentiality;
mod daemon;
mod durability;
mod exchange;
mod fan_out;
mod first_samples;
mod interceptor;
mod interoperability;
mod late_joiners;
mod loss;
mod one_instance;
mod peers;
mod policies;
mod refusals;
mod scene;
mod secure;
mod security;
mod security_log;
mod shape_main;
mod simulation;
mod tcp;
mod tools;
mod types;
mod xdp;
