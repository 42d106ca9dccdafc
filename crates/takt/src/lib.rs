//! takt
