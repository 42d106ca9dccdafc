//! Conversion of configuration files of CycloneDDS, Fast DDS and Connext to Takt's TOML.
//!
//! Every element is either converted or reported as an [`Omission`] with its line and the reason.
//! The result is read back before it is returned, so [`Settings`] accepts each converted file.
//!
//! A vendor's defaults are not converted: where the file is silent, Takt's default applies.

mod connext;
mod cyclonedds;
mod draft;
mod fastdds;

use std::fmt;
use std::path::Path;

use crate::error::{ConfigError, Origin, Result};
use crate::provider::read_text;
use crate::tree::{Format, Node};
use crate::{Settings, xml};
use draft::Draft;

/// Vendor whose configuration files are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Eclipse CycloneDDS: `CYCLONEDDS_URI`, root element `CycloneDDS`.
    CycloneDds,
    /// eProsima Fast DDS: root element `profiles`, or `dds` with `profiles`.
    FastDds,
    /// RTI Connext: root element `dds` with `qos_library`, as in `USER_QOS_PROFILES.xml`.
    Connext,
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CycloneDds => "CycloneDDS",
            Self::FastDds => "Fast DDS",
            Self::Connext => "Connext",
        })
    }
}

impl Vendor {
    /// Returns the vendor of a document that is not plain DDS-XML of the OMG.
    pub(crate) fn of_root(root: &Node) -> Option<Self> {
        let has = |name: &str| root.children().iter().any(|child| child.name == name);
        match root.name.as_str() {
            "CycloneDDS" => Some(Self::CycloneDds),
            "profiles" => Some(Self::FastDds),
            "dds" if has("profiles") || has("log") || has("library_settings") => Some(Self::FastDds),
            "dds"
                if root.attribute("version").is_some() || has("participant_library") || has("application_library") =>
            {
                Some(Self::Connext)
            }
            _ => None,
        }
    }
}

/// Element of a vendor's file that has no equivalent in the converted file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    /// Position in the vendor's file.
    pub origin: Origin,
    /// Path of the element, such as `CycloneDDS/Domain/General/FragmentSize`.
    pub element: String,
    /// Reason, and the remedy where there is one.
    pub reason: String,
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: not converted: {}", self.origin, self.element, self.reason)
    }
}

/// Converted file.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// Vendor of the original file.
    pub vendor: Vendor,
    /// Settings and QoS profiles in TOML. Comments name the line of origin of each value.
    pub toml: String,
    /// Elements without equivalent, in the order of the file.
    pub omissions: Vec<Omission>,
}

/// Converts a vendor's XML file.
///
/// # Errors
/// The file cannot be read, or [`convert`] refuses it.
pub fn convert_file(path: impl AsRef<Path>) -> Result<Conversion> {
    let path = path.as_ref();
    convert(&path.display().to_string(), &read_text(path)?)
}

/// Converts a vendor's XML configuration. `source` is its name in messages.
///
/// # Errors
/// The text is no well-formed XML, exceeds the [limits](crate::FILE_BYTES_MAX), or has a root
/// element of no known vendor.
///
/// # Examples
/// ```
/// let text = "<CycloneDDS><Domain Id='7'><Discovery><LeaseDuration>5 s</LeaseDuration></Discovery></Domain></CycloneDDS>";
/// let converted = takt_config::convert("cyclonedds.xml", text)?;
/// assert!(converted.toml.contains("lease_duration = \"5 s\""));
/// # Ok::<(), takt_config::ConfigError>(())
/// ```
pub fn convert(source: &str, text: &str) -> Result<Conversion> {
    let root = xml::parse(source, text)?;
    let has_library = root.children().iter().any(|child| child.name == "qos_library");
    let vendor = Vendor::of_root(&root).or_else(|| (root.name == "dds" && has_library).then_some(Vendor::Connext));
    let Some(vendor) = vendor else {
        let origin = Origin { source: source.to_owned(), line: root.line };
        let what = "root element of no known vendor; expected CycloneDDS, profiles (Fast DDS), or dds with \
                    profiles or qos_library";
        return Err(ConfigError::new(origin, root.name.clone(), what));
    };
    let mut draft = Draft::new(source);
    match vendor {
        Vendor::CycloneDds => cyclonedds::convert(&mut draft, &root),
        Vendor::FastDds => fastdds::convert(&mut draft, &root),
        Vendor::Connext => connext::convert(&mut draft, &root),
    }
    let (toml, omissions) = draft.finish();
    Settings::new().add_text(&format!("{source}, converted"), &toml, Format::Toml)?;
    Ok(Conversion { vendor, toml, omissions })
}
