//! Delivery of samples from writers to readers.

mod batch;
mod blocking_write;
mod directed_write;
mod exchange;
mod first_sample;
mod large_sample;
mod last_samples;
mod late_joiner;
mod lossy_network;
