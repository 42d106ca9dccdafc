//! Sample memory: the payload pool of both histories, and the samples of a reader.

mod latency;
mod marks;
mod memory;
mod pool;
mod reader_cache;
mod sample;

pub(crate) use latency::LatencyMonitor;
pub use latency::{LatencyExceededStatus, LatencyTerms};
pub(crate) use pool::{PayloadPool, PayloadRef, PoolSize};
pub(crate) use reader_cache::{
    CacheLimits, CachePolicies, Delivered, Incoming, NoRoom, PlainSample, ReaderCache, Stored,
};
pub use sample::{
    ChangeKind, InstanceHandle, InstanceState, InstanceStates, Instances, KeyExtractor, KeyHash, OrderedSample,
    ReadCursor, SampleInfo, SampleQuery, SampleRef, SampleState, SampleStates, Selector, ViewState, ViewStates,
};
