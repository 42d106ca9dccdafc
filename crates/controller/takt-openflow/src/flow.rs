//! Flow table messages: FLOW_MOD changes flows, FLOW_REMOVED reports that one ended
//! (OF 1.3.5 §7.3.4.1, §7.4.2).

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::flow_match::Match;
use crate::instruction::{Instruction, read_instructions, write_instructions};
use crate::statistic::{FlowCounters, read_statistics};
use crate::value::{GROUP_ANY, NO_BUFFER, PortNo};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Command of a [`FlowMod`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowCommand {
    /// Adds a flow.
    Add,
    /// Modifies all matching flows.
    Modify,
    /// Modifies the flow with this match and priority.
    ModifyStrict,
    /// Deletes all matching flows.
    Delete,
    /// Deletes the flow with this match and priority.
    DeleteStrict,
}

impl FlowCommand {
    fn from_number(number: u16, r: &Reader<'_>) -> Result<Self, Malformed> {
        Ok(match number {
            0 => Self::Add,
            1 => Self::Modify,
            2 => Self::ModifyStrict,
            3 => Self::Delete,
            4 => Self::DeleteStrict,
            _ => return Err(r.malformed("unknown command of FLOW_MOD")),
        })
    }
}

/// Flags of a flow.
pub mod flow_flags {
    /// The switch sends FLOW_REMOVED when the flow ends.
    pub const SEND_FLOW_REM: u16 = 1;
    /// The switch refuses a flow that overlaps another one of the same priority.
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    /// The counters are reset to zero.
    pub const RESET_COUNTS: u16 = 1 << 2;
    /// Packets need not be counted.
    pub const NO_PKT_COUNTS: u16 = 1 << 3;
    /// Octets need not be counted.
    pub const NO_BYT_COUNTS: u16 = 1 << 4;
}

/// Adds, modifies or deletes flows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowMod {
    /// Opaque value that the controller chose.
    pub cookie: u64,
    /// Bits of the cookie that must be equal, for modifications and deletions.
    pub cookie_mask: u64,
    /// Table. Deletions may also use [`crate::value::TABLE_ALL`].
    pub table: u8,
    /// Command.
    pub command: FlowCommand,
    /// Idle timeout in seconds. 0 means none.
    pub idle_timeout: u16,
    /// Hard timeout in seconds. 0 means none.
    pub hard_timeout: u16,
    /// Priority. The matching flow with the highest priority applies.
    pub priority: u16,
    /// Buffered packet to which the flow is applied, or [`NO_BUFFER`].
    pub buffer: u32,
    /// Output port to which a deletion is restricted.
    pub out_port: PortNo,
    /// Output group to which a deletion is restricted.
    pub out_group: u32,
    /// Flags of [`flow_flags`].
    pub flags: u16,
    /// Eviction precedence: the switch evicts flows of lower importance first. Since 1.4.
    pub importance: u16,
    /// Match of the flow.
    pub matching: Match,
    /// Instructions of the flow.
    pub instructions: Vec<Instruction>,
}

impl Default for FlowMod {
    /// Returns an addition to table 0 with priority 0 that matches every packet and drops it.
    fn default() -> Self {
        Self {
            cookie: 0,
            cookie_mask: 0,
            table: 0,
            command: FlowCommand::Add,
            idle_timeout: 0,
            hard_timeout: 0,
            priority: 0,
            buffer: NO_BUFFER,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            flags: 0,
            importance: 0,
            matching: Match::ANY,
            instructions: Vec::new(),
        }
    }
}

impl Wire for FlowMod {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.version() == Version::V1_0 {
            return Self::read_1_0(r);
        }
        let (cookie, cookie_mask, table) = (r.u64()?, r.u64()?, r.u8()?);
        let command = u16::from(r.u8()?);
        let command = FlowCommand::from_number(command, r)?;
        let flow = Self {
            cookie,
            cookie_mask,
            table,
            command,
            idle_timeout: r.u16()?,
            hard_timeout: r.u16()?,
            priority: r.u16()?,
            buffer: r.u32()?,
            out_port: PortNo::read(r)?,
            out_group: r.u32()?,
            flags: r.u16()?,
            importance: read_importance(r)?,
            matching: Match::read(r)?,
            instructions: read_instructions(r)?,
        };
        Ok(flow)
    }

    fn write(&self, w: &mut Writer<'_>) {
        if w.version() == Version::V1_0 {
            return self.write_1_0(w);
        }
        w.u64(self.cookie);
        w.u64(self.cookie_mask);
        w.u8(self.table);
        w.u8(self.command as u8);
        w.u16(self.idle_timeout);
        w.u16(self.hard_timeout);
        w.u16(self.priority);
        w.u32(self.buffer);
        self.out_port.write(w);
        w.u32(self.out_group);
        w.u16(self.flags);
        write_importance(w, self.importance);
        self.matching.write(w);
        write_instructions(w, &self.instructions);
    }
}

impl FlowMod {
    fn read_1_0(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let matching = Match::read(r)?;
        let cookie = r.u64()?;
        let command = r.u16()?;
        Ok(Self {
            cookie,
            command: FlowCommand::from_number(command, r)?,
            idle_timeout: r.u16()?,
            hard_timeout: r.u16()?,
            priority: r.u16()?,
            buffer: r.u32()?,
            out_port: PortNo::read(r)?,
            flags: r.u16()?,
            matching,
            instructions: read_instructions(r)?,
            ..Self::default()
        })
    }

    fn write_1_0(&self, w: &mut Writer<'_>) {
        w.refuse_if(self.cookie_mask != 0, "a cookie mask");
        w.refuse_if(self.table != 0, "a table");
        w.refuse_if(self.out_group != GROUP_ANY, "a group");
        w.refuse_if(self.importance != 0, "the importance of a flow");
        self.matching.write(w);
        w.u64(self.cookie);
        w.u16(self.command as u16);
        w.u16(self.idle_timeout);
        w.u16(self.hard_timeout);
        w.u16(self.priority);
        w.u32(self.buffer);
        self.out_port.write(w);
        w.u16(self.flags);
        write_instructions(w, &self.instructions);
    }
}

/// Reads two octets: the importance, reserved in 1.3.
pub(crate) fn read_importance(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    let importance = r.u16()?;
    Ok(if r.version() < Version::V1_4 { 0 } else { importance })
}

/// Writes the octets that [`read_importance`] reads.
pub(crate) fn write_importance(w: &mut Writer<'_>, importance: u16) {
    w.refuse_if(w.version() < Version::V1_4 && importance != 0, "the importance of a flow");
    w.u16(importance);
}

/// Reason why a flow ended, as a number of OFPFRR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemovedReason(pub u8);

impl RemovedReason {
    /// No packet matched within the idle timeout.
    pub const IDLE_TIMEOUT: Self = Self(0);
    /// The hard timeout passed.
    pub const HARD_TIMEOUT: Self = Self(1);
    /// A FLOW_MOD deleted the flow.
    pub const DELETE: Self = Self(2);
    /// The group of the flow was deleted.
    pub const GROUP_DELETE: Self = Self(3);
    /// The meter of the flow was deleted. Since 1.4.
    pub const METER_DELETE: Self = Self(4);
    /// The switch evicted the flow to free resources. Since 1.4.
    pub const EVICTION: Self = Self(5);
}

/// Report that a flow ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowRemoved {
    /// Opaque value that the controller chose.
    pub cookie: u64,
    /// Priority of the flow.
    pub priority: u16,
    /// Reason of the end.
    pub reason: RemovedReason,
    /// Table. Not in 1.0.
    pub table: u8,
    /// Idle timeout in seconds.
    pub idle_timeout: u16,
    /// Hard timeout in seconds. Not in 1.0.
    pub hard_timeout: u16,
    /// Duration, packets and octets.
    pub counters: FlowCounters,
    /// Match of the flow.
    pub matching: Match,
}

impl Wire for FlowRemoved {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.version() {
            Version::V1_0 => {
                let matching = Match::read(r)?;
                let (cookie, priority, reason) = (r.u64()?, r.u16()?, r.u8()?);
                r.reserved(1)?;
                let (duration_sec, duration_nsec, idle_timeout) = (r.u32()?, r.u32()?, r.u16()?);
                r.reserved(2)?;
                let (packet_count, byte_count) = (r.u64()?, r.u64()?);
                let counters = FlowCounters::Fixed { duration_sec, duration_nsec, packet_count, byte_count };
                let reason = RemovedReason(reason);
                Ok(Self { cookie, priority, reason, table: 0, idle_timeout, hard_timeout: 0, counters, matching })
            }
            Version::V1_3 | Version::V1_4 => {
                let (cookie, priority, reason, table) = (r.u64()?, r.u16()?, RemovedReason(r.u8()?), r.u8()?);
                let (duration_sec, duration_nsec) = (r.u32()?, r.u32()?);
                let (idle_timeout, hard_timeout) = (r.u16()?, r.u16()?);
                let (packet_count, byte_count) = (r.u64()?, r.u64()?);
                let counters = FlowCounters::Fixed { duration_sec, duration_nsec, packet_count, byte_count };
                let matching = Match::read(r)?;
                Ok(Self { cookie, priority, reason, table, idle_timeout, hard_timeout, counters, matching })
            }
            Version::V1_5 => {
                let (table, reason, priority) = (r.u8()?, RemovedReason(r.u8()?), r.u16()?);
                let (idle_timeout, hard_timeout, cookie) = (r.u16()?, r.u16()?, r.u64()?);
                let matching = Match::read(r)?;
                let counters = FlowCounters::Extensible(read_statistics(r)?);
                Ok(Self { cookie, priority, reason, table, idle_timeout, hard_timeout, counters, matching })
            }
        }
    }

    fn write(&self, w: &mut Writer<'_>) {
        match w.version() {
            Version::V1_0 => {
                w.refuse_if(self.table != 0, "a table");
                w.refuse_if(self.hard_timeout != 0, "the hard timeout of a removed flow");
                self.matching.write(w);
                w.u64(self.cookie);
                w.u16(self.priority);
                w.u8(self.reason.0);
                w.reserved(1);
                let (duration_sec, duration_nsec, packet_count, byte_count) = self.counters.fixed(w);
                w.u32(duration_sec);
                w.u32(duration_nsec);
                w.u16(self.idle_timeout);
                w.reserved(2);
                w.u64(packet_count);
                w.u64(byte_count);
            }
            Version::V1_3 | Version::V1_4 => {
                w.u64(self.cookie);
                w.u16(self.priority);
                w.u8(self.reason.0);
                w.u8(self.table);
                let (duration_sec, duration_nsec, packet_count, byte_count) = self.counters.fixed(w);
                w.u32(duration_sec);
                w.u32(duration_nsec);
                w.u16(self.idle_timeout);
                w.u16(self.hard_timeout);
                w.u64(packet_count);
                w.u64(byte_count);
                self.matching.write(w);
            }
            Version::V1_5 => {
                w.u8(self.table);
                w.u8(self.reason.0);
                w.u16(self.priority);
                w.u16(self.idle_timeout);
                w.u16(self.hard_timeout);
                w.u64(self.cookie);
                self.matching.write(w);
                self.counters.write_extensible(w);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EncodeError;

    fn encoded(version: Version, value: &impl Wire) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        let mut w = Writer::new(version, &mut out);
        value.write(&mut w);
        w.error().map_or(Ok(out), Err)
    }

    #[test]
    fn flow_mod_round_trips_in_every_version() {
        let flow = FlowMod { cookie: 7, priority: 3, idle_timeout: 5, ..FlowMod::default() };
        for version in [Version::V1_3, Version::V1_4, Version::V1_5] {
            let out = encoded(version, &flow).expect("every version can encode it");
            assert_eq!(out.len(), 48);
            assert_eq!(FlowMod::read(&mut Reader::new(version, &out)).as_ref(), Ok(&flow));
        }
        let out = encoded(Version::V1_0, &flow).expect("every version can encode it");
        assert_eq!(out.len(), 64);
        let read = FlowMod::read(&mut Reader::new(Version::V1_0, &out)).expect("well formed");
        assert_eq!((read.cookie, read.priority, read.idle_timeout, read.table), (7, 3, 5, 0));
    }

    #[test]
    fn parts_unknown_to_a_version_are_refused_by_name() {
        let refused = |version, flow: FlowMod| encoded(version, &flow).expect_err("refused");
        let importance = FlowMod { importance: 1, ..FlowMod::default() };
        let what = "the importance of a flow";
        assert_eq!(refused(Version::V1_3, importance), EncodeError::NotInVersion { version: Version::V1_3, what });
        for flow in [
            FlowMod { table: 1, ..FlowMod::default() },
            FlowMod { cookie_mask: 1, ..FlowMod::default() },
            FlowMod { out_group: 1, ..FlowMod::default() },
        ] {
            refused(Version::V1_0, flow);
        }
    }

    #[test]
    fn unknown_command_is_malformed() {
        let mut out = encoded(Version::V1_3, &FlowMod::default()).expect("the version can encode it");
        out[17] = 5;
        let error = FlowMod::read(&mut Reader::new(Version::V1_3, &out)).expect_err("malformed");
        assert_eq!(error.what, "unknown command of FLOW_MOD");
    }

    #[test]
    fn counters_of_another_version_are_refused() {
        let removed = FlowRemoved {
            cookie: 1,
            priority: 2,
            reason: RemovedReason::DELETE,
            table: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            counters: FlowCounters::default(),
            matching: Match::ANY,
        };
        assert!(encoded(Version::V1_5, &removed).is_err());
        for version in [Version::V1_0, Version::V1_3, Version::V1_4] {
            let out = encoded(version, &removed).expect("fixed counters");
            assert!(FlowRemoved::read(&mut Reader::new(version, &out)).is_ok());
        }
        let extensible = FlowRemoved { counters: FlowCounters::Extensible(Vec::new()), ..removed };
        assert!(encoded(Version::V1_4, &extensible).is_err());
        assert!(encoded(Version::V1_5, &extensible).is_ok());
    }
}
