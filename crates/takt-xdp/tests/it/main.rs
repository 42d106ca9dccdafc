//! Tests of AF_XDP between network namespaces, which need root and a kernel with AF_XDP. Without
//! them, each test reports that it cannot run.

mod checked;
mod conforms;
mod data_path;
mod datagrams;
mod ethernet;
mod ethernet_reopening;
mod families;
mod foreign_traffic;
mod kernel_peer;
mod loans;
mod network;
mod no_allocation;
mod participants;
mod participants_helper;
mod permissions;
mod probing;
mod process_kills;
mod queues;
mod reopening;
mod resident;
mod sharing;
mod sleeping;
mod test_networks;
mod transport_selection;
mod urgent_first;

use takt_testkit::counting_calls;

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;
