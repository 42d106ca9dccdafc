//! Real-time settings of threads and processes, and the jobs of executors.

pub use takt_exec::{LatencyRequest, ProcessSettings, Refusal, Scheduling, ThreadSettings};
pub use takt_schedule::{Histogram, JobClass, JobKind, Priority};
