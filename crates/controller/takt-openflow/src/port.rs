//! Ports: their description, PORT_STATUS, PORT_MOD and counters (OF 1.3.5 §7.2.1, §7.3.4.3,
//! §7.4.3).

use alloc::vec;
use alloc::vec::Vec;

use crate::error::Malformed;
use crate::oxm::OxmHeader;
use crate::value::{MacAddress, PortNo, Property, Text, read_property, write_property};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer, layout, numbered};

layout! {
    /// Capabilities and speeds of an Ethernet port.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct EthernetPort {
        /// Current speeds and media, one bit each.
        current: u32;
        /// Advertised speeds and media.
        advertised: u32;
        /// Supported speeds and media.
        supported: u32;
        /// Speeds and media that the link partner advertises.
        peer: u32;
        /// Current bit rate in kbit/s. Not in 1.0.
        current_kbps: u32;
        /// Maximum bit rate in kbit/s. Not in 1.0.
        max_kbps: u32;
    }
}

layout! {
    /// Capabilities of an optical port. Frequencies in MHz, wavelengths in units of 0.01 nm, powers
    /// in 0.1 dBm.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct OpticalPort {
        /// Supported features, one bit each.
        supported: u32;
        /// Minimum transmit frequency or wavelength.
        tx_min_freq_lmda: u32;
        /// Maximum transmit frequency or wavelength.
        tx_max_freq_lmda: u32;
        /// Grid spacing of transmission.
        tx_grid_freq_lmda: u32;
        /// Minimum receive frequency or wavelength.
        rx_min_freq_lmda: u32;
        /// Maximum receive frequency or wavelength.
        rx_max_freq_lmda: u32;
        /// Grid spacing of reception.
        rx_grid_freq_lmda: u32;
        /// Minimum transmit power.
        tx_pwr_min: u16;
        /// Maximum transmit power.
        tx_pwr_max: u16;
    }
}

/// Property of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PortProperty {
    /// Ethernet properties. Up to 1.3, every port has exactly this property.
    Ethernet(EthernetPort),
    /// Optical properties. Since 1.4.
    Optical(OpticalPort),
    /// Pipeline fields that accompany packets from the port. Since 1.5.
    PipelineInput(Vec<OxmHeader>),
    /// Pipeline fields that accompany packets to the port. Since 1.5.
    PipelineOutput(Vec<OxmHeader>),
    /// Ports at which packets reenter the pipeline. Since 1.5.
    Recirculate(Vec<PortNo>),
    /// Property without a type in this crate.
    Other(Property),
}

impl Wire for PortProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        let is_1_5 = r.version() == Version::V1_5;
        let property = match kind {
            0 => {
                body.reserved(4)?;
                Self::Ethernet(Wire::read(&mut body)?)
            }
            1 => {
                body.reserved(4)?;
                Self::Optical(Wire::read(&mut body)?)
            }
            2 if is_1_5 => Self::PipelineInput(body.list()?),
            3 if is_1_5 => Self::PipelineOutput(body.list()?),
            4 if is_1_5 => Self::Recirculate(body.list()?),
            kind => Self::Other(Property { kind, body: body.rest().to_vec() }),
        };
        body.finish("property is longer than its type")?;
        Ok(property)
    }

    fn write(&self, w: &mut Writer<'_>) {
        let is_later = matches!(self, Self::PipelineInput(_) | Self::PipelineOutput(_) | Self::Recirculate(_));
        w.refuse_if(is_later && w.version() < Version::V1_5, "this property of a port");
        match self {
            Self::Ethernet(port) => write_property(w, 0, |w| {
                w.reserved(4);
                port.write(w);
            }),
            Self::Optical(port) => write_property(w, 1, |w| {
                w.reserved(4);
                port.write(w);
            }),
            Self::PipelineInput(fields) => write_property(w, 2, |w| w.list(fields)),
            Self::PipelineOutput(fields) => write_property(w, 3, |w| w.list(fields)),
            Self::Recirculate(ports) => write_property(w, 4, |w| w.list(ports)),
            Self::Other(property) => property.write(w),
        }
    }
}

/// Bits of a port's configuration.
pub mod port_config {
    /// The port is down by configuration.
    pub const PORT_DOWN: u32 = 1;
    /// Packets from the port are dropped.
    pub const NO_RECV: u32 = 1 << 2;
    /// Packets to the port are dropped.
    pub const NO_FWD: u32 = 1 << 5;
    /// Packets from the port cause no packet-in.
    pub const NO_PACKET_IN: u32 = 1 << 6;
}

/// Bits of a port's state.
pub mod port_state {
    /// There is no link.
    pub const LINK_DOWN: u32 = 1;
    /// A protocol outside OpenFlow blocks the port.
    pub const BLOCKED: u32 = 1 << 1;
    /// The port is live for fast failover.
    pub const LIVE: u32 = 1 << 2;
}

/// Port of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Number of the port.
    pub number: PortNo,
    /// Ethernet address of the port.
    pub address: MacAddress,
    /// Name of the port.
    pub name: Text<16>,
    /// Configuration bits of [`port_config`].
    pub config: u32,
    /// State bits of [`port_state`].
    pub state: u32,
    /// Capabilities of the port.
    pub properties: Vec<PortProperty>,
}

impl Port {
    /// Returns the property that OpenFlow 1.0 and 1.3 have in fixed fields.
    fn ethernet(&self, w: &mut Writer<'_>) -> EthernetPort {
        match self.properties.as_slice() {
            [] => EthernetPort::default(),
            [PortProperty::Ethernet(port)] => *port,
            _ => {
                w.refuse("port properties other than Ethernet");
                EthernetPort::default()
            }
        }
    }
}

impl Wire for Port {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = PortNo::read(r)?;
        let version = r.version();
        let mut body = *r;
        match version {
            Version::V1_0 => {}
            Version::V1_3 => body.reserved(4)?,
            Version::V1_4 | Version::V1_5 => {
                let len = body.u16()?;
                body = r.rest_of(len, 4)?;
                body.reserved(4)?;
            }
        }
        let address = MacAddress::read(&mut body)?;
        if version != Version::V1_0 {
            body.reserved(2)?;
        }
        let (name, config, state) = (Text::read(&mut body)?, body.u32()?, body.u32()?);
        let properties = match version {
            Version::V1_0 => {
                let (current, advertised) = (body.u32()?, body.u32()?);
                let (supported, peer) = (body.u32()?, body.u32()?);
                let speeds = EthernetPort { current, advertised, supported, peer, ..EthernetPort::default() };
                vec![PortProperty::Ethernet(speeds)]
            }
            Version::V1_3 => vec![PortProperty::Ethernet(Wire::read(&mut body)?)],
            Version::V1_4 | Version::V1_5 => body.list()?,
        };
        if version < Version::V1_4 {
            *r = body;
        }
        Ok(Self { number, address, name, config, state, properties })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        let version = w.version();
        self.number.write(w);
        if version != Version::V1_0 {
            w.reserved(4);
        }
        self.address.write(w);
        if version != Version::V1_0 {
            w.reserved(2);
        }
        self.name.write(w);
        w.u32(self.config);
        w.u32(self.state);
        match version {
            Version::V1_0 => {
                let port = self.ethernet(w);
                w.refuse_if(port.current_kbps != 0 || port.max_kbps != 0, "the bit rate of a port");
                for speeds in [port.current, port.advertised, port.supported, port.peer] {
                    w.u32(speeds);
                }
            }
            Version::V1_3 => self.ethernet(w).write(w),
            Version::V1_4 | Version::V1_5 => {
                w.list(&self.properties);
                w.set_len(start + 4, start, "port");
            }
        }
    }
}

numbered! {
    /// Reason of a PORT_STATUS.
    pub enum PortReason as u8, "unknown reason of PORT_STATUS" {
        /// The port was added.
        Add = 0,
        /// The port was removed.
        Delete = 1,
        /// The port was changed.
        Modify = 2,
    }
}

/// Report that a port was added, removed or changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortStatus {
    /// Reason of the report.
    pub reason: PortReason,
    /// Description of the port.
    pub port: Port,
}

impl Wire for PortStatus {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let reason = PortReason::read(r)?;
        r.reserved(7)?;
        Ok(Self { reason, port: Port::read(r)? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        self.reason.write(w);
        w.reserved(7);
        self.port.write(w);
    }
}

layout! {
    /// Settings of an optical port.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct OpticalPortMod {
        /// Fields to use, one bit each.
        configure: u32;
        /// Central frequency or wavelength.
        freq_lmda: u32;
        /// Offset from the grid, signed.
        fl_offset: u32;
        /// Grid spacing.
        grid_span: u32;
        /// Transmit power.
        tx_pwr: u32;
    }
}

/// Property of a port modification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PortModProperty {
    /// Speeds and media to advertise. 0 keeps them. Up to 1.3, every modification has exactly this
    /// property.
    Ethernet(u32),
    /// Settings of an optical port. Since 1.4.
    Optical(OpticalPortMod),
    /// Property without a type in this crate. Since 1.4.
    Other(Property),
}

impl Wire for PortModProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        let property = match kind {
            0 => Self::Ethernet(body.u32()?),
            1 => Self::Optical(Wire::read(&mut body)?),
            kind => Self::Other(Property { kind, body: body.rest().to_vec() }),
        };
        body.finish("property is longer than its type")?;
        Ok(property)
    }

    fn write(&self, w: &mut Writer<'_>) {
        match self {
            Self::Ethernet(advertise) => write_property(w, 0, |w| w.u32(*advertise)),
            Self::Optical(port) => write_property(w, 1, |w| port.write(w)),
            Self::Other(property) => property.write(w),
        }
    }
}

/// Modifies the configuration of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortMod {
    /// Number of the port.
    pub port: PortNo,
    /// Ethernet address of the port.
    pub address: MacAddress,
    /// Configuration bits of [`port_config`].
    pub config: u32,
    /// Mask of the configuration bits to change.
    pub mask: u32,
    /// Further settings.
    pub properties: Vec<PortModProperty>,
}

impl Wire for PortMod {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let version = r.version();
        let port = PortNo::read(r)?;
        if version != Version::V1_0 {
            r.reserved(4)?;
        }
        let address = MacAddress::read(r)?;
        if version != Version::V1_0 {
            r.reserved(2)?;
        }
        let (config, mask) = (r.u32()?, r.u32()?);
        let properties = if version < Version::V1_4 {
            let advertise = r.u32()?;
            r.reserved(4)?;
            vec![PortModProperty::Ethernet(advertise)]
        } else {
            r.list()?
        };
        Ok(Self { port, address, config, mask, properties })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let version = w.version();
        self.port.write(w);
        if version != Version::V1_0 {
            w.reserved(4);
        }
        self.address.write(w);
        if version != Version::V1_0 {
            w.reserved(2);
        }
        w.u32(self.config);
        w.u32(self.mask);
        if version >= Version::V1_4 {
            return w.list(&self.properties);
        }
        match self.properties.as_slice() {
            [] => w.u32(0),
            [PortModProperty::Ethernet(advertise)] => w.u32(*advertise),
            _ => w.refuse("port properties other than Ethernet"),
        }
        w.reserved(4);
    }
}

layout! {
    /// Ethernet errors.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct EthernetErrors {
        /// Frames with alignment errors.
        rx_frame: u64;
        /// Frames that overran the receiver.
        rx_over: u64;
        /// Frames with a wrong checksum.
        rx_crc: u64;
        /// Collisions.
        collisions: u64;
    }
}

/// Property of a port's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PortStatsProperty {
    /// Ethernet errors. Up to 1.3, every port has exactly this property.
    Ethernet(EthernetErrors),
    /// Property without a type in this crate, including those of optical ports. Since 1.4.
    Other(Property),
}

impl Wire for PortStatsProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        if kind != 0 {
            return Ok(Self::Other(Property { kind, body: body.rest().to_vec() }));
        }
        body.reserved(4)?;
        let errors = Wire::read(&mut body)?;
        body.finish("property is longer than its type")?;
        Ok(Self::Ethernet(errors))
    }

    fn write(&self, w: &mut Writer<'_>) {
        match self {
            Self::Ethernet(errors) => write_property(w, 0, |w| {
                w.reserved(4);
                errors.write(w);
            }),
            Self::Other(property) => property.write(w),
        }
    }
}

layout! {
    /// Counters that every port has. All ones if the switch does not count.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct PortCounters {
        /// Packets received.
        rx_packets: u64;
        /// Packets sent.
        tx_packets: u64;
        /// Octets received.
        rx_bytes: u64;
        /// Octets sent.
        tx_bytes: u64;
        /// Packets dropped on reception.
        rx_dropped: u64;
        /// Packets dropped on transmission.
        tx_dropped: u64;
        /// Receive errors.
        rx_errors: u64;
        /// Transmit errors.
        tx_errors: u64;
    }
}

/// Counters of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortStats {
    /// Number of the port.
    pub port: PortNo,
    /// Time since the creation of the port, in whole seconds. Not in 1.0.
    pub duration_sec: u32,
    /// Nanoseconds beyond these seconds. Not in 1.0.
    pub duration_nsec: u32,
    /// Counters of every kind of port.
    pub counters: PortCounters,
    /// Counters specific to the kind of port.
    pub properties: Vec<PortStatsProperty>,
}

impl Wire for PortStats {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.version() >= Version::V1_4 {
            let len = r.u16()?;
            let mut body = r.rest_of(len, 2)?;
            body.reserved(2)?;
            return Ok(Self {
                port: PortNo::read(&mut body)?,
                duration_sec: body.u32()?,
                duration_nsec: body.u32()?,
                counters: Wire::read(&mut body)?,
                properties: body.list()?,
            });
        }
        let port = PortNo::read(r)?;
        r.reserved(if r.version() == Version::V1_0 { 6 } else { 4 })?;
        let counters = Wire::read(r)?;
        let properties = vec![PortStatsProperty::Ethernet(Wire::read(r)?)];
        let (duration_sec, duration_nsec) = if r.version() == Version::V1_0 { (0, 0) } else { (r.u32()?, r.u32()?) };
        Ok(Self { port, duration_sec, duration_nsec, counters, properties })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        if w.version() >= Version::V1_4 {
            w.reserved(4);
            self.port.write(w);
            w.u32(self.duration_sec);
            w.u32(self.duration_nsec);
            self.counters.write(w);
            w.list(&self.properties);
            return w.set_len(start, start, "counters of a port");
        }
        self.port.write(w);
        w.reserved(if w.version() == Version::V1_0 { 6 } else { 4 });
        self.counters.write(w);
        match self.properties.as_slice() {
            [] => EthernetErrors::default().write(w),
            [PortStatsProperty::Ethernet(errors)] => errors.write(w),
            _ => w.refuse("port properties other than Ethernet"),
        }
        if w.version() == Version::V1_0 {
            w.refuse_if(self.duration_sec != 0 || self.duration_nsec != 0, "the duration of a port");
        } else {
            w.u32(self.duration_sec);
            w.u32(self.duration_nsec);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::written;

    fn port(properties: Vec<PortProperty>) -> Port {
        let name = Text::new("eth0").expect("short");
        Port { number: PortNo(3), address: MacAddress([1; 6]), name, config: 1, state: 4, properties }
    }

    #[test]
    fn ports_round_trip_in_every_version() {
        let speeds = EthernetPort { current: 1, advertised: 2, supported: 3, peer: 4, ..EthernetPort::default() };
        let ethernet = port(vec![PortProperty::Ethernet(speeds)]);
        for (version, len) in [(Version::V1_0, 48), (Version::V1_3, 64), (Version::V1_4, 72), (Version::V1_5, 72)] {
            let out = written(version, &ethernet).expect("every version can encode it");
            assert_eq!(out.len(), len, "{version}");
            let twice = [&out[..], &out].concat();
            let read: Result<Vec<Port>, _> = Reader::new(version, &twice).list();
            assert_eq!(read, Ok(vec![ethernet.clone(), ethernet.clone()]), "{version}");
        }
    }

    #[test]
    fn properties_unknown_to_a_version_are_refused() {
        let optical = port(vec![PortProperty::Optical(OpticalPort::default())]);
        assert_eq!(written(Version::V1_3, &optical), None);
        assert!(written(Version::V1_4, &optical).is_some());
        let recirculate = port(vec![PortProperty::Recirculate(vec![PortNo(1)])]);
        assert_eq!(written(Version::V1_4, &recirculate), None);
        assert!(written(Version::V1_5, &recirculate).is_some());
        let fast = EthernetPort { max_kbps: 1, ..EthernetPort::default() };
        assert_eq!(written(Version::V1_0, &port(vec![PortProperty::Ethernet(fast)])), None);
    }
}
