//! AF_XDP between network namespaces that the tests make themselves. That takes root and a kernel with AF_XDP; without them
//! nothing is tested, and the reason is printed.

mod chosen;
mod conforms;
#[path = "../../../takt-transport/tests/it/counting_allocator.rs"]
mod counting_allocator;
mod counting_calls;
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
mod urgent_first;
