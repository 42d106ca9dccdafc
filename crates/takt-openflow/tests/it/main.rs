//! takt-openflow from outside: published vectors, other decoders, random messages, hostile octets, a real switch.

mod channel;
mod corpus;
mod hostile_octets;
mod memory;
mod open_vswitch;
mod ovs_print;
mod pair;
mod samples;
mod tshark;
mod vectors;
