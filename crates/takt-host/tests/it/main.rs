//! Plans made, applied and taken back, in trees of files that look like a machine, and on a real interface.

mod classes;
mod coalescing;
mod interfaces;
mod namespace;
mod plans;
mod steering;
mod transactions;
mod tree;
