//! Entities: creation, enabling, deletion, and concurrent use.

mod durations;
mod entity_tree;
mod lifecycle;
mod races;
