//! Behaviour of the public API between participants on loopback. Each test has a domain of its own.

mod async_receive;
mod batch;
mod blocking_write;
mod builtin_topics;
mod coherent_access;
mod content_filter;
mod contracts;
#[path = "../../../takt-xdp/tests/it/counting_calls.rs"]
mod counting_calls;
mod critical_path;
mod directed_write;
mod discovery_server;
mod dynamic;
mod entity_tree;
mod ethernet;
mod exchange;
mod executor;
mod executor_faults;
mod flow_identity;
mod idle;
mod instances;
mod interfaces;
mod large_sample;
mod late_joiner;
mod lifecycle;
mod listener;
mod liveliness;
mod loans;
mod lossy_network;
mod many_participants;
mod matching;
mod multitopic;
#[path = "../../../takt-xdp/tests/it/network.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod network;
mod peers;
mod policies;
mod priorities;
mod query_condition;
mod races;
mod reading;
mod reading_instances;
mod real_time;
mod representation;
mod shared_memory;
mod shared_samples;
mod suffering;
mod support;
mod tcp;
mod timing_plan;
mod transports;
mod type_consistency;
mod waitset;
