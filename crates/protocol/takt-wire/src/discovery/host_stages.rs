//! Latency that an endpoint's host adds to samples: a Takt parameter in the announcement of a
//! writer or reader.
//!
//! Vendor-specific parameter (RTPS 2.5 §9.6.3.1): four magic octets, period and jitter, the name of
//! the flow, and a sequence of stages, each a CDR string and a bound. A time is two unsigned 32-bit
//! integers, the higher half first. The timing analysis of the host computes the stages
//! (`docs/guide/analysis.md`). The OpenFlow controller adds them to its own bounds
//! (`docs/guide/sdn.md`).
//!
//! A value without the magic octets belongs to another vendor and is skipped. A malformed value
//! with the magic octets makes the announcement malformed, since the time of an unread stage would
//! be missing in a bound.

use alloc::string::String;
use alloc::vec::Vec;

use super::refusal::{REFUSAL_MAGIC, disrupts_text};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{Parameter, ParameterListBuilder, ParameterWriter};

/// Parameter id.
pub const PID_TAKT_HOST_STAGES: u16 = 0x8f02;

/// Maximum number of stages of an endpoint. A value with more is malformed.
pub const HOST_STAGES_MAX: usize = 16;

/// Maximum length of a stage's name, in octets. A longer name is truncated.
pub const STAGE_NAME_LEN_MAX: usize = 64;

/// Stages of a flow on one host.
///
/// The stages of a writer lead from `write` to the queue of the interface. The stages of a reader
/// lead from that queue to the end of the callback.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostStages {
    /// Period of the flow in nanoseconds. The bounds hold for samples that are at least this far
    /// apart in the long run.
    pub period_ns: u64,
    /// Maximum release jitter of a sample, in nanoseconds. For a writer, it holds at the queue of
    /// the interface. For a reader, it is the jitter from the network that the bounds allow.
    pub jitter_ns: u64,
    /// Name of the flow in the analysis.
    pub flow: String,
    /// Stages in the order in which a sample passes them.
    pub stages: Vec<HostStage>,
}

/// One stage of a flow.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostStage {
    /// Name of the executor or other resource.
    pub name: String,
    /// Maximum time from a sample's arrival at the stage to the end of the delay after it, in
    /// nanoseconds.
    pub bound_ns: u64,
}

impl HostStage {
    /// Returns a stage with a printable name.
    #[must_use]
    pub fn new(name: &str, bound_ns: u64) -> Self {
        Self { name: plain(name), bound_ns }
    }
}

impl HostStages {
    /// Returns the bound of all stages in nanoseconds, saturated at `u64::MAX`.
    #[must_use]
    pub fn bound_ns(&self) -> u64 {
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.bound_ns))
    }

    pub(super) fn put(&self, list: &mut ParameterListBuilder) {
        list.put(PID_TAKT_HOST_STAGES, |value| {
            value.bytes(&REFUSAL_MAGIC);
            put_time(value, self.period_ns);
            put_time(value, self.jitter_ns);
            value.string(&self.flow);
            value.count(self.stages.len());
            for stage in &self.stages {
                value.string(&stage.name);
                put_time(value, stage.bound_ns);
            }
        });
    }

    pub(super) fn parse(parameter: &Parameter<'_>) -> Result<Option<Self>, Malformed> {
        let mut value = parameter.cursor();
        if !matches!(value.array(), Ok(REFUSAL_MAGIC)) {
            return Ok(None);
        }
        let [period_ns, jitter_ns] = [time(&mut value)?, time(&mut value)?];
        let flow = plain(value.string()?);
        value.align(4)?;
        let count = value.u32()?;
        if count as usize > HOST_STAGES_MAX {
            return Err(parameter.malformed("more than 16 stages of a host"));
        }
        let mut stages = Vec::new();
        for _ in 0..count {
            let name = value.string()?;
            stages.push(HostStage::new(name, time(&mut value)?));
        }
        Ok(Some(Self { period_ns, jitter_ns, flow, stages }))
    }
}

/// Truncates the name and removes control characters.
fn plain(name: &str) -> String {
    name[..name.floor_char_boundary(STAGE_NAME_LEN_MAX)].chars().filter(|c| !disrupts_text(*c)).collect()
}

fn put_time(value: &mut ParameterWriter<'_>, ns: u64) {
    value.u32((ns >> 32) as u32);
    value.u32(ns as u32);
}

fn time(value: &mut Cursor<'_>) -> Result<u64, Malformed> {
    value.align(4)?;
    Ok(u64::from(value.u32()?) << 32 | u64::from(value.u32()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Endianness;
    use crate::discovery::SubscriptionData;
    use crate::{EntityId, Guid, GuidPrefix};

    fn announcement(stages: HostStages) -> SubscriptionData {
        let guid = Guid { prefix: GuidPrefix([7; 12]), entity_id: EntityId([0, 0, 1, 4]) };
        let (topic_name, type_name) = ("T".into(), "Type".into());
        SubscriptionData { guid, topic_name, type_name, host_stages: Some(stages), ..Default::default() }
    }

    fn stages(count: usize) -> HostStages {
        let stages = (0..count as u64).map(|n| HostStage { name: "sub".into(), bound_ns: u64::MAX >> n }).collect();
        HostStages { period_ns: 5_000_000, jitter_ns: u64::MAX, flow: "steering".into(), stages }
    }

    #[test]
    fn stages_round_trip_in_both_byte_orders() {
        for (count, endianness) in [(0, Endianness::Little), (1, Endianness::Big), (16, Endianness::Little)] {
            let data = announcement(stages(count));
            let parsed = SubscriptionData::parse(&data.to_bytes_with(endianness)).expect("it is well-formed");
            assert_eq!(parsed.host_stages, data.host_stages);
        }
        assert_eq!(stages(2).bound_ns(), u64::MAX);
    }

    #[test]
    fn value_that_lacks_a_stage_makes_the_announcement_malformed() {
        assert!(SubscriptionData::parse(&announcement(stages(17)).to_bytes()).is_err());
        let octets = announcement(stages(1)).to_bytes();
        let at = octets.windows(4).position(|octets| octets == REFUSAL_MAGIC).expect("the parameter is there");
        let mut foreign = octets.clone();
        foreign[at] = b'x';
        assert_eq!(SubscriptionData::parse(&foreign).expect("it is skipped").host_stages, None);
        let mut short = octets;
        // The number of stages follows the magic octets, two times and the flow.
        short[at + 20 + 16] = 2;
        assert!(SubscriptionData::parse(&short).is_err());
    }

    #[test]
    fn name_is_truncated_and_control_characters_are_removed() {
        assert_eq!(HostStage::new("a\x1b[1m\nb", 1).name, "a[1mb");
        assert_eq!(HostStage::new(&"ä".repeat(60), 1).name, "ä".repeat(32));
    }
}
