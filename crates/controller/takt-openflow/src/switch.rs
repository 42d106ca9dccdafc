//! Switch properties: FEATURES, configuration, roles, asynchronous messages (
//! OF 1.3.5 §7.3.1, §7.3.2, §7.3.9, §7.3.10).

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::port::Port;
use crate::value::{Property, read_property, write_property};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer, layout, numbered};

/// Reply to FEATURES_REQUEST.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Datapath ID. Its lower 48 bits are an Ethernet address.
    pub datapath: u64,
    /// Number of packets that the switch can buffer.
    pub n_buffers: u32,
    /// Number of tables.
    pub n_tables: u8,
    /// Number of the auxiliary connection, 0 for the main one. Not in 1.0.
    pub auxiliary: u8,
    /// Capabilities of the switch, one bit each.
    pub capabilities: u32,
    /// Supported actions in 1.0, one bit each. Reserved in later versions.
    pub actions: u32,
    /// Ports in 1.0. Empty in later versions.
    pub ports: Vec<Port>,
}

impl Wire for Features {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (datapath, n_buffers, n_tables) = (r.u64()?, r.u32()?, r.u8()?);
        let is_1_0 = r.version() == Version::V1_0;
        let auxiliary = if is_1_0 { 0 } else { r.u8()? };
        r.reserved(if is_1_0 { 3 } else { 2 })?;
        let (capabilities, actions) = (r.u32()?, r.u32()?);
        let ports = if is_1_0 { r.list()? } else { Vec::new() };
        Ok(Self { datapath, n_buffers, n_tables, auxiliary, capabilities, actions, ports })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u64(self.datapath);
        w.u32(self.n_buffers);
        w.u8(self.n_tables);
        if w.version() == Version::V1_0 {
            w.refuse_if(self.auxiliary != 0, "an auxiliary connection");
            w.reserved(3);
        } else {
            w.refuse_if(!self.ports.is_empty(), "ports among the features");
            w.u8(self.auxiliary);
            w.reserved(2);
        }
        w.u32(self.capabilities);
        w.u32(self.actions);
        w.list(&self.ports);
    }
}

layout! {
    /// Configuration that a controller sets.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct SwitchConfig {
        /// Treatment of IP fragments. 0: normal, 1: drop, 2: reassemble.
        flags: u16;
        /// Octets of a packet without a flow that are sent to the controller.
        /// [`crate::value::NO_BUFFER_LEN`] means all.
        miss_send_len: u16;
    }
}

numbered! {
    /// Role of a controller (OF 1.3.5 §6.3).
    pub enum ControllerRole as u32, "unknown role" {
        /// The role does not change.
        NoChange = 0,
        /// Full access, shared with other controllers.
        Equal = 1,
        /// Full access of exactly one controller.
        Master = 2,
        /// Read-only access.
        Slave = 3,
    }
}

/// Body of ROLE_REQUEST and ROLE_REPLY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleMessage {
    /// Role of the controller.
    pub role: ControllerRole,
    /// Short identifier of the controller, 0 for none. Since 1.5.
    pub short_id: u16,
    /// Generation, which increases with every election of a master.
    pub generation: u64,
}

impl Wire for RoleMessage {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let role = ControllerRole::read(r)?;
        let short_id = if r.version() == Version::V1_5 {
            let id = r.u16()?;
            r.reserved(2)?;
            id
        } else {
            r.reserved(4)?;
            0
        };
        Ok(Self { role, short_id, generation: r.u64()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.refuse_if(w.version() < Version::V1_5 && self.short_id != 0, "the short identifier of a controller");
        self.role.write(w);
        w.u16(self.short_id);
        w.reserved(2);
        w.u64(self.generation);
    }
}

/// Report that the role of this controller changed. Since 1.4.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleStatus {
    /// New role.
    pub role: ControllerRole,
    /// Reason. 0: another controller is master, 1: configuration, 2: experimenter.
    pub reason: u8,
    /// Generation of the election.
    pub generation: u64,
    /// Experimenter properties.
    pub properties: Vec<Property>,
}

impl Wire for RoleStatus {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (role, reason) = (ControllerRole::read(r)?, r.u8()?);
        r.reserved(3)?;
        Ok(Self { role, reason, generation: r.u64()?, properties: r.list()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        self.role.write(w);
        w.u8(self.reason);
        w.reserved(3);
        w.u64(self.generation);
        w.list(&self.properties);
    }
}

/// Kind of asynchronous message for one role, as a number of OFPACPT.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AsyncKind(pub u16);

impl AsyncKind {
    /// PACKET_IN to a slave.
    pub const PACKET_IN_SLAVE: Self = Self(0);
    /// PACKET_IN to a master or equal.
    pub const PACKET_IN_MASTER: Self = Self(1);
    /// PORT_STATUS to a slave.
    pub const PORT_STATUS_SLAVE: Self = Self(2);
    /// PORT_STATUS to a master or equal.
    pub const PORT_STATUS_MASTER: Self = Self(3);
    /// FLOW_REMOVED to a slave.
    pub const FLOW_REMOVED_SLAVE: Self = Self(4);
    /// FLOW_REMOVED to a master or equal.
    pub const FLOW_REMOVED_MASTER: Self = Self(5);

    /// Kinds of 1.3, in the order of its structure.
    const V1_3: [Self; 6] = [
        Self::PACKET_IN_MASTER,
        Self::PACKET_IN_SLAVE,
        Self::PORT_STATUS_MASTER,
        Self::PORT_STATUS_SLAVE,
        Self::FLOW_REMOVED_MASTER,
        Self::FLOW_REMOVED_SLAVE,
    ];
    /// First kind of experimenters.
    const EXPERIMENTER: Self = Self(0xfffe);
}

/// Reasons for which a kind of message is sent, or an experimenter property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AsyncProperty {
    /// Mask with one bit for each reason.
    Mask {
        /// Kind of the message.
        kind: AsyncKind,
        /// Reasons for which it is sent.
        mask: u32,
    },
    /// Experimenter property.
    Other(Property),
}

impl Wire for AsyncProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        if AsyncKind(kind) >= AsyncKind::EXPERIMENTER {
            return Ok(Self::Other(Property { kind, body: body.rest().to_vec() }));
        }
        let mask = body.u32()?;
        body.finish("property is longer than its type")?;
        Ok(Self::Mask { kind: AsyncKind(kind), mask })
    }

    fn write(&self, w: &mut Writer<'_>) {
        match self {
            Self::Mask { kind, mask } => write_property(w, kind.0, |w| w.u32(*mask)),
            Self::Other(property) => property.write(w),
        }
    }
}

/// Configuration of asynchronous messages: the body of SET_ASYNC and GET_ASYNC_REPLY. In 1.3, it
/// consists of exactly the six masks of [`AsyncKind`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AsyncConfig {
    /// Masks and experimenter properties.
    pub properties: Vec<AsyncProperty>,
}

impl AsyncConfig {
    /// Creates the six masks of 1.3, each pair for master and equal first, then for slave.
    pub fn new(packet_in: [u32; 2], port_status: [u32; 2], flow_removed: [u32; 2]) -> Self {
        let masks = [packet_in, port_status, flow_removed].concat();
        let mask = |(kind, mask)| AsyncProperty::Mask { kind, mask };
        Self { properties: AsyncKind::V1_3.into_iter().zip(masks).map(mask).collect() }
    }

    /// Returns the reasons for which a kind is sent, if it is configured.
    pub fn mask(&self, wanted: AsyncKind) -> Option<u32> {
        self.properties.iter().find_map(|property| match property {
            AsyncProperty::Mask { kind, mask } if *kind == wanted => Some(*mask),
            _ => None,
        })
    }
}

impl Wire for AsyncConfig {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.version() >= Version::V1_4 {
            return Ok(Self { properties: r.list()? });
        }
        let mut pair = || -> Result<[u32; 2], Malformed> { Ok([r.u32()?, r.u32()?]) };
        Ok(Self::new(pair()?, pair()?, pair()?))
    }

    fn write(&self, w: &mut Writer<'_>) {
        if w.version() >= Version::V1_4 {
            return w.list(&self.properties);
        }
        w.refuse_if(
            self.properties.len() != AsyncKind::V1_3.len(),
            "other than the six masks of asynchronous messages",
        );
        for kind in AsyncKind::V1_3 {
            w.refuse_if(self.mask(kind).is_none(), "other than the six masks of asynchronous messages");
            w.u32(self.mask(kind).unwrap_or_default());
        }
    }
}

/// Report that the channel to a controller changed. Since 1.5.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerStatus {
    /// Short identifier of the controller.
    pub short_id: u16,
    /// Role of the controller.
    pub role: ControllerRole,
    /// Reason, as a number of OFPCSR.
    pub reason: u8,
    /// Status of the channel. 0: up, 1: down.
    pub channel_status: u8,
    /// URI of the connection, and experimenter properties.
    pub properties: Vec<Property>,
}

impl Wire for ControllerStatus {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        let short_id = body.u16()?;
        let (role, reason, channel_status) = (ControllerRole::read(&mut body)?, body.u8()?, body.u8()?);
        body.reserved(6)?;
        Ok(Self { short_id, role, reason, channel_status, properties: body.list()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(0);
        w.u16(self.short_id);
        self.role.write(w);
        w.u8(self.reason);
        w.u8(self.channel_status);
        w.reserved(6);
        w.list(&self.properties);
        w.set_len(start, start, "status of a controller");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::written;

    #[test]
    fn masks_of_1_3_are_the_six_properties_of_1_4() {
        let config = AsyncConfig::new([1, 2], [3, 4], [5, 6]);
        let out = written(Version::V1_3, &config).expect("all six masks are set");
        assert_eq!(out.chunks(4).map(|mask| mask[3]).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(AsyncConfig::read(&mut Reader::new(Version::V1_3, &out)).as_ref(), Ok(&config));
        assert_eq!(config.mask(AsyncKind::PACKET_IN_SLAVE), Some(2));
        let out = written(Version::V1_4, &config).expect("properties");
        assert_eq!(AsyncConfig::read(&mut Reader::new(Version::V1_4, &out)), Ok(config.clone()));
        let fewer = AsyncConfig { properties: config.properties[1..].to_vec() };
        assert_eq!(written(Version::V1_3, &fewer), None);
    }

    #[test]
    fn short_identifiers_require_1_5() {
        let role = RoleMessage { role: ControllerRole::Master, short_id: 3, generation: 4 };
        assert_eq!(written(Version::V1_4, &role), None);
        let out = written(Version::V1_5, &role).expect("1.5 has it");
        assert_eq!(RoleMessage::read(&mut Reader::new(Version::V1_5, &out)), Ok(role));
        assert!(RoleMessage::read(&mut Reader::new(Version::V1_5, &[0, 0, 0, 4, 0, 0, 0, 0])).is_err());
    }
}
