//! Behaviour of the protocol engine: participants joined by a network that lives in memory, on a virtual clock.
#![allow(missing_docs)]

mod catalogue;
mod discovery;
mod durability;
mod forged;
mod fragments;
mod hostile;
mod instances;
mod limits;
mod liveliness;
mod network;
mod puppet;
mod reflection;
mod reliability;
mod replay;
mod session;
mod type_lookup;
