//! The scheduler: ways, classes, refusals and what mends them, links that fail, and its bounds against simulated frames.

mod admission;
mod networks;
mod reroute;
mod soundness;
