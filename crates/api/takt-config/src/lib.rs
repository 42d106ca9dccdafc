//! Configurations for Takt: QoS profiles, and settings of participants.
//!
//! - [`QosProvider`] reads QoS libraries in the form of the OMG, DDS-XML 1.0 §7.3.2, and the same
//!   elements in TOML.
//! - [`Settings`] reads settings of participants from TOML files and the environment, together with
//!   profiles.
//! - [`system`] reads the system files of `takt analyze` with job statistics, and derives a
//!   participant's timing plan.
//! - [`convert`] reads configuration files of CycloneDDS, Fast DDS and Connext.
//! - [`show`] writes profiles and settings, each value with its origin; [`mod@reference`] writes
//!   the documentation.
//!
//! Two tables define all names: [`policy::FIELDS`] and [`setting::all`]. Readers, writers and
//! documentation use these tables only. Unknown names are errors, files have at most
//! [`FILE_BYTES_MAX`] bytes, and XML entities are not expanded.
//!
//! This crate depends on `takt`, which does not depend on it: an application that sets policies in
//! code compiles no parser.

mod convert;
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

pub use convert::{Conversion, Omission, Vendor, convert, convert_file};
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

/// The examples of the documentation have to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guide/configuration.md")]
#[doc = include_str!("../../../../docs/guide/discovery.md")]
struct Documents;
