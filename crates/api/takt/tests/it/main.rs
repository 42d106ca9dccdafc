//! Behavior of the public API between participants on loopback. Each test uses a domain of its own.

mod access;
mod delivery;
mod discovery;
mod entities;
mod qos;
mod suffering;
mod support;
mod timing;
mod transport;
mod types;

use takt_testkit::{counting_calls, network};
