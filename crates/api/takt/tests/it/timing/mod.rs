//! Executors, priorities and the threads that drive participants.

mod critical_path;
mod executor;
mod executor_faults;
mod idle;
mod leading;
mod priorities;
mod real_time;
mod timing_plan;
