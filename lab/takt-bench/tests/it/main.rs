//! Tests of takt-bench with agents that the tests provide.

mod campaign;
mod experiments;
mod machines;
mod performance_page;
mod roles;
mod scene;
mod sites;
mod ssh;
