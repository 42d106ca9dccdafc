//! Hostile and malformed input, and the limits that hold against it.

mod forged;
mod limits;
mod random_input;
mod reflection;
mod replay;
mod work;
