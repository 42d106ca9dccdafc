//! Discovery: participants, endpoints and types that find each other, their addresses and their
//! departure.

mod address_changes;
mod departures;
mod diagnosis;
mod enabling;
mod local_peers;
mod match_status;
mod multicast;
mod participants;
mod paths;
mod rediscovery;
mod rejoin;
mod servers;
mod source_addresses;
mod standstill;
mod static_endpoints;
mod type_checks;
mod type_lookup;
