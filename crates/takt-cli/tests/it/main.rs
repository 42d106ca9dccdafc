//! The `takt` command from outside: processes, their output, their exit codes. All traffic is on loopback; each test
//! has a domain of its own.

mod agent_contract;
mod command_line;
mod compare;
mod listing;
mod process;
mod round_trips;
mod streams;
