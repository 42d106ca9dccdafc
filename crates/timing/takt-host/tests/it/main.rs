//! Plans that are made, applied and reverted, in directory trees that represent a machine and on a
//! real interface.

mod classes;
mod coalescing;
mod interfaces;
mod namespace;
mod plans;
mod steering;
mod transactions;
mod tree;
