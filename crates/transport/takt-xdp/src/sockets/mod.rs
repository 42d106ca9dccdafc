//! AF_XDP sockets with their rings, frames and queues.

pub(crate) mod holds;
pub(crate) mod mapping;
pub(crate) mod queue_binding;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod socket_set;
pub(crate) mod umem;
