//! The durability service on loopback: what outlives whom.

mod limits;
mod outliving;
mod support;
mod two_services;
