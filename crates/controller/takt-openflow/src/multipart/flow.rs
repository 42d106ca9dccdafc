//! Multipart messages on flows: requests, flows with counters, statistics (OF 1.3.5 §7.3.5.2).

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::flow::{read_importance, write_importance};
use crate::flow_match::Match;
use crate::instruction::{Instruction, read_instructions, write_instructions};
use crate::statistic::{FlowCounters, Statistic, read_statistics, write_statistics};
use crate::value::{GROUP_ANY, PortNo, TABLE_ALL};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Selection of flows in a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowRequest {
    /// Table, or [`TABLE_ALL`].
    pub table: u8,
    /// Output port of the selected flows, or [`PortNo::ANY`].
    pub out_port: PortNo,
    /// Output group of the selected flows, or [`GROUP_ANY`]. Not in 1.0.
    pub out_group: u32,
    /// Cookie of the selected flows. Not in 1.0.
    pub cookie: u64,
    /// Bits of the cookie that must be equal. Not in 1.0.
    pub cookie_mask: u64,
    /// Match that is at least as general as that of the selected flows.
    pub matching: Match,
}

impl Default for FlowRequest {
    /// Returns a request for all flows.
    fn default() -> Self {
        Self {
            table: TABLE_ALL,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            matching: Match::ANY,
        }
    }
}

impl Wire for FlowRequest {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.version() == Version::V1_0 {
            let (matching, table) = (Match::read(r)?, r.u8()?);
            r.reserved(1)?;
            return Ok(Self { table, out_port: PortNo::read(r)?, matching, ..Self::default() });
        }
        let table = r.u8()?;
        r.reserved(3)?;
        let (out_port, out_group) = (PortNo::read(r)?, r.u32()?);
        r.reserved(4)?;
        let (cookie, cookie_mask) = (r.u64()?, r.u64()?);
        Ok(Self { table, out_port, out_group, cookie, cookie_mask, matching: Match::read(r)? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        if w.version() == Version::V1_0 {
            w.refuse_if(self.out_group != GROUP_ANY, "a group");
            w.refuse_if(self.cookie != 0 || self.cookie_mask != 0, "selection of flows by cookie");
            self.matching.write(w);
            w.u8(self.table);
            w.reserved(1);
            return self.out_port.write(w);
        }
        w.u8(self.table);
        w.reserved(3);
        self.out_port.write(w);
        w.u32(self.out_group);
        w.reserved(4);
        w.u64(self.cookie);
        w.u64(self.cookie_mask);
        self.matching.write(w);
    }
}

/// Flow with its counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowStats {
    /// Table of the flow.
    pub table: u8,
    /// Duration, packets and octets.
    pub counters: FlowCounters,
    /// Priority of the flow.
    pub priority: u16,
    /// Idle timeout in seconds.
    pub idle_timeout: u16,
    /// Hard timeout in seconds.
    pub hard_timeout: u16,
    /// Flags of [`crate::flow::flow_flags`]. Not in 1.0.
    pub flags: u16,
    /// Eviction precedence: the switch evicts flows of lower importance first. Since 1.4.
    pub importance: u16,
    /// Identifier of the flow, chosen by the controller.
    pub cookie: u64,
    /// Match of the flow.
    pub matching: Match,
    /// Instructions of the flow.
    pub instructions: Vec<Instruction>,
}

impl FlowStats {
    fn read_1_0(body: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = body.u8()?;
        body.reserved(1)?;
        let matching = Match::read(body)?;
        let (duration_sec, duration_nsec) = (body.u32()?, body.u32()?);
        let (priority, idle_timeout, hard_timeout) = (body.u16()?, body.u16()?, body.u16()?);
        body.reserved(6)?;
        let (cookie, packet_count, byte_count) = (body.u64()?, body.u64()?, body.u64()?);
        let counters = FlowCounters::Fixed { duration_sec, duration_nsec, packet_count, byte_count };
        let instructions = read_instructions(body)?;
        let (flags, importance) = (0, 0);
        Ok(Self {
            table,
            counters,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            importance,
            cookie,
            matching,
            instructions,
        })
    }

    fn read_1_5(body: &mut Reader<'_>) -> Result<Self, Malformed> {
        body.reserved(2)?;
        let table = body.u8()?;
        body.reserved(1)?;
        let (priority, idle_timeout, hard_timeout) = (body.u16()?, body.u16()?, body.u16()?);
        let (flags, importance, cookie) = (body.u16()?, body.u16()?, body.u64()?);
        let matching = Match::read(body)?;
        let counters = FlowCounters::Extensible(read_statistics(body)?);
        let instructions = read_instructions(body)?;
        Ok(Self {
            table,
            counters,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            importance,
            cookie,
            matching,
            instructions,
        })
    }

    fn write_1_0(&self, w: &mut Writer<'_>) {
        w.refuse_if(self.flags != 0 || self.importance != 0, "flags and importance among the counters of a flow");
        w.u8(self.table);
        w.reserved(1);
        self.matching.write(w);
        let (duration_sec, duration_nsec, packet_count, byte_count) = self.counters.fixed(w);
        w.u32(duration_sec);
        w.u32(duration_nsec);
        w.u16(self.priority);
        w.u16(self.idle_timeout);
        w.u16(self.hard_timeout);
        w.reserved(6);
        w.u64(self.cookie);
        w.u64(packet_count);
        w.u64(byte_count);
        write_instructions(w, &self.instructions);
    }

    fn write_1_5(&self, w: &mut Writer<'_>) {
        w.reserved(2);
        w.u8(self.table);
        w.reserved(1);
        w.u16(self.priority);
        w.u16(self.idle_timeout);
        w.u16(self.hard_timeout);
        w.u16(self.flags);
        w.u16(self.importance);
        w.u64(self.cookie);
        self.matching.write(w);
        self.counters.write_extensible(w);
        write_instructions(w, &self.instructions);
    }

    fn write_fixed(&self, w: &mut Writer<'_>) {
        w.u8(self.table);
        w.reserved(1);
        let (duration_sec, duration_nsec, packet_count, byte_count) = self.counters.fixed(w);
        w.u32(duration_sec);
        w.u32(duration_nsec);
        w.u16(self.priority);
        w.u16(self.idle_timeout);
        w.u16(self.hard_timeout);
        w.u16(self.flags);
        write_importance(w, self.importance);
        w.reserved(2);
        w.u64(self.cookie);
        w.u64(packet_count);
        w.u64(byte_count);
        self.matching.write(w);
        write_instructions(w, &self.instructions);
    }
}

impl Wire for FlowStats {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        match r.version() {
            Version::V1_0 => return Self::read_1_0(&mut body),
            Version::V1_5 => return Self::read_1_5(&mut body),
            Version::V1_3 | Version::V1_4 => {}
        }
        let table = body.u8()?;
        body.reserved(1)?;
        let (duration_sec, duration_nsec) = (body.u32()?, body.u32()?);
        let (priority, idle_timeout, hard_timeout) = (body.u16()?, body.u16()?, body.u16()?);
        let (flags, importance) = (body.u16()?, read_importance(&mut body)?);
        body.reserved(2)?;
        let (cookie, packet_count, byte_count) = (body.u64()?, body.u64()?, body.u64()?);
        let counters = FlowCounters::Fixed { duration_sec, duration_nsec, packet_count, byte_count };
        let matching = Match::read(&mut body)?;
        let instructions = read_instructions(&mut body)?;
        Ok(Self {
            table,
            counters,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            importance,
            cookie,
            matching,
            instructions,
        })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(0);
        match w.version() {
            Version::V1_0 => self.write_1_0(w),
            Version::V1_3 | Version::V1_4 => self.write_fixed(w),
            Version::V1_5 => self.write_1_5(w),
        }
        w.set_len(start, start, "flow");
    }
}

/// Statistics of a flow, without its instructions. Since 1.5.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowStatistics {
    /// Table of the flow.
    pub table: u8,
    /// Reason of the message. 0: it was requested, 1: a statistics trigger sent it.
    pub reason: u8,
    /// Priority of the flow.
    pub priority: u16,
    /// Match of the flow.
    pub matching: Match,
    /// Statistics of the flow.
    pub statistics: Vec<Statistic>,
}

impl Wire for FlowStatistics {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        body.reserved(2)?;
        let (table, reason, priority) = (body.u8()?, body.u8()?, body.u16()?);
        let (matching, statistics) = (Match::read(&mut body)?, read_statistics(&mut body)?);
        body.finish("statistics of a flow are longer than their fields")?;
        Ok(Self { table, reason, priority, matching, statistics })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.reserved(4);
        w.u8(self.table);
        w.u8(self.reason);
        w.u16(self.priority);
        self.matching.write(w);
        write_statistics(w, &self.statistics);
        w.set_len(start, start, "statistics of a flow");
    }
}
