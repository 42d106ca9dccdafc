//! Policies that are visible to applications, and relays of durability services.

mod contracts;
mod liveliness;
mod policies;
mod relay;
