//! takt-openflow from outside: published vectors, other decoders, random messages, hostile octets, a real switch.

mod channel;
mod hostile_octets;
mod memory;
mod pair;
mod samples;
mod vectors;
