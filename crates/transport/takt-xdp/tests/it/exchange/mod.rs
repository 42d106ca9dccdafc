//! Exchange of datagrams and samples with AF_XDP, the kernel and AF_PACKET at the other end.

mod conforms;
pub mod ethernet;
mod families;
mod kernel_peer;
mod participants;
mod queues;
mod transport_selection;
