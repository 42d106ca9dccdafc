//! How far clocks are from each other, and how well that is known.
//!
//! | module | what it is |
//! |---|---|
//! | [`echo`] | the offset of another host's clock from echoes, with hard bounds |
//! | [`quality`] | how well this host's clock is synchronised: the kernel's word, chrony's, and clocks of network cards |
//!
//! All times are nanoseconds.

pub mod echo;
pub mod quality;

pub use echo::{Echo, Offset, OffsetEstimator};
pub use quality::{ClockQuality, Source};
