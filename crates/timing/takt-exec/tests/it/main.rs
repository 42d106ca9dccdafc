//! Integration tests of takt-exec: settings are verified through the kernel, and refusals are
//! explained.

mod process;
mod thread;
mod unprivileged;
