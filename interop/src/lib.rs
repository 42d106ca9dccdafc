//! takt-interop
