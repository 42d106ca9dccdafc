//! QoS policies of storage: DURABILITY, DURABILITY_SERVICE, HISTORY, RESOURCE_LIMITS
//! (DDS 1.4 §2.2.3.4, §2.2.3.5, §2.2.3.18, §2.2.3.19).

use alloc::string::ToString;
use core::fmt;

use super::{WirePolicy, requested_policy, wire_enum};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{PID_DURABILITY, PID_DURABILITY_SERVICE, PID_HISTORY, PID_RESOURCE_LIMITS, ParameterWriter};
use crate::time::Duration;

/// Wire value of an unlimited resource.
const LENGTH_UNLIMITED: i32 = -1;

wire_enum! {
    /// DURABILITY: which late-joining readers receive earlier samples, in ascending order of the
    /// offered guarantee.
    Durability, "unknown DURABILITY kind" {
        /// No late joiners.
        #[default]
        Volatile = 0, "VOLATILE";
        /// Readers that join while the writer lives.
        TransientLocal = 1, "TRANSIENT_LOCAL";
        /// Readers that join while a durability service lives.
        Transient = 2, "TRANSIENT";
        /// Readers that join after a restart of the whole system.
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

requested_policy! {
    Durability, |offered, requested| offered >= requested, |policy| policy.to_string();
}

/// HISTORY: number of samples of an instance that are kept; the default is the last one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum History {
    /// Keeps the last samples of each instance, at least one.
    KeepLast(u32),
    /// Keeps all samples, within RESOURCE_LIMITS.
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

    /// Parses the kind and the depth. A depth below one becomes one: it does not affect the
    /// receiver.
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

/// RESOURCE_LIMITS: memory limits of an endpoint; `None` is unlimited, the default.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ResourceLimits {
    /// Maximum number of samples of all instances.
    pub max_samples: Option<u32>,
    /// Maximum number of instances.
    pub max_instances: Option<u32>,
    /// Maximum number of samples of each instance.
    pub max_samples_per_instance: Option<u32>,
}

/// Reads a limit. Zero and negative values mean unlimited.
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

/// DURABILITY_SERVICE: how the service for TRANSIENT and PERSISTENT stores a writer's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DurabilityService {
    /// Delay after which a disposed instance without writers may be removed; zero by default.
    pub service_cleanup_delay: Duration,
    /// HISTORY of the service.
    pub history: History,
    /// RESOURCE_LIMITS of the service.
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
