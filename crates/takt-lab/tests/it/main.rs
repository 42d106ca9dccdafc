//! Labs that are made on this machine, with Open vSwitch. Each test says if it cannot run.

mod bridges;
mod kill;
mod links;
mod support;
mod switches;
