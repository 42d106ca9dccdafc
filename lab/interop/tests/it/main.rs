//! Interoperability tests of Takt with CycloneDDS 0.10, CycloneDDS 11, Fast DDS 2.9 and Fast DDS
//! 3.2, and of Takt with itself over an impaired link.
//!
//! Every test has its own two hosts (network namespaces), so that all may run in parallel.
//! `lab/interop/README.md` lists the prerequisites. `TAKT_TEST_LONG=1` runs the loss tests at full
//! length.

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
mod security_expiry;
mod security_log;
mod shape_main;
mod simulation;
mod tcp;
mod tools;
mod types;
mod xdp;
