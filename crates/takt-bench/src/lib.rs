//! takt-bench
