//! The analysis against a simulation, and the checker against lies.

mod composition;
mod lies;
mod network;
mod random;
mod simulation;
mod soundness;
mod two_hosts;
