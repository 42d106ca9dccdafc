//! Profiles and settings as users write them, and the errors of invalid ones.

mod convert;
mod documentation;
mod errors;
mod profiles;
mod settings;
mod system;
