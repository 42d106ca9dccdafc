//! Durability service: stores samples of TRANSIENT and PERSISTENT writers, so that they outlive
//! their writers (DDS 1.4 §2.2.3.4, §2.2.3.5).
//!
//! A [`Service`] subscribes to the writers of a domain whose DURABILITY is TRANSIENT or PERSISTENT,
//! and stores their samples according to their DURABILITY_SERVICE. It serves the samples to late
//! joiners of any vendor. PERSISTENT samples are on disk, in one file, before they are
//! acknowledged. `takt durability` runs a service; a program can run its own.
//!
//! | file | content |
//! |---|---|
//! | `record` | stored change and its encoding |
//! | `index` | decisions by DURABILITY_SERVICE about stored and evicted changes of a topic |
//! | `store` | database file |
//! | `group` | reader, writer and index of one topic |
//! | `service` | main loop: discover, take, commit, relay, acknowledge, clean up |
//!
//! Invariant: changes that are acknowledged to a PERSISTENT writer are committed to the store, in
//! an order that preserves the order of each writer.

mod error;
mod group;
mod index;
mod options;
mod record;
mod service;
mod store;

pub use error::{Error, Result};
pub use options::Options;
pub use service::{Service, Totals};
