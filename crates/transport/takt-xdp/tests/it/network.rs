//! Test networks for AF_XDP: those of [`takt_testkit::network`], where the kernel supports it.

use takt_testkit::{network, not_run, require};

pub use network::{Host, create_veth_pair, ip};

/// MTU above which a packet takes several frames.
const SEVERAL_FRAMES: usize = 3822;

/// Reports that the test cannot run if this process cannot open AF_XDP sockets, or the kernel does
/// not support frames of several parts.
pub fn is_possible(mtu: usize) -> Option<()> {
    let several = || if mtu > SEVERAL_FRAMES { require::kernel(6, 6) } else { Ok(()) };
    require::network_namespaces().and_then(|()| require::af_xdp()).and_then(|()| several()).map_err(not_run).ok()
}

/// Hosts at one bridge.
pub struct Network(network::Network);

impl Network {
    /// Makes an empty network with an MTU of 1500; `None` if the test cannot run.
    pub fn new() -> Option<Self> {
        Self::of_mtu(1500)
    }

    /// Makes an empty network of this MTU.
    pub fn of_mtu(mtu: usize) -> Option<Self> {
        is_possible(mtu)?;
        network::Network::of_mtu(mtu).map(Self)
    }

    /// Adds a host; see [`network::Network::host`].
    pub fn host(&self, knows_all: bool) -> Host {
        self.0.host(knows_all)
    }

    /// Returns the dropped frames; see [`network::Network::drops`].
    pub fn drops(&self) -> u64 {
        self.0.drops()
    }
}

/// Makes two hosts with a wire between them; see [`network::wire`]. `None` if the test cannot run.
pub fn wire(queues: u32) -> Option<[Host; 2]> {
    is_possible(0)?;
    network::veth_pair(queues)
}
