//! Actions, and their identifiers in feature lists (OF 1.3.5 §7.2.5).

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::error::Malformed;
use crate::oxm::{Oxm, OxmHeader};
use crate::value::{MacAddress, PortNo};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Type of an experimenter action.
const EXPERIMENTER: u16 = 0xffff;

/// Action of a switch on a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Sends the packet to a port.
    Output {
        /// The port.
        port: PortNo,
        /// Maximum octets to send to the controller, or [`crate::value::NO_BUFFER_LEN`].
        max_len: u16,
    },
    /// Copies the TTL outwards, from the next-to-outermost to the outermost header.
    CopyTtlOut,
    /// Copies the TTL inwards, from the outermost to the next-to-outermost header.
    CopyTtlIn,
    /// Sets the TTL of MPLS.
    SetMplsTtl(u8),
    /// Decrements the TTL of MPLS.
    DecMplsTtl,
    /// Pushes a VLAN tag of this Ethernet type.
    PushVlan(u16),
    /// Pops the outer VLAN tag. STRIP_VLAN in 1.0.
    PopVlan,
    /// Pushes an MPLS header of this Ethernet type.
    PushMpls(u16),
    /// Pops the outer MPLS header. The argument is the Ethernet type of the remaining packet.
    PopMpls(u16),
    /// Selects the queue of the output port.
    SetQueue(u32),
    /// Processes the packet by a group.
    Group(u32),
    /// Sets the TTL of IP.
    SetNwTtl(u8),
    /// Decrements the TTL of IP.
    DecNwTtl,
    /// Sets a field.
    SetField(Oxm),
    /// Pushes a PBB tag of this Ethernet type.
    PushPbb(u16),
    /// Pops the outer PBB tag.
    PopPbb,
    /// Copies bits of a field to another. Since 1.5.
    CopyField {
        /// Bits to copy.
        bits: u16,
        /// The first bit of the source.
        src_offset: u16,
        /// The first bit of the destination.
        dst_offset: u16,
        /// The source.
        src: OxmHeader,
        /// The destination.
        dst: OxmHeader,
    },
    /// Applies a meter. Since 1.5; before, it is an instruction.
    Meter(u32),
    /// Sets a field in the form of OpenFlow 1.0.
    V1_0(LegacyAction),
    /// Experimenter action, including its padding.
    Experimenter {
        /// Experimenter ID.
        experimenter: u32,
        /// Experimenter data. The length is a multiple of 8 octets.
        body: Vec<u8>,
    },
}

/// Actions that only OpenFlow 1.0 has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LegacyAction {
    /// Sets the VLAN id.
    SetVlanVid(u16),
    /// Sets the priority of the VLAN tag.
    SetVlanPcp(u8),
    /// Sets the source of the Ethernet frame.
    SetDlSrc(MacAddress),
    /// Sets the destination of the Ethernet frame.
    SetDlDst(MacAddress),
    /// Sets the source of the IPv4 packet.
    SetNwSrc(Ipv4Addr),
    /// Sets the destination of the IPv4 packet.
    SetNwDst(Ipv4Addr),
    /// Sets the type of service of IP.
    SetNwTos(u8),
    /// Sets the source port of TCP or UDP.
    SetTpSrc(u16),
    /// Sets the destination port of TCP or UDP.
    SetTpDst(u16),
    /// Sends the packet to a queue of a port.
    Enqueue {
        /// The port.
        port: PortNo,
        /// The queue.
        queue: u32,
    },
}

impl Action {
    /// Returns an action that sends a packet to a port. The controller receives the whole packet,
    /// without a buffer.
    pub const fn output(port: PortNo) -> Self {
        let max_len = if port.0 == PortNo::CONTROLLER.0 { crate::value::NO_BUFFER_LEN } else { 0 };
        Self::Output { port, max_len }
    }
}

impl Wire for Action {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let start = *r;
        let kind = r.u16()?;
        let len = r.u16()?;
        if len < 8 || len % 8 != 0 {
            return Err(start.malformed("length of an action is not a multiple of 8"));
        }
        let mut body = r.rest_of(len, 4)?;
        if kind == EXPERIMENTER {
            return Ok(Self::Experimenter { experimenter: body.u32()?, body: body.rest().to_vec() });
        }
        let action = match r.version() {
            Version::V1_0 => read_v1_0(kind, &mut body)?,
            version => read_since_1_3(kind, version, &mut body)?,
        };
        let Some(action) = action else {
            return Err(start.malformed("action is not one of this version"));
        };
        body.finish("action is longer than its type")?;
        Ok(action)
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        if let Self::Experimenter { experimenter, body } = self {
            w.u16(EXPERIMENTER);
            w.u16(0);
            w.u32(*experimenter);
            w.bytes(body);
            w.refuse_if(body.len() % 8 != 0, "an experimenter's action whose length is not a multiple of 8");
        } else if w.version() == Version::V1_0 {
            write_v1_0(self, w);
        } else {
            write_since_1_3(self, w);
        }
        w.set_len(start + 2, start, "action");
    }
}

/// Reads the part after the length. Returns `None` for a type that the version does not have.
fn read_since_1_3(kind: u16, version: Version, body: &mut Reader<'_>) -> Result<Option<Action>, Malformed> {
    let first_octet = |body: &mut Reader<'_>| {
        let value = body.u8()?;
        body.reserved(3).map(|()| value)
    };
    let first_two = |body: &mut Reader<'_>| {
        let value = body.u16()?;
        body.reserved(2).map(|()| value)
    };
    let nothing = |body: &mut Reader<'_>, action| body.reserved(4).map(|()| action);
    Ok(Some(match kind {
        0 => {
            let (port, max_len) = (PortNo::read(body)?, body.u16()?);
            body.reserved(6)?;
            Action::Output { port, max_len }
        }
        11 => nothing(body, Action::CopyTtlOut)?,
        12 => nothing(body, Action::CopyTtlIn)?,
        15 => Action::SetMplsTtl(first_octet(body)?),
        16 => nothing(body, Action::DecMplsTtl)?,
        17 => Action::PushVlan(first_two(body)?),
        18 => nothing(body, Action::PopVlan)?,
        19 => Action::PushMpls(first_two(body)?),
        20 => Action::PopMpls(first_two(body)?),
        21 => Action::SetQueue(body.u32()?),
        22 => Action::Group(body.u32()?),
        23 => Action::SetNwTtl(first_octet(body)?),
        24 => nothing(body, Action::DecNwTtl)?,
        25 => {
            let field = Oxm::read(body)?;
            pad_to_end(body)?;
            Action::SetField(field)
        }
        26 => Action::PushPbb(first_two(body)?),
        27 => nothing(body, Action::PopPbb)?,
        28 if version == Version::V1_5 => {
            let (bits, src_offset, dst_offset) = (body.u16()?, body.u16()?, body.u16()?);
            body.reserved(2)?;
            let (src, dst) = (OxmHeader::read(body)?, OxmHeader::read(body)?);
            pad_to_end(body)?;
            Action::CopyField { bits, src_offset, dst_offset, src, dst }
        }
        29 if version == Version::V1_5 => Action::Meter(body.u32()?),
        _ => return Ok(None),
    }))
}

/// Reads padding of less than 8 octets up to the end.
fn pad_to_end(body: &mut Reader<'_>) -> Result<(), Malformed> {
    match body.remaining() {
        len @ 0..8 => body.reserved(len),
        _ => Err(body.malformed("action is longer than its type")),
    }
}

fn write_since_1_3(action: &Action, w: &mut Writer<'_>) {
    let start = w.position();
    let kind = id_of(action);
    w.u16(kind);
    w.u16(0);
    match action {
        Action::Output { port, max_len } => {
            port.write(w);
            w.u16(*max_len);
            w.reserved(6);
        }
        Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::DecMplsTtl
        | Action::PopVlan
        | Action::DecNwTtl
        | Action::PopPbb => w.reserved(4),
        Action::SetMplsTtl(ttl) | Action::SetNwTtl(ttl) => {
            w.u8(*ttl);
            w.reserved(3);
        }
        Action::PushVlan(ethertype)
        | Action::PushMpls(ethertype)
        | Action::PopMpls(ethertype)
        | Action::PushPbb(ethertype) => {
            w.u16(*ethertype);
            w.reserved(2);
        }
        Action::SetQueue(id) | Action::Group(id) => w.u32(*id),
        Action::SetField(field) => {
            field.write(w);
            w.align(start);
        }
        Action::CopyField { bits, src_offset, dst_offset, src, dst } => {
            w.refuse_if(w.version() < Version::V1_5, "the action COPY_FIELD");
            w.u16(*bits);
            w.u16(*src_offset);
            w.u16(*dst_offset);
            w.reserved(2);
            src.write(w);
            dst.write(w);
            w.align(start);
        }
        Action::Meter(meter) => {
            w.refuse_if(w.version() < Version::V1_5, "a meter as an action");
            w.u32(*meter);
        }
        Action::V1_0(_) | Action::Experimenter { .. } => w.refuse("an action of 1.0"),
    }
}

/// Returns the type of an action since 1.3.
fn id_of(action: &Action) -> u16 {
    match action {
        Action::Output { .. } => 0,
        Action::CopyTtlOut => 11,
        Action::CopyTtlIn => 12,
        Action::SetMplsTtl(_) => 15,
        Action::DecMplsTtl => 16,
        Action::PushVlan(_) => 17,
        Action::PopVlan => 18,
        Action::PushMpls(_) => 19,
        Action::PopMpls(_) => 20,
        Action::SetQueue(_) => 21,
        Action::Group(_) => 22,
        Action::SetNwTtl(_) => 23,
        Action::DecNwTtl => 24,
        Action::SetField(_) => 25,
        Action::PushPbb(_) => 26,
        Action::PopPbb => 27,
        Action::CopyField { .. } => 28,
        Action::Meter(_) => 29,
        Action::V1_0(_) | Action::Experimenter { .. } => EXPERIMENTER,
    }
}

/// Reads the part after the length. Returns `None` for a type that 1.0 does not have.
fn read_v1_0(kind: u16, body: &mut Reader<'_>) -> Result<Option<Action>, Malformed> {
    let octet = |body: &mut Reader<'_>| {
        let value = body.u8()?;
        body.reserved(3).map(|()| value)
    };
    let two = |body: &mut Reader<'_>| {
        let value = body.u16()?;
        body.reserved(2).map(|()| value)
    };
    let address = |body: &mut Reader<'_>| {
        let value = MacAddress::read(body)?;
        body.reserved(6).map(|()| value)
    };
    let legacy = match kind {
        0 => return Ok(Some(Action::Output { port: PortNo::read(body)?, max_len: body.u16()? })),
        3 => return body.reserved(4).map(|()| Some(Action::PopVlan)),
        1 => LegacyAction::SetVlanVid(two(body)?),
        2 => LegacyAction::SetVlanPcp(octet(body)?),
        4 => LegacyAction::SetDlSrc(address(body)?),
        5 => LegacyAction::SetDlDst(address(body)?),
        6 => LegacyAction::SetNwSrc(Wire::read(body)?),
        7 => LegacyAction::SetNwDst(Wire::read(body)?),
        8 => LegacyAction::SetNwTos(octet(body)?),
        9 => LegacyAction::SetTpSrc(two(body)?),
        10 => LegacyAction::SetTpDst(two(body)?),
        11 => {
            let port = PortNo::read(body)?;
            body.reserved(6)?;
            LegacyAction::Enqueue { port, queue: body.u32()? }
        }
        _ => return Ok(None),
    };
    Ok(Some(Action::V1_0(legacy)))
}

fn write_v1_0(action: &Action, w: &mut Writer<'_>) {
    let header = |w: &mut Writer<'_>, kind: u16| {
        w.u16(kind);
        w.u16(0);
    };
    let two = |w: &mut Writer<'_>, kind, value: u16| {
        header(w, kind);
        w.u16(value);
        w.reserved(2);
    };
    let octet = |w: &mut Writer<'_>, kind, value: u8| {
        header(w, kind);
        w.u8(value);
        w.reserved(3);
    };
    let address = |w: &mut Writer<'_>, kind, value: &MacAddress| {
        header(w, kind);
        value.write(w);
        w.reserved(6);
    };
    match action {
        Action::Output { port, max_len } => {
            header(w, 0);
            port.write(w);
            w.u16(*max_len);
        }
        Action::PopVlan => {
            header(w, 3);
            w.reserved(4);
        }
        Action::V1_0(LegacyAction::SetVlanVid(value)) => two(w, 1, *value),
        Action::V1_0(LegacyAction::SetVlanPcp(value)) => octet(w, 2, *value),
        Action::V1_0(LegacyAction::SetDlSrc(value)) => address(w, 4, value),
        Action::V1_0(LegacyAction::SetDlDst(value)) => address(w, 5, value),
        Action::V1_0(LegacyAction::SetNwSrc(value)) => {
            header(w, 6);
            value.write(w);
        }
        Action::V1_0(LegacyAction::SetNwDst(value)) => {
            header(w, 7);
            value.write(w);
        }
        Action::V1_0(LegacyAction::SetNwTos(value)) => octet(w, 8, *value),
        Action::V1_0(LegacyAction::SetTpSrc(value)) => two(w, 9, *value),
        Action::V1_0(LegacyAction::SetTpDst(value)) => two(w, 10, *value),
        Action::V1_0(LegacyAction::Enqueue { port, queue }) => {
            header(w, 11);
            port.write(w);
            w.reserved(6);
            w.u32(*queue);
        }
        _ => {
            header(w, 0);
            w.refuse("an action of later versions");
        }
    }
}

/// Type of an action or instruction in a feature list, with experimenter data if any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeatureId {
    /// Type of the action or instruction.
    pub kind: u16,
    /// Octets after the length: empty, or an experimenter ID with its data.
    pub body: Vec<u8>,
}

impl Wire for FeatureId {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = r.u16()?;
        let len = r.u16()?;
        let body = r.rest_of(len, 4)?.rest().to_vec();
        Ok(Self { kind, body })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(self.kind);
        w.u16(0);
        w.bytes(&self.body);
        w.set_len(start + 2, start, "identifier of a feature");
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn round_trip(version: Version, action: &Action) {
        let mut out = Vec::new();
        let mut w = Writer::new(version, &mut out);
        action.write(&mut w);
        assert_eq!(w.error(), None, "{action:?}");
        assert_eq!(out.len() % 8, 0);
        assert_eq!(Action::read(&mut Reader::new(version, &out)).as_ref(), Ok(action));
        for len in 0..out.len() {
            assert!(Action::read(&mut Reader::new(version, &out[..len])).is_err(), "{action:?} cut to {len}");
        }
    }

    #[test]
    fn actions_round_trip_and_truncated_octets_fail() {
        let header = Oxm::InPort(PortNo(1)).header();
        for action in [
            Action::output(PortNo::CONTROLLER),
            Action::CopyTtlOut,
            Action::SetMplsTtl(3),
            Action::PushVlan(0x8100),
            Action::PopMpls(0x800),
            Action::Group(7),
            Action::SetField(Oxm::IpDscp(46)),
            Action::SetField(Oxm::EthDst(MacAddress([1; 6]).into())),
            Action::Experimenter { experimenter: 0x2320, body: vec![1; 8] },
        ] {
            round_trip(Version::V1_3, &action);
        }
        round_trip(Version::V1_5, &Action::Meter(2));
        let copy = Action::CopyField { bits: 3, src_offset: 1, dst_offset: 2, src: header, dst: header };
        round_trip(Version::V1_5, &copy);
        for legacy in [
            LegacyAction::SetVlanVid(5),
            LegacyAction::SetDlSrc(MacAddress([2; 6])),
            LegacyAction::SetNwDst(Ipv4Addr::LOCALHOST),
            LegacyAction::Enqueue { port: PortNo(3), queue: 9 },
        ] {
            round_trip(Version::V1_0, &Action::V1_0(legacy));
        }
    }

    #[test]
    fn actions_unknown_to_a_version_are_refused() {
        for (version, action) in [
            (Version::V1_0, Action::Group(1)),
            (Version::V1_3, Action::Meter(1)),
            (Version::V1_4, Action::V1_0(LegacyAction::SetNwTos(0))),
            (Version::V1_3, Action::Experimenter { experimenter: 1, body: vec![0; 4] }),
        ] {
            let mut out = Vec::new();
            let mut w = Writer::new(version, &mut out);
            action.write(&mut w);
            assert!(w.error().is_some(), "{version} {action:?}");
        }
    }

    #[test]
    fn wrong_lengths_and_unknown_types_are_malformed() {
        let what = |octets: &[u8]| Action::read(&mut Reader::new(Version::V1_3, octets)).expect_err("malformed").what;
        assert_eq!(what(&[0, 12, 0, 4]), "length of an action is not a multiple of 8");
        assert_eq!(what(&[0, 12, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]), "length of an action is not a multiple of 8");
        assert_eq!(what(&[0, 12, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "action is longer than its type");
        assert_eq!(what(&[0, 29, 0, 8, 0, 0, 0, 0]), "action is not one of this version");
    }
}
