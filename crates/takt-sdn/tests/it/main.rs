//! The controller over simulated switches, and the scheduler of its flows.

mod admission;
mod admitted_under_attack;
mod api;
mod attacks;
mod cluster;
mod connections;
mod detour;
mod discovery_attacks;
mod discovery_corpus;
mod discovery_engines;
mod discovery_network;
mod endpoints;
mod fabric;
mod isolation;
mod multicast;
mod open_vswitch;
mod overload;
mod page;
mod plain_ethernet;
mod reconfiguration;
mod restart;
mod resynchronisation;
mod schedule;
mod site;
mod switch;
mod view;
