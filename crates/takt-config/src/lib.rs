//! Configurations for Takt: QoS profiles, and settings of participants.
//!
//! - [`QosProvider`] reads QoS libraries in the OMG's form, DDS-XML 1.0 §7.3.2, and the same in TOML.
//! - [`Settings`] reads what a participant shall be from TOML files and the environment, together with profiles.
//! - [`system`] reads what `takt analyze` analyses, with accounts of what jobs took, and makes a participant's timing plan of it.
//! - [`show`] writes both, each value with where it comes from; [`reference`] writes the documentation.
//!
//! Two tables say what there is: [`policy::FIELDS`] and [`setting::all`]. Readers, writers and documentation go by
//! them alone. Unknown names are errors; files have at most [`FILE_BYTES_MAX`] bytes; XML entities are not expanded.
//!
//! This crate stands above `takt`, which needs none of it: who sets policies in code compiles no parser.

mod error;
mod library;
pub mod policy;
mod provider;
pub mod reference;
pub mod setting;
mod settings;
pub mod show;
mod similar;
mod static_endpoints;
pub mod system;
mod toml_tree;
mod tree;
mod value;
mod xml;

pub use error::{ConfigError, Origin, Result};
pub use library::PROFILES_MAX;
pub use policy::Entity;
pub use provider::{Effective, QosProvider};
pub use settings::{EffectiveSetting, Settings, TAKT_CONFIG};
pub use similar::similar;
pub use static_endpoints::{parse_static_endpoints, read_static_endpoints};
pub use system::{read_system, read_timing_plan};
pub use tree::{DEPTH_MAX, FILE_BYTES_MAX, Format};
pub use value::{Kind, Value};

/// The examples of the project's documents have to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/configuration.md")]
#[doc = include_str!("../../../docs/discovery.md")]
struct Documents;
