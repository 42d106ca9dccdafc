//! Lifetime of sockets and programs: opening, sharing, kills, interfaces that change, and other
//! traffic.

mod ethernet_reopening;
mod foreign_traffic;
pub mod permissions;
mod probing;
mod process_kills;
mod reopening;
mod sharing;
