//! DDS discovery interceptor: RTPS discovery of any vendor in; participants, pairs, contracts and rewritten frames out.
//!
//! The controller gives every frame of discovery to [`Interceptor::handle`] and forwards what comes back. The interceptor keeps a
//! directory of participants (SPDP, RTPS 2.5 §8.5.3) and endpoints (SEDP, §8.5.4), and finds the pairs that match. A pair with a
//! [contract](crate::contract) is held: the announcement that would complete the match waits until the controller answers with
//! [`Interceptor::release`] or [`Interceptor::refuse`]. A verdict can change at any time.
//!
//! A refused endpoint does not block other endpoints of its participant: its announcement goes out incompatible, or its sequence
//! number goes out in a GAP ([`RefusalForm`]). Where the true announcement has already passed, the interceptor inserts a disposal and
//! an incompatible announcement into the stream of the SEDP writer and moves the sequence numbers behind them; the same lifts a
//! refusal later.
//!
//! Invariants: no I/O, no clock; no panic, whatever the octets; everything is bounded by [`Limits`], and what a limit keeps out
//! does not reach the receivers. Frames that need no change are forwarded as they came. A participant is believed only from the
//! port and the addresses of its first announcement.
//!
//! Deliberately not here: discovery through servers that announce in the name of others, DDS Security (passed and reported),
//! RTPS over TCP, and reassembly of IP fragments, which are dropped; writers then send smaller datagrams.

mod announcement;
mod directory;
mod event;
mod fan_out;
mod fragments;
mod interceptor;
mod learning;
mod limits;
mod message;
mod passed;
mod record;
mod stream;
mod treatment;
mod verdict;

pub use event::{Counters, Decision, Emission, Event, Forgery, Limit, Pair};
pub use interceptor::{Config, Interceptor, PairView, RefusalForm};
pub use limits::Limits;
pub(crate) use record::{pair_key, pair_of_key};
pub use verdict::{Enforcement, UnknownPair};
