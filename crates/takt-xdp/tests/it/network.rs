//! Networks of the test's own for AF_XDP: those of [`takt_testkit::network`], where the kernel has it.

use takt_testkit::{network, not_run, require};

pub use network::{Host, ip, lay};

/// From this MTU on a packet takes several frames.
const SEVERAL_FRAMES: usize = 3822;

/// Reports that the test cannot run if this process cannot open sockets of AF_XDP, or the kernel no frames of several parts.
pub fn is_possible(mtu: usize) -> Option<()> {
    let several = || if mtu > SEVERAL_FRAMES { require::kernel(6, 6) } else { Ok(()) };
    require::network_namespaces().and_then(|()| require::af_xdp()).and_then(|()| several()).map_err(not_run).ok()
}

/// Hosts at one bridge.
pub struct Network(network::Network);

impl Network {
    /// An empty network of the usual MTU; `None` if the test cannot run.
    pub fn new() -> Option<Self> {
        Self::of_mtu(1500)
    }

    /// One of this MTU.
    pub fn of_mtu(mtu: usize) -> Option<Self> {
        is_possible(mtu)?;
        network::Network::of_mtu(mtu).map(Self)
    }

    /// See [`network::Network::host`].
    pub fn host(&self, knows_all: bool) -> Host {
        self.0.host(knows_all)
    }

    /// See [`network::Network::drops`].
    pub fn drops(&self) -> u64 {
        self.0.drops()
    }
}

/// Two hosts with a wire between them; see [`network::wire`]. `None` if the test cannot run.
pub fn wire(queues: u32) -> Option<[Host; 2]> {
    is_possible(0)?;
    network::wire(queues)
}
