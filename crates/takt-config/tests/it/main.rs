//! Profiles and settings as users write them, and what is said of those that are wrong.

mod documentation;
mod errors;
mod profiles;
mod settings;
mod system;
