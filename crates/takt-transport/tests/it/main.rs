//! Tests of the transports, over loopback alone.

mod udp_conforms;
