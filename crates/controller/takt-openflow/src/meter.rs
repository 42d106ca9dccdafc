//! Meters: METER_MOD, bands, and meter statistics of multipart replies (
//! OF 1.3.5 §7.3.4.4, §7.3.5.12).

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer, layout, numbered};

numbered! {
    /// Command of a [`MeterMod`].
    pub enum MeterCommand as u16, "unknown command of METER_MOD" {
        /// Adds a meter.
        Add = 0,
        /// Modifies a meter.
        Modify = 1,
        /// Deletes a meter, or all meters.
        Delete = 2,
    }
}

/// Flags of a meter.
pub mod meter_flags {
    /// Rates are in kilobits per second, bursts in kilobits.
    pub const KBPS: u16 = 1;
    /// Rates are in packets per second, bursts in packets.
    pub const PKTPS: u16 = 1 << 1;
    /// The bands have a burst size.
    pub const BURST: u16 = 1 << 2;
    /// The switch counts packets and octets of the meter.
    pub const STATS: u16 = 1 << 3;
}

/// Treatment of packets beyond a rate. Rate and burst are in the units of the meter's flags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Band {
    /// Drops the packets.
    Drop {
        /// Rate of the band.
        rate: u32,
        /// Burst size of the band.
        burst: u32,
    },
    /// Raises the drop precedence of the packets.
    DscpRemark {
        /// Rate of the band.
        rate: u32,
        /// Burst size of the band.
        burst: u32,
        /// Number of levels by which the precedence rises.
        prec_level: u8,
    },
    /// Experimenter band.
    Experimenter {
        /// Rate of the band.
        rate: u32,
        /// Burst size of the band.
        burst: u32,
        /// Experimenter ID.
        experimenter: u32,
        /// Experimenter data.
        body: Vec<u8>,
    },
}

impl Wire for Band {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let at = *r;
        let kind = r.u16()?;
        let len = r.u16()?;
        let mut body = r.rest_of(len, 4)?;
        let (rate, burst) = (body.u32()?, body.u32()?);
        let band = match kind {
            1 => {
                body.reserved(4)?;
                Self::Drop { rate, burst }
            }
            2 => {
                let prec_level = body.u8()?;
                body.reserved(3)?;
                Self::DscpRemark { rate, burst, prec_level }
            }
            0xffff => {
                let experimenter = body.u32()?;
                Self::Experimenter { rate, burst, experimenter, body: body.rest().to_vec() }
            }
            _ => return Err(at.malformed("unknown type of band")),
        };
        body.finish("band is longer than its type")?;
        Ok(band)
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        let (kind, rate, burst) = match self {
            Self::Drop { rate, burst } => (1, rate, burst),
            Self::DscpRemark { rate, burst, .. } => (2, rate, burst),
            Self::Experimenter { rate, burst, .. } => (0xffff, rate, burst),
        };
        w.u16(kind);
        w.u16(0);
        w.u32(*rate);
        w.u32(*burst);
        match self {
            Self::Drop { .. } => w.reserved(4),
            Self::DscpRemark { prec_level, .. } => {
                w.u8(*prec_level);
                w.reserved(3);
            }
            Self::Experimenter { experimenter, body, .. } => {
                w.u32(*experimenter);
                w.bytes(body);
            }
        }
        w.set_len(start + 2, start, "band");
    }
}

/// Adds, modifies or deletes meters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeterMod {
    /// Command.
    pub command: MeterCommand,
    /// Flags of [`meter_flags`].
    pub flags: u16,
    /// Meter. Deletions may also use [`crate::value::METER_ALL`].
    pub meter: u32,
    /// The bands.
    pub bands: Vec<Band>,
}

impl Wire for MeterMod {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { command: Wire::read(r)?, flags: r.u16()?, meter: r.u32()?, bands: r.list()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        self.command.write(w);
        w.u16(self.flags);
        w.u32(self.meter);
        w.list(&self.bands);
    }
}

layout! {
    /// Counters of a band.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct BandCounter {
        /// Packets beyond the rate.
        packet_count: u64;
        /// Octets of these packets.
        byte_count: u64;
    }
}

/// Counters of a meter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeterStats {
    /// The meter.
    pub meter: u32,
    /// Number of flows that use the meter. Since 1.5, of flows and other references.
    pub ref_count: u32,
    /// Packets that the meter processed.
    pub packet_in_count: u64,
    /// Octets of these packets.
    pub byte_in_count: u64,
    /// Time since the creation of the meter, in whole seconds.
    pub duration_sec: u32,
    /// Nanoseconds beyond these seconds.
    pub duration_nsec: u32,
    /// Counters of each band.
    pub bands: Vec<BandCounter>,
}

impl Wire for MeterStats {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let meter = r.u32()?;
        let len = r.u16()?;
        let mut body = r.rest_of(len, 6)?;
        body.reserved(6)?;
        Ok(Self {
            meter,
            ref_count: body.u32()?,
            packet_in_count: body.u64()?,
            byte_in_count: body.u64()?,
            duration_sec: body.u32()?,
            duration_nsec: body.u32()?,
            bands: body.list()?,
        })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u32(self.meter);
        w.reserved(8);
        w.u32(self.ref_count);
        w.u64(self.packet_in_count);
        w.u64(self.byte_in_count);
        w.u32(self.duration_sec);
        w.u32(self.duration_nsec);
        w.list(&self.bands);
        w.set_len(start + 4, start, "counters of a meter");
    }
}

/// Configuration of a meter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeterConfig {
    /// Flags of [`meter_flags`].
    pub flags: u16,
    /// The meter.
    pub meter: u32,
    /// The bands.
    pub bands: Vec<Band>,
}

impl Wire for MeterConfig {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        Ok(Self { flags: body.u16()?, meter: body.u32()?, bands: body.list()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(0);
        w.u16(self.flags);
        w.u32(self.meter);
        w.list(&self.bands);
        w.set_len(start, start, "configuration of a meter");
    }
}

/// Meter features of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeterFeatures {
    /// Maximum number of meters.
    pub max_meter: u32,
    /// Supported types of bands, one bit for each.
    pub band_types: u32,
    /// Supported flags of [`meter_flags`].
    pub capabilities: u32,
    /// Maximum number of bands of a meter.
    pub max_bands: u8,
    /// Maximum number of colors.
    pub max_color: u8,
    /// Permitted positions of meter actions. 1: in the action set, 2: anywhere in a list, 4:
    /// several times. Since 1.5.
    pub features: u32,
}

impl Wire for MeterFeatures {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut features = Self {
            max_meter: r.u32()?,
            band_types: r.u32()?,
            capabilities: r.u32()?,
            max_bands: r.u8()?,
            max_color: r.u8()?,
            features: 0,
        };
        r.reserved(2)?;
        if r.version() == Version::V1_5 {
            features.features = r.u32()?;
            r.reserved(4)?;
        }
        Ok(features)
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u32(self.max_meter);
        w.u32(self.band_types);
        w.u32(self.capabilities);
        w.u8(self.max_bands);
        w.u8(self.max_color);
        w.reserved(2);
        if w.version() == Version::V1_5 {
            w.u32(self.features);
            w.reserved(4);
        } else {
            w.refuse_if(self.features != 0, "features of meters");
        }
    }
}
