//! Tests of labs on this machine, with Open vSwitch. A test that cannot run reports that.

mod bridges;
mod kill;
mod links;
mod support;
mod switches;
