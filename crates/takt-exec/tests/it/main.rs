//! What was asked for is so, as the kernel tells others; and what is refused is explained.

mod as_nobody;
mod process;
mod thread;
