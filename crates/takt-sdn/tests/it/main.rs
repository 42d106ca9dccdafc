//! The controller over simulated switches, and the scheduler of its flows.

mod attacks;
mod fabric;
mod open_vswitch;
mod plain_ethernet;
mod resynchronisation;
mod schedule;
mod switch;
