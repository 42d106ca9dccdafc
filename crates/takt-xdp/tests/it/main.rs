//! Tests of AF_XDP between network namespaces, which need root and a kernel with AF_XDP. Without
//! them, each test reports that it cannot run.

mod checked;
mod chosen;
mod conforms;
mod data_path;
mod datagrams;
mod ethernet;
mod ethernet_life;
mod families;
mod idle;
mod kernel_peer;
mod kills;
mod loans;
mod network;
mod no_allocation;
mod others;
mod participants;
mod parties;
mod permissions;
mod probing;
mod queues;
mod reopening;
mod resident;
mod sharing;
mod sites;
mod urgent_first;

use takt_testkit::counting_calls;

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;
