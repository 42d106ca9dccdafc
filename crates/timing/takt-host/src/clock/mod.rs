//! Clock offsets and their uncertainty.
//!
//! | module | content |
//! |---|---|
//! | [`echo`] | the offset of a remote clock from echoes, with hard bounds |
//! | [`quality`] | the synchronization of this host's clock: according to the kernel, to chrony, and to clocks of network cards |
//!
//! All times are nanoseconds.

pub mod echo;
pub mod quality;

pub use echo::{Echo, Offset, OffsetEstimator};
pub use quality::{ClockQuality, Source};
