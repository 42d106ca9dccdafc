//! RTPS directly on Ethernet: the layer-2 form that AF_PACKET, AF_XDP and DPDK share.
//!
//! A [`FramePort`] moves frames of one interface.

mod frame_port;

pub use frame_port::{FramePort, FramePortStats};
