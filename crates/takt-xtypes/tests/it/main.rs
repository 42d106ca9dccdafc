//! Integration tests of takt-xtypes with derived types.

mod smoke;
