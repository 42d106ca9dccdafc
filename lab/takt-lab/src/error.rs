//! Errors of a lab.

use std::fmt;
use std::io;

use crate::preflight::Check;

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Failure to read, make, use or remove a lab.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file does not describe a valid network.
    File(String),
    /// The caller is not root.
    NotRoot,
    /// A program is not installed.
    NoProgram(&'static str),
    /// A lab of that name exists.
    LabExists(String),
    /// No lab of that name exists.
    LabNotFound(String),
    /// A lab has no host of that name.
    NoHost {
        /// Name of the lab.
        lab: String,
        /// Name of the host.
        host: String,
        /// Names of the lab's hosts.
        hosts: String,
    },
    /// Another process is making this lab.
    Building {
        /// Name of the lab.
        lab: String,
        /// ID of the process.
        pid: i32,
    },
    /// The operating system refused.
    Os {
        /// Action that failed, and its target.
        action: String,
        /// Cause.
        source: io::Error,
    },
    /// Open vSwitch refused, or does not answer.
    OpenVSwitch(takt_ovsdb::Error),
    /// A process of Open vSwitch ended.
    SwitchEnded {
        /// Name of the program.
        program: &'static str,
        /// Last lines of its log.
        log: String,
    },
    /// Open vSwitch cannot use an interface.
    Port {
        /// Name of the interface.
        interface: String,
        /// Reason given by Open vSwitch.
        why: String,
    },
    /// Checks failed: the network would not behave as its file says.
    Preflight(Vec<Check>),
}

impl Error {
    pub(crate) fn os(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Os { action, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(what) => f.write_str(what),
            Self::NotRoot => f.write_str("a lab needs root to create network namespaces; run the command as root"),
            Self::NoProgram(name) => {
                write!(f, "{name} is not installed: a lab needs Open vSwitch (apt install openvswitch-switch)")
            }
            Self::LabExists(name) => {
                write!(f, "lab {name} is up, or a killed process left it behind; remove it with takt lab down {name}")
            }
            Self::LabNotFound(name) => write!(f, "lab {name} does not exist; takt lab status lists the labs"),
            Self::NoHost { lab, host, hosts } => write!(f, "lab {lab} has no host {host:?}; its hosts are {hosts}"),
            Self::Building { lab, pid } => {
                write!(f, "process {pid} is creating lab {lab}; wait until it has finished, or end it first")
            }
            Self::Os { action, source } => write!(f, "{action}: {source}"),
            Self::OpenVSwitch(error) => write!(f, "{error}"),
            Self::SwitchEnded { program, log } => write!(f, "{program} ended: {log}"),
            Self::Port { interface, why } => write!(f, "Open vSwitch cannot use interface {interface}: {why}"),
            Self::Preflight(checks) => {
                write!(f, "{} pre-flight checks failed", checks.len())?;
                checks.iter().try_for_each(|check| write!(f, "\n{}: {}", check.name, check.detail))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os { source, .. } => Some(source),
            Self::OpenVSwitch(error) => Some(error),
            _ => None,
        }
    }
}

impl From<takt_ovsdb::Error> for Error {
    fn from(error: takt_ovsdb::Error) -> Self {
        Self::OpenVSwitch(error)
    }
}
