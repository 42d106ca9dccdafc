//! Tests of the benchmark with agents of their own.

mod campaign;
