//! MULTIPART requests and replies, which OpenFlow 1.0 calls STATS (OF 1.3.5 §7.3.5).

mod flow;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use self::flow::{FlowRequest, FlowStatistics, FlowStats};
use crate::error::Malformed;
use crate::group::{GroupDesc, GroupFeatures, GroupStats};
use crate::meter::{MeterConfig, MeterFeatures, MeterStats};
use crate::port::{Port, PortStats};
use crate::queue::{Queue, QueueStats};
use crate::statistic::Aggregate;
use crate::switch::ControllerStatus;
use crate::table::{TableDesc, TableFeatures, TableStats};
use crate::value::{Experimenter, GROUP_ALL, PortNo, Text};
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer, layout};

/// Flag of a request or reply that is followed by further parts.
pub const MORE: u16 = 1;
/// Type of experimenter requests and replies.
const EXPERIMENTER: u16 = 0xffff;

layout! {
    /// Description of the switch.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct Desc {
        /// Manufacturer.
        manufacturer: Text<256>;
        /// Hardware description.
        hardware: Text<256>;
        /// Software description.
        software: Text<256>;
        /// Serial number.
        serial_number: Text<32>;
        /// Description of the datapath.
        datapath: Text<256>;
    }
}

layout! {
    /// Selection of queues of a port.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct QueueRequest {
        /// Port, or [`PortNo::ANY`].
        port: PortNo;
        /// Queue, or [`crate::value::QUEUE_ALL`].
        queue: u32;
    }
}

/// Body of a multipart request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestBody {
    /// Description of the switch.
    Desc,
    /// Flows. In 1.5, their descriptions.
    Flow(FlowRequest),
    /// Sums over flows.
    Aggregate(FlowRequest),
    /// Counters of tables.
    Table,
    /// Counters of a port, or of all ports: [`PortNo::ANY`].
    Port(PortNo),
    /// Counters of queues.
    Queue(QueueRequest),
    /// Counters of a group, or of all groups: [`GROUP_ALL`].
    Group(u32),
    /// Configuration of groups. Up to 1.4, of all groups: [`GROUP_ALL`].
    GroupDesc(u32),
    /// Group features of the switch.
    GroupFeatures,
    /// Counters of a meter, or of all meters: [`crate::value::METER_ALL`].
    Meter(u32),
    /// Configuration of meters.
    MeterConfig(u32),
    /// Meter features of the switch.
    MeterFeatures,
    /// Features of tables. A request that contains tables sets them.
    TableFeatures(Vec<TableFeatures>),
    /// Description of ports. Up to 1.4, of all ports: [`PortNo::ANY`].
    PortDesc(PortNo),
    /// Configuration of tables. Since 1.4.
    TableDesc,
    /// Configuration of queues. Since 1.4.
    QueueDesc(QueueRequest),
    /// Statistics of flows. Since 1.5.
    FlowStatistics(FlowRequest),
    /// Channels to controllers. Since 1.5.
    ControllerStatus,
    /// Experimenter request.
    Experimenter(Experimenter),
    /// Type without a form in this crate: flow monitors, bundle features.
    Other {
        /// Multipart type.
        kind: u16,
        /// Octets of the body.
        body: Vec<u8>,
    },
}

/// Request whose reply may consist of several messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultipartRequest {
    /// Flags: [`MORE`].
    pub flags: u16,
    /// Body of the request.
    pub body: RequestBody,
}

impl MultipartRequest {
    /// Creates a request with a single part.
    pub const fn new(body: RequestBody) -> Self {
        Self { flags: 0, body }
    }
}

/// Body of a multipart reply, or of a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplyBody {
    /// Description of the switch.
    Desc(Box<Desc>),
    /// Flows. In 1.5, their descriptions.
    Flow(Vec<FlowStats>),
    /// Sums over flows.
    Aggregate(Aggregate),
    /// Counters of tables.
    Table(Vec<TableStats>),
    /// Counters of ports.
    Port(Vec<PortStats>),
    /// Counters of queues.
    Queue(Vec<QueueStats>),
    /// Counters of groups.
    Group(Vec<GroupStats>),
    /// Configuration of groups.
    GroupDesc(Vec<GroupDesc>),
    /// Group features of the switch.
    GroupFeatures(GroupFeatures),
    /// Counters of meters.
    Meter(Vec<MeterStats>),
    /// Configuration of meters.
    MeterConfig(Vec<MeterConfig>),
    /// Meter features of the switch.
    MeterFeatures(MeterFeatures),
    /// Features of tables.
    TableFeatures(Vec<TableFeatures>),
    /// Description of ports.
    PortDesc(Vec<Port>),
    /// Configuration of tables. Since 1.4.
    TableDesc(Vec<TableDesc>),
    /// Configuration of queues. Since 1.4.
    QueueDesc(Vec<Queue>),
    /// Statistics of flows. Since 1.5.
    FlowStatistics(Vec<FlowStatistics>),
    /// Channels to controllers. Since 1.5.
    ControllerStatus(Vec<ControllerStatus>),
    /// Experimenter reply.
    Experimenter(Experimenter),
    /// Type without a form in this crate: flow monitors, bundle features.
    Other {
        /// Multipart type.
        kind: u16,
        /// Octets of the body.
        body: Vec<u8>,
    },
}

macro_rules! lists {
    ($call:ident) => {
        $call!(
            Flow Table Port Queue Group GroupDesc Meter MeterConfig TableFeatures PortDesc TableDesc QueueDesc FlowStatistics
            ControllerStatus
        )
    };
}

impl ReplyBody {
    /// Appends the next part of the same reply. Returns the part if it has another type, or a type
    /// without parts.
    pub fn append(&mut self, next: Self) -> Result<(), Self> {
        macro_rules! append {
            ($($kind:ident)*) => {
                match (self, next) {
                    $((Self::$kind(list), Self::$kind(more)) => list.extend(more),)*
                    (Self::Experimenter(first), Self::Experimenter(more))
                        if (first.experimenter, first.kind) == (more.experimenter, more.kind) =>
                    {
                        first.body.extend(more.body);
                    }
                    (Self::Other { kind, body }, Self::Other { kind: other, body: more }) if *kind == other => body.extend(more),
                    (_, next) => return Err(next),
                }
            };
        }
        lists!(append);
        Ok(())
    }

    /// Splits a list of at least two entries into two halves. Returns the body unchanged if it
    /// cannot be split.
    pub(crate) fn halves(self) -> Result<[Self; 2], Self> {
        macro_rules! halves {
            ($($kind:ident)*) => {
                match self {
                    $(Self::$kind(mut list) if list.len() > 1 => {
                        let second = list.split_off(list.len() / 2);
                        Ok([Self::$kind(list), Self::$kind(second)])
                    })*
                    body => Err(body),
                }
            };
        }
        lists!(halves)
    }
}

/// Multipart reply, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultipartReply {
    /// Flags: [`MORE`].
    pub flags: u16,
    /// Body of the reply.
    pub body: ReplyBody,
}

/// Reads type, flags and, since 1.3, reserved octets.
fn read_header(r: &mut Reader<'_>) -> Result<(u16, u16), Malformed> {
    let header = (r.u16()?, r.u16()?);
    if r.version() != Version::V1_0 {
        r.reserved(4)?;
    }
    Ok(header)
}

/// Writes type, flags and, since 1.3, reserved octets. Without `has_type`, the body is raw octets
/// and its type is not checked.
fn write_header(w: &mut Writer<'_>, kind: u16, flags: u16, has_type: bool) {
    let kind_max = match w.version() {
        Version::V1_0 => 5,
        Version::V1_3 => 13,
        Version::V1_4 => 16,
        Version::V1_5 => 19,
    };
    w.refuse_if(has_type && kind > kind_max && kind != EXPERIMENTER, "this type of multipart message");
    w.u16(kind);
    w.u16(flags);
    if w.version() != Version::V1_0 {
        w.reserved(4);
    }
}

/// Reads a number and four reserved octets.
fn read_id(r: &mut Reader<'_>) -> Result<u32, Malformed> {
    let id = r.u32()?;
    r.reserved(4).map(|()| id)
}

fn write_id(w: &mut Writer<'_>, id: u32) {
    w.u32(id);
    w.reserved(4);
}

/// Reads port and queue. In 1.0, two reserved octets separate them.
fn read_queue(r: &mut Reader<'_>) -> Result<QueueRequest, Malformed> {
    if r.version() != Version::V1_0 {
        return QueueRequest::read(r);
    }
    let port = PortNo::read(r)?;
    r.reserved(2)?;
    Ok(QueueRequest { port, queue: r.u32()? })
}

fn write_queue(w: &mut Writer<'_>, request: &QueueRequest) {
    request.port.write(w);
    if w.version() == Version::V1_0 {
        w.reserved(2);
    }
    w.u32(request.queue);
}

impl Wire for MultipartRequest {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, flags) = read_header(r)?;
        let version = r.version();
        let body = match (kind, version) {
            (0, _) => RequestBody::Desc,
            (1, _) => RequestBody::Flow(Wire::read(r)?),
            (2, _) => RequestBody::Aggregate(Wire::read(r)?),
            (3, _) => RequestBody::Table,
            (4, _) => {
                let port = PortNo::read(r)?;
                r.reserved(if version == Version::V1_0 { 6 } else { 4 })?;
                RequestBody::Port(port)
            }
            (5, _) => RequestBody::Queue(read_queue(r)?),
            (EXPERIMENTER, _) => RequestBody::Experimenter(Wire::read(r)?),
            (kind, Version::V1_0) => RequestBody::Other { kind, body: r.rest().to_vec() },
            (6, _) => RequestBody::Group(read_id(r)?),
            (7, Version::V1_5) => RequestBody::GroupDesc(read_id(r)?),
            (7, _) => RequestBody::GroupDesc(GROUP_ALL),
            (8, _) => RequestBody::GroupFeatures,
            (9, _) => RequestBody::Meter(read_id(r)?),
            (10, _) => RequestBody::MeterConfig(read_id(r)?),
            (11, _) => RequestBody::MeterFeatures,
            (12, _) => RequestBody::TableFeatures(r.list()?),
            (13, Version::V1_5) => RequestBody::PortDesc(PortNo(read_id(r)?)),
            (13, _) => RequestBody::PortDesc(PortNo::ANY),
            (14, Version::V1_4 | Version::V1_5) => RequestBody::TableDesc,
            (15, Version::V1_4 | Version::V1_5) => RequestBody::QueueDesc(Wire::read(r)?),
            (17, Version::V1_5) => RequestBody::FlowStatistics(Wire::read(r)?),
            (18, Version::V1_5) => RequestBody::ControllerStatus,
            (kind, _) => RequestBody::Other { kind, body: r.rest().to_vec() },
        };
        Ok(Self { flags, body })
    }

    fn write(&self, w: &mut Writer<'_>) {
        let body = &self.body;
        write_header(w, body.kind(), self.flags, !matches!(body, RequestBody::Other { .. }));
        match body {
            RequestBody::Desc
            | RequestBody::Table
            | RequestBody::GroupFeatures
            | RequestBody::MeterFeatures
            | RequestBody::TableDesc
            | RequestBody::ControllerStatus => {}
            RequestBody::Flow(request) | RequestBody::Aggregate(request) | RequestBody::FlowStatistics(request) => {
                request.write(w);
            }
            RequestBody::Port(port) => {
                port.write(w);
                w.reserved(if w.version() == Version::V1_0 { 6 } else { 4 });
            }
            RequestBody::Queue(request) | RequestBody::QueueDesc(request) => write_queue(w, request),
            RequestBody::Group(id) | RequestBody::Meter(id) | RequestBody::MeterConfig(id) => write_id(w, *id),
            RequestBody::GroupDesc(group) if w.version() == Version::V1_5 => write_id(w, *group),
            RequestBody::GroupDesc(group) => w.refuse_if(*group != GROUP_ALL, "a request for one group's description"),
            RequestBody::PortDesc(port) if w.version() == Version::V1_5 => write_id(w, port.0),
            RequestBody::PortDesc(port) => w.refuse_if(*port != PortNo::ANY, "a request for one port's description"),
            RequestBody::TableFeatures(tables) => w.list(tables),
            RequestBody::Experimenter(body) => body.write(w),
            RequestBody::Other { body, .. } => w.bytes(body),
        }
    }
}

impl RequestBody {
    /// Returns the type on the wire.
    pub fn kind(&self) -> u16 {
        match self {
            Self::Desc => 0,
            Self::Flow(_) => 1,
            Self::Aggregate(_) => 2,
            Self::Table => 3,
            Self::Port(_) => 4,
            Self::Queue(_) => 5,
            Self::Group(_) => 6,
            Self::GroupDesc(_) => 7,
            Self::GroupFeatures => 8,
            Self::Meter(_) => 9,
            Self::MeterConfig(_) => 10,
            Self::MeterFeatures => 11,
            Self::TableFeatures(_) => 12,
            Self::PortDesc(_) => 13,
            Self::TableDesc => 14,
            Self::QueueDesc(_) => 15,
            Self::FlowStatistics(_) => 17,
            Self::ControllerStatus => 18,
            Self::Experimenter(_) => EXPERIMENTER,
            Self::Other { kind, .. } => *kind,
        }
    }
}

impl ReplyBody {
    /// Returns the type on the wire.
    pub fn kind(&self) -> u16 {
        match self {
            Self::Desc(_) => 0,
            Self::Flow(_) => 1,
            Self::Aggregate(_) => 2,
            Self::Table(_) => 3,
            Self::Port(_) => 4,
            Self::Queue(_) => 5,
            Self::Group(_) => 6,
            Self::GroupDesc(_) => 7,
            Self::GroupFeatures(_) => 8,
            Self::Meter(_) => 9,
            Self::MeterConfig(_) => 10,
            Self::MeterFeatures(_) => 11,
            Self::TableFeatures(_) => 12,
            Self::PortDesc(_) => 13,
            Self::TableDesc(_) => 14,
            Self::QueueDesc(_) => 15,
            Self::FlowStatistics(_) => 17,
            Self::ControllerStatus(_) => 18,
            Self::Experimenter(_) => EXPERIMENTER,
            Self::Other { kind, .. } => *kind,
        }
    }
}

impl Wire for MultipartReply {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, flags) = read_header(r)?;
        let body = match (kind, r.version()) {
            (0, _) => ReplyBody::Desc(Box::new(Wire::read(r)?)),
            (1, _) => ReplyBody::Flow(r.list()?),
            (2, _) => ReplyBody::Aggregate(Wire::read(r)?),
            (3, _) => ReplyBody::Table(r.list()?),
            (4, _) => ReplyBody::Port(r.list()?),
            (5, _) => ReplyBody::Queue(r.list()?),
            (EXPERIMENTER, _) => ReplyBody::Experimenter(Wire::read(r)?),
            (kind, Version::V1_0) => ReplyBody::Other { kind, body: r.rest().to_vec() },
            (6, _) => ReplyBody::Group(r.list()?),
            (7, _) => ReplyBody::GroupDesc(r.list()?),
            (8, _) => ReplyBody::GroupFeatures(Wire::read(r)?),
            (9, _) => ReplyBody::Meter(r.list()?),
            (10, _) => ReplyBody::MeterConfig(r.list()?),
            (11, _) => ReplyBody::MeterFeatures(Wire::read(r)?),
            (12, _) => ReplyBody::TableFeatures(r.list()?),
            (13, _) => ReplyBody::PortDesc(r.list()?),
            (14, Version::V1_4 | Version::V1_5) => ReplyBody::TableDesc(r.list()?),
            (15, Version::V1_4 | Version::V1_5) => ReplyBody::QueueDesc(r.list()?),
            (17, Version::V1_5) => ReplyBody::FlowStatistics(r.list()?),
            (18, Version::V1_5) => ReplyBody::ControllerStatus(r.list()?),
            (kind, _) => ReplyBody::Other { kind, body: r.rest().to_vec() },
        };
        Ok(Self { flags, body })
    }

    fn write(&self, w: &mut Writer<'_>) {
        write_header(w, self.body.kind(), self.flags, !matches!(self.body, ReplyBody::Other { .. }));
        match &self.body {
            ReplyBody::Desc(desc) => desc.write(w),
            ReplyBody::Flow(list) => w.list(list),
            ReplyBody::Aggregate(aggregate) => aggregate.write(w),
            ReplyBody::Table(list) => w.list(list),
            ReplyBody::Port(list) => w.list(list),
            ReplyBody::Queue(list) => w.list(list),
            ReplyBody::Group(list) => w.list(list),
            ReplyBody::GroupDesc(list) => w.list(list),
            ReplyBody::GroupFeatures(features) => features.write(w),
            ReplyBody::Meter(list) => w.list(list),
            ReplyBody::MeterConfig(list) => w.list(list),
            ReplyBody::MeterFeatures(features) => features.write(w),
            ReplyBody::TableFeatures(list) => w.list(list),
            ReplyBody::PortDesc(list) => w.list(list),
            ReplyBody::TableDesc(list) => w.list(list),
            ReplyBody::QueueDesc(list) => w.list(list),
            ReplyBody::FlowStatistics(list) => w.list(list),
            ReplyBody::ControllerStatus(list) => w.list(list),
            ReplyBody::Experimenter(body) => body.write(w),
            ReplyBody::Other { body, .. } => w.bytes(body),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn port(number: u32) -> PortStats {
        PortStats {
            port: PortNo(number),
            duration_sec: 0,
            duration_nsec: 0,
            counters: Default::default(),
            properties: vec![],
        }
    }

    #[test]
    fn parts_of_one_type_are_appended() {
        let mut body = ReplyBody::Port(vec![port(1)]);
        body.append(ReplyBody::Port(vec![port(2)])).expect("the same type");
        assert_eq!(body, ReplyBody::Port(vec![port(1), port(2)]));
        let other = ReplyBody::Table(vec![]);
        assert_eq!(body.append(other.clone()), Err(other));
        let mut octets = ReplyBody::Other { kind: 16, body: vec![1] };
        octets.append(ReplyBody::Other { kind: 16, body: vec![2] }).expect("the same type");
        assert_eq!(octets, ReplyBody::Other { kind: 16, body: vec![1, 2] });
    }

    #[test]
    fn halves_contain_every_entry_in_order() {
        let [mut first, second] = ReplyBody::Port((0..5).map(port).collect()).halves().expect("five entries");
        first.append(second).expect("the same type");
        assert_eq!(first, ReplyBody::Port((0..5).map(port).collect()));
        assert!(ReplyBody::Port(vec![port(1)]).halves().is_err());
    }
}
