//! Plans made, applied and taken back, in trees of files that look like a machine, and on a real interface.

mod plans;
mod transactions;
mod tree;
