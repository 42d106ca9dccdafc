//! Tests of the crate against the program `openssl`, and counts of allocations.

mod allocations;
mod command_line;
mod corpus;
mod damage;
mod identities;
mod network;
mod session;
mod session_memory;

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;
