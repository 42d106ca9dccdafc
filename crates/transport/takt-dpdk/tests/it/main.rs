//! Tests of the stack over frames in memory; with the feature `dpdk`, of both wire formats over
//! DPDK's virtual devices. Tests that need root (network namespaces) are reported as not run
//! without it.

mod memory;
mod stack_behavior;
mod stack_conforms;

#[cfg(feature = "dpdk")]
mod conforms;
#[cfg(feature = "dpdk")]
mod data_path;
#[cfg(feature = "dpdk")]
mod devices;
#[cfg(feature = "dpdk")]
mod kernel_peer;
#[cfg(feature = "dpdk")]
mod participants;
#[cfg(feature = "dpdk")]
#[allow(dead_code)]
#[path = "../../../takt-xdp/tests/it/participants_helper.rs"]
mod participants_helper;
#[cfg(feature = "dpdk")]
mod ports;
#[cfg(feature = "dpdk")]
mod switch;
#[cfg(feature = "dpdk")]
#[path = "../../../takt-xdp/tests/it/transport_on_host.rs"]
mod transport_on_host;

#[cfg(feature = "dpdk")]
use takt_testkit::{counting_calls, network};

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;
