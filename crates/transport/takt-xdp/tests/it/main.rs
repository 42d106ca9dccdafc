//! Tests of AF_XDP between network namespaces, which need root and a kernel with AF_XDP. Without
//! them, each test reports that it cannot run.

mod checked;
mod cost;
mod datagrams;
mod exchange;
mod lifetime;
mod network;
mod participants_helper;
mod test_networks;
mod transport_on_host;

use takt_testkit::counting_calls;

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;
