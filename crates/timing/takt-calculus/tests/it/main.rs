//! Integration tests of takt-calculus: the analysis against a simulation, and the checker against
//! false claims.

mod composition;
mod false_claims;
mod network;
mod random;
mod simulation;
mod soundness;
mod two_hosts;
