//! Tables: TABLE_MOD, features, descriptions and counters (OF 1.3.5 §7.3.3, §7.3.5.4, §7.3.5.5).

use alloc::vec::Vec;

use crate::action::FeatureId;
use crate::error::Malformed;
use crate::oxm::{Oxm, OxmHeader};
use crate::value::{Property, Text, read_property, write_property};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer, layout};

/// Property of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableProperty {
    /// Eviction criteria of the switch. 1: other, 2: importance, 4: lifetime.
    Eviction(u32),
    /// Vacancy thresholds and current vacancy, in percent of free entries.
    Vacancy {
        /// Threshold of the event "down", which occurs when the vacancy falls below it.
        down: u8,
        /// Threshold of the event "up", which occurs when the vacancy rises above it.
        up: u8,
        /// Current vacancy.
        current: u8,
    },
    /// Property without a type in this crate.
    Other(Property),
}

impl Wire for TableProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        let property = match kind {
            2 => Self::Eviction(body.u32()?),
            3 => {
                let (down, up, current) = (body.u8()?, body.u8()?, body.u8()?);
                body.reserved(1)?;
                Self::Vacancy { down, up, current }
            }
            kind => Self::Other(Property { kind, body: body.rest().to_vec() }),
        };
        body.finish("property is longer than its type")?;
        Ok(property)
    }

    fn write(&self, w: &mut Writer<'_>) {
        match self {
            Self::Eviction(flags) => write_property(w, 2, |w| w.u32(*flags)),
            Self::Vacancy { down, up, current } => write_property(w, 3, |w| {
                w.bytes(&[*down, *up, *current]);
                w.reserved(1);
            }),
            Self::Other(property) => property.write(w),
        }
    }
}

/// Configures a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableMod {
    /// Table, or [`crate::value::TABLE_ALL`].
    pub table: u8,
    /// Configuration. 4: eviction, 8: vacancy events. Since 1.4.
    pub config: u32,
    /// Eviction and vacancy properties. Since 1.4.
    pub properties: Vec<TableProperty>,
}

impl Wire for TableMod {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = r.u8()?;
        r.reserved(3)?;
        let config = r.u32()?;
        let properties = if r.version() < Version::V1_4 { Vec::new() } else { r.list()? };
        Ok(Self { table, config, properties })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.refuse_if(w.version() < Version::V1_4 && !self.properties.is_empty(), "properties of a table");
        w.u8(self.table);
        w.reserved(3);
        w.u32(self.config);
        w.list(&self.properties);
    }
}

/// Configuration of a table. Since 1.4.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDesc {
    /// Number of the table.
    pub table: u8,
    /// Configuration as in [`TableMod`].
    pub config: u32,
    /// Eviction and vacancy properties.
    pub properties: Vec<TableProperty>,
}

impl Wire for TableDesc {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        let table = body.u8()?;
        body.reserved(1)?;
        Ok(Self { table, config: body.u32()?, properties: body.list()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(0);
        w.u8(self.table);
        w.reserved(1);
        w.u32(self.config);
        w.list(&self.properties);
        w.set_len(start, start, "description of a table");
    }
}

layout! {
    /// Report that a table reached a vacancy threshold. Since 1.4.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct TableStatus {
        /// Reason. 3: fewer entries are free than `down`, 4: more than `up`.
        reason: u8, reserved 7;
        /// Configuration of the table.
        table: TableDesc;
    }
}

/// Table counters that only OpenFlow 1.0 has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableStatsV1_0 {
    /// Name of the table.
    pub name: Text<32>,
    /// Supported wildcards.
    pub wildcards: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
}

/// Counters of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableStats {
    /// Number of the table.
    pub table: u8,
    /// Name and size, in 1.0 only.
    pub v1_0: Option<TableStatsV1_0>,
    /// Number of flows.
    pub active_count: u32,
    /// Packets looked up.
    pub lookup_count: u64,
    /// Packets that matched.
    pub matched_count: u64,
}

impl Wire for TableStats {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = r.u8()?;
        r.reserved(3)?;
        let v1_0 = if r.version() == Version::V1_0 {
            Some(TableStatsV1_0 { name: Text::read(r)?, wildcards: r.u32()?, max_entries: r.u32()? })
        } else {
            None
        };
        Ok(Self { table, v1_0, active_count: r.u32()?, lookup_count: r.u64()?, matched_count: r.u64()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u8(self.table);
        w.reserved(3);
        match (&self.v1_0, w.version()) {
            (Some(old), Version::V1_0) => {
                old.name.write(w);
                w.u32(old.wildcards);
                w.u32(old.max_entries);
            }
            (None, Version::V1_0) => w.refuse("counters of a table without its name and size"),
            (Some(_), _) => w.refuse("name and size of a table among its counters"),
            (None, _) => {}
        }
        w.u32(self.active_count);
        w.u64(self.lookup_count);
        w.u64(self.matched_count);
    }
}

/// List of a [`TableFeatureProperty`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableFeatureList {
    /// Types of instructions or actions.
    Ids(Vec<FeatureId>),
    /// Numbers of tables.
    Tables(Vec<u8>),
    /// Fields.
    Fields(Vec<OxmHeader>),
    /// Fields with values: packet types.
    Values(Vec<Oxm>),
    /// Experimenter data, and kinds without a type in this crate.
    Other(Vec<u8>),
}

/// Property of a table's features: OFPTFPT number and list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableFeatureProperty {
    /// OFPTFPT number: even for flows, odd for the table-miss flow if the two differ.
    pub kind: u16,
    /// List of the property.
    pub list: TableFeatureList,
}

impl Wire for TableFeatureProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        let list = match (kind, r.version()) {
            (0 | 1 | 4..=7, _) => TableFeatureList::Ids(body.list()?),
            (2 | 3, _) | (16, Version::V1_4 | Version::V1_5) => TableFeatureList::Tables(body.rest().to_vec()),
            (8 | 10 | 12..=15, _) | (18..=21, Version::V1_5) => TableFeatureList::Fields(body.list()?),
            (22, Version::V1_5) => TableFeatureList::Values(body.list()?),
            _ => TableFeatureList::Other(body.rest().to_vec()),
        };
        Ok(Self { kind, list })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let is_later = |list: &TableFeatureList| match list {
            TableFeatureList::Tables(_) => self.kind == 16 && w.version() < Version::V1_4,
            TableFeatureList::Fields(_) => self.kind > 16 && w.version() < Version::V1_5,
            TableFeatureList::Values(_) => w.version() < Version::V1_5,
            TableFeatureList::Ids(_) | TableFeatureList::Other(_) => false,
        };
        let is_later = is_later(&self.list);
        w.refuse_if(is_later, "this property of a table's features");
        write_property(w, self.kind, |w| match &self.list {
            TableFeatureList::Ids(ids) => w.list(ids),
            TableFeatureList::Tables(tables) => w.bytes(tables),
            TableFeatureList::Fields(fields) => w.list(fields),
            TableFeatureList::Values(values) => w.list(values),
            TableFeatureList::Other(body) => w.bytes(body),
        });
    }
}

/// Features of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableFeatures {
    /// Number of the table.
    pub table: u8,
    /// Command of a request: replace, modify, enable or disable. Since 1.5.
    pub command: u8,
    /// Feature bits. 1: ingress table, 2: egress table, 16: first egress table. Since 1.5.
    pub features: u32,
    /// Name of the table.
    pub name: Text<32>,
    /// Bits of metadata that can be matched.
    pub metadata_match: u64,
    /// Bits of metadata that can be written.
    pub metadata_write: u64,
    /// Bits of [`TableMod::config`]. Since 1.4 called capabilities.
    pub config: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
    /// Supported instructions, actions and fields.
    pub properties: Vec<TableFeatureProperty>,
}

impl Wire for TableFeatures {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        let table = body.u8()?;
        let (command, features) = if r.version() == Version::V1_5 {
            (body.u8()?, body.u32()?)
        } else {
            body.reserved(5)?;
            (0, 0)
        };
        Ok(Self {
            table,
            command,
            features,
            name: Text::read(&mut body)?,
            metadata_match: body.u64()?,
            metadata_write: body.u64()?,
            config: body.u32()?,
            max_entries: body.u32()?,
            properties: body.list()?,
        })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.refuse_if(
            w.version() < Version::V1_5 && (self.command != 0 || self.features != 0),
            "command and flags of a table's features",
        );
        w.u16(0);
        w.u8(self.table);
        w.u8(self.command);
        w.u32(self.features);
        self.name.write(w);
        w.u64(self.metadata_match);
        w.u64(self.metadata_write);
        w.u32(self.config);
        w.u32(self.max_entries);
        w.list(&self.properties);
        w.set_len(start, start, "features of a table");
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::wire::written;

    fn features(property: TableFeatureProperty) -> TableFeatures {
        TableFeatures {
            table: 1,
            command: 0,
            features: 0,
            name: Text::new("first").expect("short"),
            metadata_match: 1,
            metadata_write: 2,
            config: 3,
            max_entries: 4,
            properties: vec![property],
        }
    }

    #[test]
    fn features_round_trip_and_truncated_octets_fail() {
        let ids = TableFeatureList::Ids(vec![FeatureId { kind: 1, body: vec![] }]);
        let fields = TableFeatureList::Fields(vec![Oxm::EthType(0).header()]);
        for (kind, list) in [(0, ids), (2, TableFeatureList::Tables(vec![1, 2, 3])), (8, fields)] {
            let value = features(TableFeatureProperty { kind, list });
            for version in [Version::V1_3, Version::V1_4, Version::V1_5] {
                let out = written(version, &value).expect("the version can encode it");
                assert_eq!(TableFeatures::read(&mut Reader::new(version, &out)).as_ref(), Ok(&value));
                for len in 0..out.len() {
                    assert!(TableFeatures::read(&mut Reader::new(version, &out[..len])).is_err(), "{len}");
                }
            }
        }
    }

    #[test]
    fn parts_unknown_to_a_version_are_refused() {
        let values = TableFeatureProperty { kind: 22, list: TableFeatureList::Values(vec![]) };
        assert_eq!(written(Version::V1_4, &features(values.clone())), None);
        assert!(written(Version::V1_5, &features(values)).is_some());
        let change = TableMod { table: 1, config: 0, properties: vec![TableProperty::Eviction(1)] };
        assert_eq!(written(Version::V1_3, &change), None);
        assert!(written(Version::V1_4, &change).is_some());
        let stats = TableStats { table: 0, v1_0: None, active_count: 0, lookup_count: 0, matched_count: 0 };
        assert_eq!(written(Version::V1_0, &stats), None);
    }
}
