//! Takt, a real-time DDS: the DCPS application interface (DDS 1.4 §2.2.2) and its runtime.
//!
//! A [`DomainParticipant`] joins a domain. It creates [`Topic`]s, [`Publisher`]s with
//! [`DataWriter`]s, and [`Subscriber`]s with [`DataReader`]s. `#[derive(DdsType)]` makes a Rust
//! type usable as a topic type.
//!
//! ```no_run
//! use takt::{DdsType, DomainParticipant, qos::*};
//!
//! #[derive(DdsType, Clone, Debug, Default)]
//! struct Position {
//!     #[dds(key)]
//!     vehicle: u32,
//!     meters: f64,
//! }
//!
//! # fn main() -> takt::Result<()> {
//! let participant = DomainParticipant::builder(0).build()?;
//! let topic = participant.create_topic::<Position>("Position", TopicQos::default())?;
//! let publisher = participant.create_publisher(PublisherQos::default())?;
//! let writer = publisher.create_datawriter(&topic, DataWriterQos::default())?;
//! writer.write(&Position { vehicle: 7, meters: 12.5 })?;
//! # Ok(()) }
//! ```
//!
//! # Two runtimes
//! Under [`Runtime::Shared`] (the default) a participant has a receiving thread, and handles may be
//! used from any thread. Under [`Runtime::Inline`] it has no thread and no lock: the thread that
//! built it drives it. Both use the same code path; [`Idle`] selects between sleeping and spinning.
//!
//! Samples are received by taking, by listeners, by [`WaitSet`]s, or in `async` code by
//! [`SampleStream`]s.
//!
//! # Durations
//! A program needs [`std::time::Duration`] alone:
//! - A call that takes a duration accepts it (`impl Into<`[`Duration`]`>`), as do the builder, the
//!   calls that set QoS policies and [`qos::Deadline::new`] with its kin. 2^31 - 1 seconds (68
//!   years) and more are infinite, so [`std::time::Duration::MAX`] waits without a time limit, and
//!   means no limit where the call sets one.
//! - A call or a status that returns a duration returns a [`std::time::Duration`]. Histograms,
//!   traces and announced stages count nanoseconds, in fields and methods with the suffix `_ns`.
//! - The fields of QoS policies and discovery data are DDS durations, [`Duration`]: they may be
//!   infinite ([`Duration::INFINITE`]), and a peer may announce a negative one. Every call accepts
//!   them, too. [`Duration::as_std`] converts to the standard type. A call refuses a negative one
//!   with [`Error::BadParameter`].
//!
//! # Invariants
//! - `write` and `take` do not allocate once endpoints are created and matched, and never hand over
//!   to another thread: `write` sends in the context of the caller.
//! - Listeners are called one at a time and without a lock held.
//! - Malformed bytes from the network are counted, and never cause an [`Error`].
//!
//! Entities are deleted when their last handle is dropped, or by `close`, which reports failures.
//!
//! Names are those of the OMG specifications in Rust spelling.

pub mod builtin;
mod condition;
mod consistency;
mod content_filter;
pub mod dcps;
pub mod dynamic;
mod endpoint;
mod error;
mod executor;
mod flow;
mod group;
mod key;
mod listener;
mod log;
mod matched;
mod multitopic;
mod participant;
pub mod prelude;
mod publisher;
pub mod qos;
mod query;
mod readable;
mod reader;
pub mod real_time;
pub mod relay;
mod runtime;
mod sample;
mod security;
pub mod status;
mod stream;
mod subscriber;
mod timing;
mod timing_plan;
mod topic;
pub mod transport;
mod waitset;
mod writer;
pub mod xtypes;

pub use condition::{Condition, GuardCondition, ReadCondition, StatusCondition};
pub use content_filter::{ContentFilteredTopic, TopicDescription};
pub use endpoint::AnyEndpoint;
pub use error::{Cause, Error, Result};
pub use executor::{Executor, ExecutorBuilder, JOBS_MAX, Job, JobStatistics};
pub use flow::Flow;
pub use listener::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, PublisherListener, SubscriberListener,
    TopicListener,
};
pub use log::warn_by_default;
pub use multitopic::{Constituent, JOINED_TOPICS_MAX, MultiTopic, MultiTopicReader};
pub use participant::{
    Attempt, BudgetOverrun, BudgetOverrunStatus, BudgetOverruns, Contradiction, Decision, Diagnostics, DiscoveryServer,
    DiscoveryServerBuilder, DomainParticipant, DomainParticipantBuilder, OverrunEndpoint, RefusedParticipant,
    TRACE_JOBS_MAX, TransportReport, TransportTraffic,
};
#[doc(hidden)]
pub use participant::{variable_warnings, variables_of_settings};
pub use publisher::Publisher;
pub use query::QueryCondition;
pub use readable::Readable;
pub use reader::{AnyDataReader, DataReader, LoanedSample, SampleIter, Select, SharedSample};
pub use runtime::driver::DriverCounters;
pub use runtime::{Idle, Runtime};
pub use sample::Sample;
pub use security::SecurityConfig;
pub use security::log_topic::{
    BuiltinLoggingTypeV2, LOG_TOPIC_DEPTH, LOG_TOPIC_NAME, LogTime, LoggingLevel, NameValuePair,
};
pub use status::StatusMask;
pub use stream::SampleStream;
pub use subscriber::Subscriber;
pub use timing_plan::{TimingPlan, TopicStages, TopicTiming};
pub use topic::{AnyTopic, Topic};
pub use waitset::WaitSet;
pub use writer::{AnyDataWriter, BatchError, DataWriter, LoanedPayload};

pub use takt_core::{
    Caution, CautionKind, Counters, INTEREST_PROPERTY, InstanceHandle, InstanceState, InstanceStates, Instances,
    Limits, Refusal, RefusalReason, SampleInfo, SampleState, SampleStates, Selector, SilentParticipant,
    StaticParticipant, ViewState, ViewStates, presentation_caution,
};
pub use takt_derive::DdsType;
pub use takt_wire::discovery::{
    ContentFilterProperty, HostStage, HostStages, ParticipantData, PublicationData, ReportedRefusal, SubscriptionData,
};
pub use takt_wire::qos::{BUDGET_PROPERTY, OVERRUN_PROPERTY, PRIORITY_PROPERTY, TRANSPORT_PROPERTY};
pub use takt_wire::{
    Duration, EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber, Timestamp, VendorId,
};
pub use takt_xtypes::TypeSupport;
/// Trait that the derive macro of the same name implements, for bounds such as `T: takt::DdsType`.
/// The same as [`TypeSupport`].
pub use takt_xtypes::TypeSupport as DdsType;

/// Support of generated code, whose paths are no interface: `#[derive(DdsType)]` refers to it.
#[doc(hidden)]
pub use takt_xtypes as generated;

/// Doctest module of the project's documents: their examples must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../README.md")]
#[doc = include_str!("../../../../docs/tutorial/getting-started.md")]
#[doc = include_str!("../../../../docs/guide/types.md")]
#[doc = include_str!("../../../../docs/guide/ros2.md")]
#[doc = include_str!("../../../../docs/guide/presentation.md")]
#[doc = include_str!("../../../../docs/guide/durability.md")]
#[doc = include_str!("../../../../docs/guide/tcp.md")]
#[doc = include_str!("../../../../docs/guide/ethernet.md")]
#[doc = include_str!("../../../../docs/guide/executor.md")]
#[doc = include_str!("../../../../docs/guide/migrate-from-cyclonedds.md")]
struct Documents;
