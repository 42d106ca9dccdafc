//! Tests of the network analysis: random networks, simulated frame by frame, against the bounds of
//! queues and flows.

mod admission;
mod discodnc;
mod drain;
mod generate;
mod lies;
mod oracle;
mod soundness;
