//! Behaviour of the public API between participants on loopback. Each test has a domain of its own.

mod async_receive;
mod blocking_write;
mod builtin_topics;
mod content_filter;
mod contracts;
mod directed_write;
mod dynamic;
mod exchange;
mod flow_identity;
mod instances;
mod large_sample;
mod late_joiner;
mod lifecycle;
mod listener;
mod liveliness;
mod lossy_network;
mod many_participants;
mod matching;
mod policies;
mod races;
mod reading;
mod reading_instances;
mod representation;
mod suffering;
mod support;
mod waitset;
