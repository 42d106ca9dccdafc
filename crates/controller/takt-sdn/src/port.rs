//! Ports of switches.

use std::fmt;

use takt_openflow::value::PortNo;

/// A port of a switch: the datapath id and the number of the port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortRef {
    /// The datapath id of the switch.
    pub dpid: u64,
    /// Number of the port.
    pub port: u32,
}

impl PortRef {
    /// Creates a reference to a port of a switch.
    pub const fn new(dpid: u64, port: u32) -> Self {
        Self { dpid, port }
    }

    /// Returns the OpenFlow port number.
    pub const fn number(self) -> PortNo {
        PortNo(self.port)
    }
}

impl fmt::Display for PortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}:{}", self.dpid, self.port)
    }
}
