//! RTPS 2.5 wire format: parsing and serialization of messages and discovery data.
//!
//! Contents: messages and submessages (views that borrow the datagram, and a builder that writes
//! into the caller's frame), parameter lists, the QoS policies with their defaults and wire
//! formats, the discovery data of SPDP and SEDP, the compatibility check of offered and requested
//! QoS, and basic values (GUID, locator, sequence number, time).
//!
//! Invariants:
//! - No I/O, no clock, no thread: the crate is `no_std` and needs `alloc` for discovery only.
//! - Views and builders never allocate. Discovery data allocates within the limits of
//!   [`discovery::limits`] and never from a count that a peer wrote.
//! - Every read goes through [`cursor::Cursor`], which checks bounds. Malformed input results in
//!   [`Malformed`] and never in a panic.
//!
//! Specifications: DDSI-RTPS 2.5, DDS 1.4 (policies), XTypes 1.3 (data representation and type
//! consistency policies).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod builder;
pub mod compat;
pub mod cursor;
pub mod discovery;
pub mod error;
pub mod guid;
pub mod inline_qos;
pub mod locator;
pub mod message;
pub mod parameter;
pub mod partition;
pub mod ports;
pub mod qos;
pub mod sequence;
pub mod shared_payload;
pub mod time;
pub mod type_lookup;
pub mod version;

/// Octets of the longest RTPS message that every path carries: a packet of 576 octets, which every
/// host receives (RFC 791 §3.1), without IPv4 and UDP headers.
pub const MESSAGE_LEN_MIN: usize = 548;

pub use builder::{DataEmit, DataFragEmit, MessageBuilder};
pub use cursor::{Cursor, Endianness};
pub use error::{Full, Malformed};
pub use guid::{EntityId, Guid, GuidPrefix};
pub use locator::Locator;
pub use message::{
    AckNack, Data, DataFrag, Gap, Header, Heartbeat, HeartbeatFrag, MessageView, NackFrag, Payload, Submessage,
};
pub use sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet};
pub use shared_payload::{PAYLOAD_PREFIX_LEN, Piece, SharedBuffer, SharedFrame, SharedPayload, SharedPayloadMemory};
pub use time::{Duration, Timestamp};
pub use version::{ProtocolVersion, VendorId};
