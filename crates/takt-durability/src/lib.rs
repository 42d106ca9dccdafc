//! The durability service: keeps samples of TRANSIENT and PERSISTENT writers, so that they outlive them (DDS 1.4 §2.2.3.4,
//! §2.2.3.5).
//!
//! A [`Service`] hears the writers of a domain whose DURABILITY is TRANSIENT or PERSISTENT, keeps what they write after their
//! DURABILITY_SERVICE, and serves it to late joiners of any vendor. PERSISTENT samples are on disk, in one file, before they
//! are acknowledged. `takt durability` runs one; a program can run its own.
//!
//! | file | |
//! |---|---|
//! | `record` | a change as it is kept, and its bytes |
//! | `index` | what is kept of a topic, by DURABILITY_SERVICE: what comes in, what gives way |
//! | `store` | the file |
//! | `group` | one topic: its reader, its writer, its index |
//! | `service` | the loop: discover, take, commit, pass on, acknowledge, clean up |
//!
//! Invariant: what is acknowledged to a PERSISTENT writer has been committed to the store, in an order in which each
//! writer's changes follow one another.

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
