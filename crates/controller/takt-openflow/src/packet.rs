//! PACKET_IN and PACKET_OUT (OF 1.3.5 §7.3.7, §7.4.1).

use alloc::vec;
use alloc::vec::Vec;

use crate::action::Action;
use crate::error::Malformed;
use crate::flow_match::{read_fields, write_fields};
use crate::oxm::Oxm;
use crate::value::{NO_BUFFER, PortNo};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Reason why a packet was sent to the controller, as a number of OFPR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketInReason(pub u8);

impl PacketInReason {
    /// No flow matched, or the table-miss flow matched.
    pub const NO_MATCH: Self = Self(0);
    /// An action sent the packet.
    pub const ACTION: Self = Self(1);
    /// The TTL of the packet is invalid.
    pub const INVALID_TTL: Self = Self(2);
    /// The action set sent the packet. Since 1.4.
    pub const ACTION_SET: Self = Self(3);
    /// A bucket of a group sent the packet. Since 1.4.
    pub const GROUP: Self = Self(4);
    /// A packet-out sent the packet. Since 1.4.
    pub const PACKET_OUT: Self = Self(5);
}

/// Packet that the switch sends to the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketIn {
    /// Buffer of the switch with the packet, or [`NO_BUFFER`].
    pub buffer: u32,
    /// Length of the whole frame, in octets.
    pub total_len: u16,
    /// Reason why the packet was sent.
    pub reason: PacketInReason,
    /// Table of the flow. Not in 1.0.
    pub table: u8,
    /// Cookie of the flow. Not in 1.0.
    pub cookie: u64,
    /// Fields of the pipeline. In 1.0, only the ingress port.
    pub fields: Vec<Oxm>,
    /// Frame, or its beginning.
    pub data: Vec<u8>,
}

impl PacketIn {
    /// Returns the ingress port.
    pub fn in_port(&self) -> Option<PortNo> {
        in_port(&self.fields)
    }
}

fn in_port(fields: &[Oxm]) -> Option<PortNo> {
    fields.iter().find_map(|field| match field {
        Oxm::InPort(port) => Some(*port),
        _ => None,
    })
}

/// Returns the ingress port if it is the only field. The writer refuses other fields.
fn only_in_port(fields: &[Oxm], w: &mut Writer<'_>) -> PortNo {
    match fields {
        [Oxm::InPort(port)] => *port,
        _ => {
            w.refuse("pipeline fields other than the ingress port");
            PortNo::ANY
        }
    }
}

impl Wire for PacketIn {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (buffer, total_len) = (r.u32()?, r.u16()?);
        if r.version() == Version::V1_0 {
            let port = PortNo::read(r)?;
            let reason = PacketInReason(r.u8()?);
            r.reserved(1)?;
            let (fields, data) = (vec![Oxm::InPort(port)], r.rest().to_vec());
            return Ok(Self { buffer, total_len, reason, table: 0, cookie: 0, fields, data });
        }
        let (reason, table, cookie) = (PacketInReason(r.u8()?), r.u8()?, r.u64()?);
        let fields = read_fields(r)?;
        r.reserved(2)?;
        Ok(Self { buffer, total_len, reason, table, cookie, fields, data: r.rest().to_vec() })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u32(self.buffer);
        w.u16(self.total_len);
        if w.version() == Version::V1_0 {
            w.refuse_if(self.table != 0, "a table");
            w.refuse_if(self.cookie != 0, "the cookie of a packet-in");
            only_in_port(&self.fields, w).write(w);
            w.u8(self.reason.0);
            w.reserved(1);
        } else {
            w.u8(self.reason.0);
            w.u8(self.table);
            w.u64(self.cookie);
            write_fields(w, &self.fields);
            w.reserved(2);
        }
        w.bytes(&self.data);
    }
}

/// Packet that the controller sends through the switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketOut {
    /// Buffer of the switch with the packet, or [`NO_BUFFER`].
    pub buffer: u32,
    /// Fields of the pipeline. Up to 1.4, only the ingress port.
    pub fields: Vec<Oxm>,
    /// Actions on the packet.
    pub actions: Vec<Action>,
    /// Frame, if it is not in a buffer.
    pub data: Vec<u8>,
}

impl PacketOut {
    /// Creates a packet-out of a frame from `in_port`, which may be [`PortNo::CONTROLLER`].
    pub fn new(in_port: PortNo, actions: Vec<Action>, data: Vec<u8>) -> Self {
        Self { buffer: NO_BUFFER, fields: vec![Oxm::InPort(in_port)], actions, data }
    }

    /// Returns the ingress port.
    pub fn in_port(&self) -> Option<PortNo> {
        in_port(&self.fields)
    }
}

impl Wire for PacketOut {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let buffer = r.u32()?;
        let version = r.version();
        let mut fields = if version == Version::V1_5 { vec![] } else { vec![Oxm::InPort(PortNo::read(r)?)] };
        let actions_len = r.u16()?;
        match version {
            Version::V1_0 => {}
            Version::V1_3 | Version::V1_4 => r.reserved(6)?,
            Version::V1_5 => {
                r.reserved(2)?;
                fields = read_fields(r)?;
            }
        }
        let actions = r.sub(usize::from(actions_len))?.list()?;
        Ok(Self { buffer, fields, actions, data: r.rest().to_vec() })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u32(self.buffer);
        if w.version() != Version::V1_5 {
            only_in_port(&self.fields, w).write(w);
        }
        let actions_len = w.position();
        w.u16(0);
        match w.version() {
            Version::V1_0 => {}
            Version::V1_3 | Version::V1_4 => w.reserved(6),
            Version::V1_5 => {
                w.reserved(2);
                write_fields(w, &self.fields);
            }
        }
        let actions = w.position();
        w.list(&self.actions);
        w.set_len(actions_len, actions, "actions");
        w.bytes(&self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::written;

    #[test]
    fn packets_round_trip_in_every_version() {
        let packet_in = PacketIn {
            buffer: NO_BUFFER,
            total_len: 3,
            reason: PacketInReason::ACTION,
            table: 0,
            cookie: 0,
            fields: vec![Oxm::InPort(PortNo(4))],
            data: vec![1, 2, 3],
        };
        let packet_out = PacketOut::new(PortNo::CONTROLLER, vec![Action::output(PortNo(2))], vec![9; 5]);
        for version in Version::ALL {
            let out = written(version, &packet_in).expect("every version can encode it");
            assert_eq!(PacketIn::read(&mut Reader::new(version, &out)).as_ref(), Ok(&packet_in));
            let out = written(version, &packet_out).expect("every version can encode it");
            assert_eq!(PacketOut::read(&mut Reader::new(version, &out)).as_ref(), Ok(&packet_out));
        }
        assert_eq!((packet_in.in_port(), packet_out.in_port()), (Some(PortNo(4)), Some(PortNo::CONTROLLER)));
    }

    #[test]
    fn fields_other_than_the_port_require_1_5() {
        let fields = vec![Oxm::InPort(PortNo(1)), Oxm::Metadata(3.into())];
        let packet = PacketOut { buffer: NO_BUFFER, fields, actions: vec![], data: vec![] };
        assert!(written(Version::V1_5, &packet).is_some());
        for version in [Version::V1_0, Version::V1_3, Version::V1_4] {
            assert_eq!(written(version, &packet), None);
        }
    }

    #[test]
    fn actions_beyond_their_length_are_malformed() {
        let packet = PacketOut::new(PortNo(1), vec![Action::output(PortNo(2))], vec![]);
        let mut out = written(Version::V1_3, &packet).expect("the version can encode it");
        out[9] += 8;
        assert!(PacketOut::read(&mut Reader::new(Version::V1_3, &out)).is_err());
        out[9] -= 12;
        assert!(PacketOut::read(&mut Reader::new(Version::V1_3, &out)).is_err());
    }
}
