//! Project checks.
fn main() {}
