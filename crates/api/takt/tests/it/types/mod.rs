//! Types, instances and data representations.

mod dynamic;
mod instance_identity;
mod instances;
mod representation;
