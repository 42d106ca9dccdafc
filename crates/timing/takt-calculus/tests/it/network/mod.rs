//! Tests of the network analysis: random networks, simulated frame by frame, against the bounds of
//! queues and flows.

mod admission;
mod discodnc;
mod drain;
mod false_claims;
mod generate;
mod oracle;
mod soundness;
