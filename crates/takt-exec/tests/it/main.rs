//! Integration tests of takt-exec: settings are verified through the kernel, and refusals are
//! explained.

mod as_nobody;
mod process;
mod thread;
