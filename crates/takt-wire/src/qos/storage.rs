//! What is kept, for whom and for how long: DURABILITY, DURABILITY_SERVICE, HISTORY,
//! RESOURCE_LIMITS (DDS 1.4 §2.2.3.4, §2.2.3.5, §2.2.3.18, §2.2.3.19).

use core::fmt;

use super::{WirePolicy, wire_enum};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{PID_DURABILITY, PID_DURABILITY_SERVICE, PID_HISTORY, PID_RESOURCE_LIMITS, ParameterWriter};
use crate::time::Duration;

/// On the wire: no limit.
const LENGTH_UNLIMITED: i32 = -1;

wire_enum! {
    /// DURABILITY: which readers that come later are still served? Ordered: what is later offers
    /// more.
    Durability, "unknown DURABILITY kind" {
        /// None.
        #[default]
        Volatile = 0, "VOLATILE";
        /// Those that come while the writer lives.
        TransientLocal = 1, "TRANSIENT_LOCAL";
        /// Those that come while a durability service lives.
        Transient = 2, "TRANSIENT";
        /// Those that come after everything was started anew.
        Persistent = 3, "PERSISTENT";
    }
}

impl WirePolicy for Durability {
    const PID: u16 = PID_DURABILITY;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Self::parse_kind(value)
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.u32(self.to_wire());
    }
}

/// HISTORY: how many samples of an instance are kept; the default is the last one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum History {
    /// The last so many of each instance, at least one.
    KeepLast(u32),
    /// All, within RESOURCE_LIMITS.
    KeepAll,
}

impl Default for History {
    fn default() -> Self {
        Self::KeepLast(1)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepLast(depth) => write!(f, "KEEP_LAST {depth}"),
            Self::KeepAll => f.write_str("KEEP_ALL"),
        }
    }
}

impl WirePolicy for History {
    const PID: u16 = PID_HISTORY;

    /// Reads the kind and the depth. A depth below one becomes one: it is of no consequence for
    /// the receiver.
    ///
    /// INTEROP(CoreDX): announces a DURABILITY_SERVICE of zeros, hence a depth of zero.
    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = value.malformed("unknown HISTORY kind");
        let kind = value.u32()?;
        let depth = value.i32()?;
        match kind {
            0 => Ok(Self::KeepLast(u32::try_from(depth).unwrap_or(0).max(1))),
            1 => Ok(Self::KeepAll),
            _ => Err(at),
        }
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        let (kind, depth) = match self {
            Self::KeepLast(depth) => (0, i32::try_from(*depth).unwrap_or(i32::MAX)),
            Self::KeepAll => (1, LENGTH_UNLIMITED),
        };
        value.u32(kind);
        value.i32(depth);
    }
}

/// RESOURCE_LIMITS: how much memory an endpoint may take; `None` is unlimited, the default.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ResourceLimits {
    /// Samples of all instances together.
    pub max_samples: Option<u32>,
    /// Instances.
    pub max_instances: Option<u32>,
    /// Samples of each instance.
    pub max_samples_per_instance: Option<u32>,
}

/// Reads a limit. Zero and everything below is no limit.
fn parse_limit(value: &mut Cursor<'_>) -> Result<Option<u32>, Malformed> {
    Ok(u32::try_from(value.i32()?).ok().filter(|limit| *limit > 0))
}

fn emit_limit(limit: Option<u32>, value: &mut ParameterWriter<'_>) {
    value.i32(limit.map_or(LENGTH_UNLIMITED, |limit| i32::try_from(limit).unwrap_or(i32::MAX)));
}

impl WirePolicy for ResourceLimits {
    const PID: u16 = PID_RESOURCE_LIMITS;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            max_samples: parse_limit(value)?,
            max_instances: parse_limit(value)?,
            max_samples_per_instance: parse_limit(value)?,
        })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        emit_limit(self.max_samples, value);
        emit_limit(self.max_instances, value);
        emit_limit(self.max_samples_per_instance, value);
    }
}

/// DURABILITY_SERVICE: how the service behind TRANSIENT and PERSISTENT keeps a writer's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DurabilityService {
    /// When an instance that is disposed and has no writer may be forgotten; zero by default.
    pub service_cleanup_delay: Duration,
    /// The service's HISTORY.
    pub history: History,
    /// The service's RESOURCE_LIMITS.
    pub resource_limits: ResourceLimits,
}

impl WirePolicy for DurabilityService {
    const PID: u16 = PID_DURABILITY_SERVICE;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            service_cleanup_delay: Duration::parse(value)?,
            history: History::parse(value)?,
            resource_limits: ResourceLimits::parse(value)?,
        })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.duration(self.service_cleanup_delay);
        self.history.emit(value);
        self.resource_limits.emit(value);
    }
}
