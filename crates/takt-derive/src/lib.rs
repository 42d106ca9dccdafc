//! takt-derive
