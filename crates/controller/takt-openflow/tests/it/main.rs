//! Integration tests of takt-openflow: published vectors, other decoders, random messages, hostile
//! octets, a real switch.

mod channel;
mod corpus;
mod hostile_octets;
mod open_vswitch;
mod ovs_print;
mod pair;
mod samples;
mod tshark;
mod vectors;

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;
