//! Cost of a datagram: copies, system calls, allocations, loans, and the order of urgent ones.

mod data_path;
mod loans;
mod no_allocation;
mod sleeping;
mod urgent_first;
