//! Behaviour of the protocol engine: participants joined by a network that lives in memory, on a virtual clock.
#![allow(missing_docs)]

mod announcements;
mod batching;
mod catalogue;
mod channels;
mod coherent;
mod content_filter;
mod contract;
mod deadline;
mod discovery;
mod durability;
mod enabling;
mod forged;
mod forgetting;
mod fragments;
mod groups;
mod hostile;
mod instances;
mod lifespan;
mod limits;
mod liveliness;
mod moving;
mod neighbours;
mod network;
mod outbound;
mod ownership;
mod policies;
mod promptness;
mod puppet;
mod purging;
mod reflection;
mod rejoin;
mod relay;
mod reliability;
mod relief;
mod replay;
mod server;
#[allow(dead_code)]
mod session;
mod source_order;
mod static_endpoints;
mod statuses;
mod time_filter;
mod type_checks;
mod type_lookup;
mod work;
