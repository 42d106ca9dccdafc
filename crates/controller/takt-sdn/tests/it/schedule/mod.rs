//! Tests of the scheduler: paths, classes, refusals and remedies, failed links, and its bounds
//! against simulated frames.

mod admission;
mod end_to_end;
mod networks;
mod protection;
mod reroute;
mod soundness;
