//! Groups: GROUP_MOD, buckets, and group statistics of multipart replies (
//! OF 1.3.5 §7.3.4.2, §7.3.5.9).

use alloc::vec::Vec;

use crate::action::Action;
use crate::error::Malformed;
use crate::value::{PortNo, Property, read_property, write_property};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer, layout, numbered};

/// Command of a [`GroupMod`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupCommand {
    /// Adds a group.
    Add = 0,
    /// Modifies a group.
    Modify = 1,
    /// Deletes a group, or all groups.
    Delete = 2,
    /// Adds buckets to a group. Since 1.5.
    InsertBucket = 3,
    /// Removes buckets from a group. Since 1.5.
    RemoveBucket = 5,
}

numbered! {
    /// Selection of a group's buckets.
    pub enum GroupType as u8, "unknown type of group" {
        /// All buckets, each with a copy of the packet.
        All = 0,
        /// One bucket, selected by weight.
        Select = 1,
        /// The single bucket.
        Indirect = 2,
        /// First live bucket.
        FastFailover = 3,
    }
}

/// Bucket ID of INSERT_BUCKET and REMOVE_BUCKET if they name no bucket, and of all other commands.
pub const BUCKET_ALL: u32 = 0xffff_ffff;

/// Property of a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BucketProperty {
    /// Weight of the bucket in a SELECT group.
    Weight(u16),
    /// Port whose state determines whether the bucket is live.
    WatchPort(PortNo),
    /// Group whose state determines whether the bucket is live.
    WatchGroup(u32),
    /// Property without a type in this crate. Since 1.5.
    Other(Property),
}

impl Wire for BucketProperty {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, mut body) = read_property(r)?;
        let property = match kind {
            0 => {
                let weight = body.u16()?;
                body.reserved(2)?;
                Self::Weight(weight)
            }
            1 => Self::WatchPort(PortNo::read(&mut body)?),
            2 => Self::WatchGroup(body.u32()?),
            kind => Self::Other(Property { kind, body: body.rest().to_vec() }),
        };
        body.finish("property is longer than its type")?;
        Ok(property)
    }

    fn write(&self, w: &mut Writer<'_>) {
        match self {
            Self::Weight(weight) => write_property(w, 0, |w| {
                w.u16(*weight);
                w.reserved(2);
            }),
            Self::WatchPort(port) => write_property(w, 1, |w| port.write(w)),
            Self::WatchGroup(group) => write_property(w, 2, |w| w.u32(*group)),
            Self::Other(property) => property.write(w),
        }
    }
}

/// Actions of a group with their liveness properties. Up to 1.4 a bucket has exactly the properties
/// weight, watched port and watched group. Missing ones are written as 0, ANY and ANY.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bucket {
    /// Identifier, unique within the group. Since 1.5; 0 before.
    pub id: u32,
    /// Actions of the bucket.
    pub actions: Vec<Action>,
    /// Weight and liveness.
    pub properties: Vec<BucketProperty>,
}

impl Bucket {
    /// Creates a bucket without properties, as in ALL and INDIRECT groups.
    pub const fn new(actions: Vec<Action>) -> Self {
        Self { id: 0, actions, properties: Vec::new() }
    }
}

impl Wire for Bucket {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        if r.version() == Version::V1_5 {
            let actions_len = body.u16()?;
            let id = body.u32()?;
            let actions = body.sub(usize::from(actions_len))?.list()?;
            return Ok(Self { id, actions, properties: body.list()? });
        }
        let properties = alloc::vec![
            BucketProperty::Weight(body.u16()?),
            BucketProperty::WatchPort(PortNo::read(&mut body)?),
            BucketProperty::WatchGroup(body.u32()?),
        ];
        body.reserved(4)?;
        Ok(Self { id: 0, actions: body.list()?, properties })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(0);
        if w.version() == Version::V1_5 {
            w.u16(0);
            w.u32(self.id);
            let actions = w.position();
            w.list(&self.actions);
            w.set_len(start + 2, actions, "actions");
            w.list(&self.properties);
        } else {
            w.refuse_if(self.id != 0, "the identifier of a bucket");
            let (mut weight, mut port, mut group) = (0, PortNo::ANY, crate::value::GROUP_ANY);
            for property in &self.properties {
                match property {
                    BucketProperty::Weight(value) => weight = *value,
                    BucketProperty::WatchPort(value) => port = *value,
                    BucketProperty::WatchGroup(value) => group = *value,
                    BucketProperty::Other(_) => w.refuse("an experimenter's property of a bucket"),
                }
            }
            w.u16(weight);
            port.write(w);
            w.u32(group);
            w.reserved(4);
            w.list(&self.actions);
        }
        w.set_len(start, start, "bucket");
    }
}

/// Adds, modifies or deletes groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMod {
    /// Command.
    pub command: GroupCommand,
    /// Selection of the buckets.
    pub kind: GroupType,
    /// Group. Deletions may also use [`crate::value::GROUP_ALL`].
    pub group: u32,
    /// Position at which buckets are inserted or removed. Since 1.5; [`BUCKET_ALL`] before.
    pub command_bucket: u32,
    /// The buckets.
    pub buckets: Vec<Bucket>,
    /// Experimenter properties. Since 1.5.
    pub properties: Vec<Property>,
}

impl GroupMod {
    /// Returns a message that adds a group.
    pub const fn add(group: u32, kind: GroupType, buckets: Vec<Bucket>) -> Self {
        let (command, command_bucket) = (GroupCommand::Add, BUCKET_ALL);
        Self { command, kind, group, command_bucket, buckets, properties: Vec::new() }
    }
}

impl Wire for GroupMod {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let at = *r;
        let is_1_5 = r.version() == Version::V1_5;
        let command = match r.u16()? {
            0 => GroupCommand::Add,
            1 => GroupCommand::Modify,
            2 => GroupCommand::Delete,
            3 if is_1_5 => GroupCommand::InsertBucket,
            5 if is_1_5 => GroupCommand::RemoveBucket,
            _ => return Err(at.malformed("unknown command of GROUP_MOD")),
        };
        let kind = GroupType::read(r)?;
        r.reserved(1)?;
        let group = r.u32()?;
        if !is_1_5 {
            let (command_bucket, properties) = (BUCKET_ALL, Vec::new());
            return Ok(Self { command, kind, group, command_bucket, buckets: r.list()?, properties });
        }
        let buckets_len = r.u16()?;
        r.reserved(2)?;
        let command_bucket = r.u32()?;
        let buckets = r.sub(usize::from(buckets_len))?.list()?;
        Ok(Self { command, kind, group, command_bucket, buckets, properties: r.list()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u16(self.command as u16);
        self.kind.write(w);
        w.reserved(1);
        w.u32(self.group);
        if w.version() == Version::V1_5 {
            let buckets_len = w.position();
            w.reserved(4);
            w.u32(self.command_bucket);
            let buckets = w.position();
            w.list(&self.buckets);
            w.set_len(buckets_len, buckets, "buckets");
            w.list(&self.properties);
        } else {
            let is_later = matches!(self.command, GroupCommand::InsertBucket | GroupCommand::RemoveBucket);
            w.refuse_if(is_later, "insertion and removal of buckets");
            w.refuse_if(self.command_bucket != BUCKET_ALL, "a bucket by its identifier");
            w.refuse_if(!self.properties.is_empty(), "properties of a group");
            w.list(&self.buckets);
        }
    }
}

layout! {
    /// Counters of a bucket.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct BucketCounter {
        /// Packets that the bucket processed.
        packet_count: u64;
        /// Octets of these packets.
        byte_count: u64;
    }
}

/// Counters of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupStats {
    /// The group.
    pub group: u32,
    /// Number of flows and groups that forward to the group.
    pub ref_count: u32,
    /// Packets that the group processed.
    pub packet_count: u64,
    /// Octets of these packets.
    pub byte_count: u64,
    /// Time since the creation of the group, in whole seconds.
    pub duration_sec: u32,
    /// Nanoseconds beyond these seconds.
    pub duration_nsec: u32,
    /// Counters of each bucket.
    pub buckets: Vec<BucketCounter>,
}

impl Wire for GroupStats {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        body.reserved(2)?;
        let (group, ref_count) = (body.u32()?, body.u32()?);
        body.reserved(4)?;
        Ok(Self {
            group,
            ref_count,
            packet_count: body.u64()?,
            byte_count: body.u64()?,
            duration_sec: body.u32()?,
            duration_nsec: body.u32()?,
            buckets: body.list()?,
        })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.reserved(4);
        w.u32(self.group);
        w.u32(self.ref_count);
        w.reserved(4);
        w.u64(self.packet_count);
        w.u64(self.byte_count);
        w.u32(self.duration_sec);
        w.u32(self.duration_nsec);
        w.list(&self.buckets);
        w.set_len(start, start, "counters of a group");
    }
}

/// Description of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupDesc {
    /// Selection of the buckets.
    pub kind: GroupType,
    /// The group.
    pub group: u32,
    /// The buckets.
    pub buckets: Vec<Bucket>,
    /// Experimenter properties. Since 1.5.
    pub properties: Vec<Property>,
}

impl Wire for GroupDesc {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = r.u16()?;
        let mut body = r.rest_of(len, 2)?;
        let kind = GroupType::read(&mut body)?;
        body.reserved(1)?;
        let group = body.u32()?;
        if r.version() != Version::V1_5 {
            return Ok(Self { kind, group, buckets: body.list()?, properties: Vec::new() });
        }
        let buckets_len = body.u16()?;
        body.reserved(6)?;
        let buckets = body.sub(usize::from(buckets_len))?.list()?;
        Ok(Self { kind, group, buckets, properties: body.list()? })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let start = w.position();
        w.u16(0);
        self.kind.write(w);
        w.reserved(1);
        w.u32(self.group);
        if w.version() == Version::V1_5 {
            let buckets_len = w.position();
            w.reserved(8);
            let buckets = w.position();
            w.list(&self.buckets);
            w.set_len(buckets_len, buckets, "buckets");
            w.list(&self.properties);
        } else {
            w.refuse_if(!self.properties.is_empty(), "properties of a group");
            w.list(&self.buckets);
        }
        w.set_len(start, start, "description of a group");
    }
}

layout! {
    /// Group features of a switch. Arrays are indexed by group type.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct GroupFeatures {
        /// Supported types, one bit for each.
        types: u32;
        /// Capabilities. 1: weights, 2: liveness of SELECT groups, 4: chaining, 8: checks for
        /// loops.
        capabilities: u32;
        /// Maximum number of groups of type ALL.
        max_groups_all: u32;
        /// Maximum number of groups of type SELECT.
        max_groups_select: u32;
        /// Maximum number of groups of type INDIRECT.
        max_groups_indirect: u32;
        /// Maximum number of groups of type FAST_FAILOVER.
        max_groups_ff: u32;
        /// Supported actions of groups of type ALL, one bit each.
        actions_all: u32;
        /// Supported actions of groups of type SELECT.
        actions_select: u32;
        /// Supported actions of groups of type INDIRECT.
        actions_indirect: u32;
        /// Supported actions of groups of type FAST_FAILOVER.
        actions_ff: u32;
    }
}
