//! The Takt protocol engine: one DDS participant as a sans-IO state machine.
//!
//! [`Participant`] takes datagrams, time and the application's calls as input and yields datagrams,
//! deadlines and events as output. It never reads a clock, a socket, a thread or a random source;
//! the `no_std` attribute proves it. The sequence of inputs alone decides the outputs.
//!
//! Specifications: RTPS 2.5 §8.3 (messages), §8.4 (behavior), §8.5 (discovery), §9.6 (mapping to
//! UDP); DDS 1.4 §2.2.3 (QoS).
//!
//! # Invariants
//! - **Bounded calls.** Each input method handles one datagram or one batch of at most
//!   [`MAX_TIMERS_PER_CALL`] timers; [`Participant::poll_transmit`] builds one datagram.
//! - **No allocation on the data plane.** Histories, reorder windows and payload memory are
//!   reserved when an endpoint is created or matched. Discovery may allocate, within [`Limits`].
//! - **Bad bytes are no error.** They are counted in [`Counters`] and dropped.
//!
//! Outside this crate: the language of content filters (see [`ContentFilter`]), the storage of
//! TRANSIENT and PERSISTENT samples, and the plugins of DDS Security (see
//! [`Participant::with_security`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod blocked_flows;
mod cache;
mod config;
mod content_filter;
mod context;
mod count;
mod counters;
mod deadline;
mod discovery;
mod endpoints;
mod error;
mod event;
mod lifespan;
mod locator_kinds;
mod multicast_group;
mod participant;
mod path;
mod presentation;
pub mod ranks;
mod reader;
mod schedule;
pub mod security;
mod sequence_window;
mod slots;
mod standstill;
mod status;
mod time;
mod timer;
mod work;
mod writer;

pub use cache::{
    ChangeKind, InstanceHandle, InstanceState, InstanceStates, Instances, KeyExtractor, KeyHash, LatencyExceededStatus,
    LatencyTerms, OrderedSample, ReadCursor, SampleInfo, SampleQuery, SampleRef, SampleState, SampleStates, Selector,
    ViewState, ViewStates,
};
pub use config::{Config, Interface, Limits, Locators, MAX_PEERS, StaticParticipant};
pub use content_filter::{ContentFilter, FilterFactory, ReaderFilter};
pub use counters::Counters;
pub use discovery::{
    AMPLIFICATION_MAX, BuiltinTopic, Caution, CautionKind, INTEREST_PROPERTY, OfferedType, Refusal, RefusalReason,
    SERVER_PROPERTY, SilentParticipant, TypeAnswer, TypeCheck, TypeVerdict,
};
pub use error::{Error, WriteError};
pub use event::{Event, TypeRequestId};
pub use locator_kinds::LocatorKinds;
pub use participant::{
    DURABILITY_SERVICE, MAX_TIMERS_PER_CALL, NewChange, Participant, ReaderSpec, Received, Transmit, WriterSpec,
};
pub use presentation::presentation_caution;
pub use slots::{PublisherHandle, ReaderHandle, SubscriberHandle, WriterHandle};
pub use status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus,
    LivelinessLostStatus, MatchedStatus, SampleLostStatus, SampleRejectedReason, SampleRejectedStatus,
};
pub use takt_schedule::Priority;
pub use time::{Clocks, Instant};
pub use work::{RemoteStateSize, Work};

/// Identifies the socket by which the driver sends a datagram; `0` is the participant's own socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowTag(pub u16);

/// The flows of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterFlows {
    /// Flow of new samples, of HEARTBEATs, and of repairs for readers that keep pace.
    pub live: FlowTag,
    /// Flow of repairs for readers that catch up: late joiners of a TRANSIENT_LOCAL writer, and
    /// readers that fell behind. Hosts and networks serve traffic classes by strict priority. A
    /// history in a high class would fill a link until it is sent, and would delay announcements
    /// and acknowledgments for longer than a lease.
    pub history: FlowTag,
}

impl From<FlowTag> for WriterFlows {
    /// Uses one flow for all datagrams of the writer.
    fn from(flow: FlowTag) -> Self {
        Self { live: flow, history: flow }
    }
}
