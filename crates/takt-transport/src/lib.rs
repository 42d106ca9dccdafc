//! takt-transport
