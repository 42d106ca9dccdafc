//! UDPv4 and UDPv6: the platform specific model of RTPS 2.5 §9.

mod config;

pub use config::{InterfaceSelection, ParticipantIndex, UdpConfig};
