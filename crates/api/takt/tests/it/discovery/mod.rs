//! Discovery of participants, and matching of their endpoints.

mod builtin_topics;
mod discovery_server;
mod interfaces;
mod many_participants;
mod matching;
mod peers;
mod sources;
mod type_consistency;
