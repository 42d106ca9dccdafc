//! Tests that overload networks, with switches and floods at real-time priority. The runner runs
//! them one after the other, without other tests (`APART` in `xtask/src/testing/programs/mod.rs`).

mod bench;
mod end_to_end;
mod survival;
