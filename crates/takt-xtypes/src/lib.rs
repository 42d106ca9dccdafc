//! takt-xtypes
