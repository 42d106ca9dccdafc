//! OpenFlow 1.0, 1.3, 1.4 and 1.5: message codec, and the channel between controller and switch.
//!
//! One model serves every version: [`Message`]. The version is an argument of [`Message::decode`]
//! and [`Message::encode`]. A part that a version cannot express is an [`EncodeError`] that names
//! it. Data in fixed fields of one version and properties of a later one, such as the speeds of a
//! port, are properties here.
//!
//! - [`message`]: every message; the other modules define the bodies;
//! - [`stream`]: messages from the octets of a TCP connection;
//! - [`channel`]: sans-IO state machines of controller and switch: handshake, echo, requests with
//!   deadlines, transactions, bundles, multipart replies, back-pressure.
//!
//! Invariants:
//! - The crate has no I/O, no clock and no random source.
//! - Decoding never panics for any octets. Lists are bounded by the 16-bit length of the message.
//!   Messages enclose others at most one level deep.
//! - Decoded octets are encoded to the same octets. Reserved octets are ignored when read, and zero
//!   when written.
//! - Every queue of a channel has a limit.
//!
//! Not included: TCP and TLS, the behavior of a switch, prerequisites of matches, flow monitors and
//! features of bundles (kept as octets), OpenFlow 1.1 and 1.2.
//!
//! Specifications: ONF OpenFlow Switch Specification 1.0.2, 1.3.5, 1.4.1, 1.5.1; ONF extension 230
//! (bundles in 1.3).
//!
//! ```
//! use core::time::Duration;
//! use takt_openflow::channel::{
//!     Controller, ControllerConfig, Event, Instant, Limits, Outcome, Switch, SwitchChannelConfig, SwitchEvent,
//! };
//! use takt_openflow::{Message, Version, Versions, flow::FlowMod, switch::Features};
//!
//! let (now, second) = (Instant(0), Duration::from_secs(1));
//! let features = Features { datapath: 0x2a, ..Features::default() };
//! let mut controller = Controller::new(now, ControllerConfig::default());
//! let mut switch =
//!     Switch::new(now, SwitchChannelConfig { versions: Versions::ALL, features, limits: Limits::default() });
//!
//! // In place of a TCP connection: each end takes what the other transmits, and the switch answers barriers.
//! let mut exchange = |controller: &mut Controller| loop {
//!     let (out, back) = (controller.poll_transmit().to_vec(), switch.poll_transmit().to_vec());
//!     if out.is_empty() && back.is_empty() {
//!         break;
//!     }
//!     controller.transmitted(switch.handle_bytes(now, &out));
//!     switch.transmitted(controller.handle_bytes(now, &back));
//!     while let Some(event) = switch.poll_event() {
//!         match event {
//!             SwitchEvent::Request(request) if request.message == Message::BarrierRequest => {
//!                 switch.reply(request.xid, &Message::BarrierReply).expect("there is room");
//!             }
//!             _ => {}
//!         }
//!     }
//! };
//! exchange(&mut controller);
//! let Some(Event::Up { version, features }) = controller.poll_event() else { panic!("no handshake") };
//! assert_eq!((version, features.datapath), (Version::V1_5, 0x2a));
//!
//! let flows = [Message::FlowMod(FlowMod::default())];
//! let transaction = controller.transaction(now, second, &flows).expect("there is room");
//! exchange(&mut controller);
//! let expected = Event::Completed { operation: transaction, outcome: Outcome::Done };
//! assert_eq!(controller.poll_event(), Some(expected));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod action;
pub mod bundle;
pub mod cause;
pub mod channel;
mod error;
pub mod flow;
pub mod flow_match;
pub mod group;
pub mod hello;
pub mod instruction;
pub mod message;
pub mod meter;
pub mod multipart;
pub mod oxm;
pub mod packet;
pub mod port;
pub mod queue;
pub mod statistic;
pub mod stream;
pub mod switch;
pub mod table;
pub mod value;
mod version;
mod wire;

pub use error::{EncodeError, Malformed};
pub use message::{HEADER_LEN, Header, MESSAGE_LEN_MAX, Message, Xid};
pub use version::{Version, Versions};

/// The examples of the documentation have to work.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/reference/openflow.md")]
struct Document;
