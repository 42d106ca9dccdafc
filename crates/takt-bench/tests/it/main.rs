//! Tests of the benchmark with agents of their own.

mod campaign;
mod experiments;
mod machines;
mod performance_page;
mod roles;
mod scene;
mod sites;
mod ssh;
