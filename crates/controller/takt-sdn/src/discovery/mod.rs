//! DDS discovery interceptor: reads the RTPS discovery of any vendor, reports participants, pairs
//! and contracts, and rewrites frames.
//!
//! The controller passes every discovery frame to [`Interceptor::handle`] and forwards the result.
//! The interceptor keeps a directory of participants (SPDP, RTPS 2.5 §8.5.3) and endpoints (SEDP,
//! §8.5.4), and finds the pairs that match. A pair with a [contract](crate::contract) is held: the
//! announcement that would complete the match waits until the controller answers with
//! [`Interceptor::release`] or [`Interceptor::refuse`]. A verdict can change at any time.
//!
//! A refused endpoint does not block other endpoints of its participant: its announcement becomes
//! incompatible, or is replaced by a GAP ([`RefusalForm`]). If the true announcement has already
//! passed, the interceptor inserts a disposal and an incompatible announcement into the stream of
//! the SEDP writer, and increases all later sequence numbers. A refusal is lifted later in the same
//! way.
//!
//! Invariants: no I/O, no clock; no panic on any input; all memory is bounded by [`Limits`], and
//! data beyond a limit does not reach the receivers. Frames that need no change are forwarded as
//! they arrived. A participant is accepted only at the port and from the addresses of its first
//! announcement.
//!
//! Not supported: discovery servers that announce on behalf of others, DDS Security (passed and
//! reported), RTPS over TCP, and reassembly of IP fragments. Such fragments are dropped; writers
//! then send smaller datagrams.

mod announcement;
mod directory;
mod event;
mod fan_out;
mod fragments;
mod interceptor;
mod learning;
mod limits;
mod message;
mod record;
mod rewriting;
mod sent_numbers;
mod stream;
mod verdict;

pub use event::{Counters, Decision, Emission, Event, Forgery, Limit, Pair};
pub use interceptor::{Config, Interceptor, PairView, RefusalForm};
pub use limits::Limits;
pub(crate) use record::{pair_key, pair_of_key};
pub use verdict::{Enforcement, UnknownPair};
