//! The durability service on loopback: what outlives whom.

mod full_disk;
mod limits;
mod one_topic;
mod outliving;
mod support;
mod two_services;
