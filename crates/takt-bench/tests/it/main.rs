//! Tests of the benchmark with agents of their own.

mod campaign;
mod scene;
mod sites;
mod ssh;
