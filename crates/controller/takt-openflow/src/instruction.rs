//! Instructions of a flow (OF 1.3.5 §7.2.4).

use alloc::vec::Vec;

use crate::action::Action;
use crate::error::Malformed;
use crate::statistic::{Statistic, read_statistics, write_statistics};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Instruction of a matching flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Continues in a later table.
    GotoTable(u8),
    /// Sets bits of the metadata.
    WriteMetadata {
        /// Values of the bits.
        metadata: u64,
        /// Mask of the bits to set.
        mask: u64,
    },
    /// Adds actions to the action set.
    WriteActions(Vec<Action>),
    /// Executes actions immediately. In OpenFlow 1.0, these are the actions of the flow.
    ApplyActions(Vec<Action>),
    /// Clears the action set.
    ClearActions,
    /// Applies a meter. Up to 1.4; since 1.5 it is an action.
    Meter(u32),
    /// Reports statistics that cross thresholds. Since 1.5.
    StatTrigger {
        /// Flags: 1 for every multiple of a threshold, 2 for the first crossing only.
        flags: u32,
        /// The thresholds.
        thresholds: Vec<Statistic>,
    },
    /// Experimenter instruction.
    Experimenter {
        /// Experimenter ID.
        experimenter: u32,
        /// Experimenter data.
        body: Vec<u8>,
    },
}

impl Wire for Instruction {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let start = *r;
        let kind = r.u16()?;
        let len = r.u16()?;
        let mut body = r.rest_of(len, 4)?;
        let instruction = match kind {
            1 => {
                let table = body.u8()?;
                body.reserved(3)?;
                Self::GotoTable(table)
            }
            2 => {
                body.reserved(4)?;
                Self::WriteMetadata { metadata: body.u64()?, mask: body.u64()? }
            }
            3..=5 => {
                body.reserved(4)?;
                match kind {
                    3 => Self::WriteActions(body.list()?),
                    4 => Self::ApplyActions(body.list()?),
                    _ => Self::ClearActions,
                }
            }
            6 if r.version() < Version::V1_5 => Self::Meter(body.u32()?),
            7 if r.version() == Version::V1_5 => {
                Self::StatTrigger { flags: body.u32()?, thresholds: read_statistics(&mut body)? }
            }
            0xffff => Self::Experimenter { experimenter: body.u32()?, body: body.rest().to_vec() },
            _ => return Err(start.malformed("instruction is not one of this version")),
        };
        body.finish("instruction is longer than its type")?;
        Ok(instruction)
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(match self {
            Self::GotoTable(_) => 1,
            Self::WriteMetadata { .. } => 2,
            Self::WriteActions(_) => 3,
            Self::ApplyActions(_) => 4,
            Self::ClearActions => 5,
            Self::Meter(_) => 6,
            Self::StatTrigger { .. } => 7,
            Self::Experimenter { .. } => 0xffff,
        });
        w.u16(0);
        match self {
            Self::GotoTable(table) => {
                w.u8(*table);
                w.reserved(3);
            }
            Self::WriteMetadata { metadata, mask } => {
                w.reserved(4);
                w.u64(*metadata);
                w.u64(*mask);
            }
            Self::WriteActions(actions) | Self::ApplyActions(actions) => {
                w.reserved(4);
                w.list(actions);
            }
            Self::ClearActions => w.reserved(4),
            Self::Meter(meter) => {
                w.refuse_if(w.version() == Version::V1_5, "a meter as an instruction");
                w.u32(*meter);
            }
            Self::StatTrigger { flags, thresholds } => {
                w.refuse_if(w.version() < Version::V1_5, "the instruction STAT_TRIGGER");
                w.u32(*flags);
                write_statistics(w, thresholds);
            }
            Self::Experimenter { experimenter, body } => {
                w.u32(*experimenter);
                w.bytes(body);
            }
        }
        w.set_len(start + 2, start, "instruction");
    }
}

/// Reads the instructions of a flow up to the end; in 1.0, its actions.
pub(crate) fn read_instructions(r: &mut Reader<'_>) -> Result<Vec<Instruction>, Malformed> {
    if r.version() != Version::V1_0 {
        return r.list();
    }
    let actions: Vec<Action> = r.list()?;
    let mut instructions = Vec::new();
    if !actions.is_empty() {
        instructions.push(Instruction::ApplyActions(actions));
    }
    Ok(instructions)
}

/// Writes the octets that [`read_instructions`] reads.
pub(crate) fn write_instructions(w: &mut Writer<'_>, instructions: &[Instruction]) {
    match instructions {
        _ if w.version() != Version::V1_0 => w.list(instructions),
        [] => {}
        [Instruction::ApplyActions(actions)] => w.list(actions),
        _ => w.refuse("instructions other than one APPLY_ACTIONS"),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::value::PortNo;

    fn written(version: Version, instructions: &[Instruction]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut w = Writer::new(version, &mut out);
        write_instructions(&mut w, instructions);
        w.error().is_none().then_some(out)
    }

    #[test]
    fn instructions_round_trip_and_truncated_octets_fail() {
        let apply = Instruction::ApplyActions(vec![Action::output(PortNo(1)), Action::DecNwTtl]);
        let trigger = Instruction::StatTrigger { flags: 1, thresholds: vec![Statistic::PacketCount(4)] };
        for (version, instruction) in [
            (Version::V1_3, Instruction::GotoTable(3)),
            (Version::V1_3, Instruction::WriteMetadata { metadata: 1, mask: 2 }),
            (Version::V1_3, Instruction::WriteActions(vec![])),
            (Version::V1_3, apply),
            (Version::V1_3, Instruction::ClearActions),
            (Version::V1_4, Instruction::Meter(1)),
            (Version::V1_5, trigger),
            (Version::V1_5, Instruction::Experimenter { experimenter: 9, body: vec![1; 4] }),
            (Version::V1_0, Instruction::ApplyActions(vec![Action::output(PortNo(1))])),
        ] {
            let out = written(version, core::slice::from_ref(&instruction)).expect("the version can encode it");
            let read = |len: usize| read_instructions(&mut Reader::new(version, &out[..len]));
            assert_eq!(read(out.len()), Ok(vec![instruction.clone()]));
            for len in 1..out.len() {
                let whole_action = version == Version::V1_0 && len % 8 == 0;
                assert_eq!(read(len).is_ok(), whole_action, "{instruction:?} cut to {len}");
            }
        }
    }

    #[test]
    fn instructions_unknown_to_a_version_are_refused() {
        assert_eq!(written(Version::V1_0, &[Instruction::GotoTable(1)]), None);
        assert_eq!(
            written(Version::V1_0, &[Instruction::ApplyActions(vec![]), Instruction::ApplyActions(vec![])]),
            None
        );
        assert_eq!(written(Version::V1_5, &[Instruction::Meter(1)]), None);
        assert_eq!(written(Version::V1_4, &[Instruction::StatTrigger { flags: 0, thresholds: vec![] }]), None);
        assert_eq!(written(Version::V1_0, &[]), Some(vec![]));
    }

    #[test]
    fn unknown_and_overlong_instructions_are_malformed() {
        let what =
            |octets: &[u8]| Instruction::read(&mut Reader::new(Version::V1_3, octets)).expect_err("malformed").what;
        assert_eq!(what(&[0, 7, 0, 8, 0, 0, 0, 0]), "instruction is not one of this version");
        assert_eq!(what(&[0, 1, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]), "instruction is longer than its type");
        assert_eq!(what(&[0, 1, 0, 3]), "length is shorter than its structure");
    }
}
