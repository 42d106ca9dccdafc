//! Behaviour of the public API between participants on loopback. Each test has a domain of its own.

mod exchange;
mod support;
