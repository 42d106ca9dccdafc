//! takt-wire
