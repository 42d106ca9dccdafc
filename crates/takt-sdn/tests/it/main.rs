//! The controller over simulated switches, and the scheduler of its flows.

mod admission;
mod api;
mod attacks;
mod connections;
mod discovery_attacks;
mod discovery_corpus;
mod discovery_engines;
mod discovery_network;
mod endpoints;
mod fabric;
mod open_vswitch;
mod overload;
mod page;
mod plain_ethernet;
mod restart;
mod resynchronisation;
mod schedule;
mod switch;
mod view;
