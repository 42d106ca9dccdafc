//! takt-core
