//! Tests of the protocol engine: participants joined by an in-memory network, on a virtual clock.
#![allow(missing_docs)]

mod allocations;
mod announcements;
mod catalogue;
mod delivery;
mod discovery;
mod hostile;
mod network;
mod outbound;
mod puppet;
mod qos;
#[allow(dead_code)]
mod session;
