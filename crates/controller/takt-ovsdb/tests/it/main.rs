//! Tests of the client against hostile octets, a scripted peer and Open vSwitch.

mod hostile_octets;
mod open_vswitch;
mod scripted_peer;
