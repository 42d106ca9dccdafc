//! Support for Takt's tests: reports of tests that cannot run, checks of requirements on the
//! machine, and helpers that several crates share.
//!
//! A test that returns early counts as passed in libtest. A test whose precondition is not met
//! calls [`not_run`], so that the runner (`cargo xtask test`) counts it as skipped and lists its
//! reason. The checks in [`require`] query the kernel directly and use no code of Takt: an error of
//! the code under test is never a reason to skip.

pub mod browser;
pub mod counting_calls;
pub mod directory;
pub mod domain;
pub mod flood;
mod full_length;
pub mod lab_text;
pub mod memory;
pub mod network;
mod not_run;
pub mod open_vswitch;
pub mod overload;
pub mod pcapng;
mod random;
pub mod require;
pub mod waiting;

pub use full_length::is_full_length;
pub use not_run::{RECORDS_VARIABLE, not_run};
pub use random::Random;
