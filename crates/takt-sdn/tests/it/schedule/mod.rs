//! The scheduler: ways, classes, refusals and what mends them, links that fail, and its bounds against simulated frames.

mod admission;
mod end_to_end;
mod networks;
mod protection;
mod reroute;
mod soundness;
