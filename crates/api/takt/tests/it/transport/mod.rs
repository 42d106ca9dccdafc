//! Participants over each transport, and the selection of transports.

mod capture;
mod daemon;
mod ethernet;
mod flow_identity;
mod fragment_queue;
mod loans;
mod own_transport;
mod shared_memory;
mod shared_samples;
mod tcp;
mod transports;
