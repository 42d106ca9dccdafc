//! The controller over simulated switches.

mod attacks;
mod fabric;
mod plain_ethernet;
mod resynchronisation;
mod switch;
