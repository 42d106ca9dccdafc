//! The analysis against a simulation, and the checker against lies.

mod lies;
mod random;
mod simulation;
mod soundness;
mod two_hosts;
