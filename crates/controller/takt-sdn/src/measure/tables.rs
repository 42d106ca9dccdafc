//! Table capacities for flow entries, groups and meters, as reported by the switch or counted by
//! additions.

use takt_openflow::Message;
use takt_openflow::flow::FlowMod;
use takt_openflow::group::{Bucket, GroupCommand, GroupMod, GroupType};
use takt_openflow::meter::{Band, MeterCommand, MeterMod, meter_flags};
use takt_openflow::multipart::{ReplyBody, RequestBody};
use takt_openflow::oxm::Oxm;
use takt_openflow::value::MacAddress;

use super::session::MESSAGES_MAX;
use super::{Bench, COOKIE, LIFETIME, MeasureError};

/// Number of the first added group.
const GROUP: u32 = 0x544d_0000;
/// Number of the first added meter; meters of a controller have lower numbers.
const METER: u32 = 16_384;

/// Source of a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The switch reported it.
    Reported,
    /// The switch refused a further addition.
    Refused,
    /// The cap was reached: the capacity may be larger.
    Cap,
}

/// Capacity of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of entries.
    pub count: u32,
    /// Source of the number.
    pub source: Source,
}

/// Table capacities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacities {
    /// Capacity of the first table for flow entries.
    pub flow_entries: Count,
    /// Capacity for groups.
    pub groups: Count,
    /// Capacity for meters.
    pub meters: Count,
}

/// Kind of entries whose capacity is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flow,
    Group,
    Meter,
}

impl Kind {
    fn addition(self, number: u32) -> Message {
        match self {
            Self::Flow => add_entry(number),
            Self::Group => {
                Message::GroupMod(GroupMod::add(GROUP + number, GroupType::All, vec![Bucket::new(Vec::new())]))
            }
            Self::Meter => {
                let bands = vec![Band::Drop { rate: 1000, burst: 100 }];
                let flags = meter_flags::KBPS | meter_flags::BURST;
                Message::MeterMod(MeterMod { command: MeterCommand::Add, flags, meter: METER + number, bands })
            }
        }
    }

    /// Returns the list of additions that [`Bench::remove`] removes by number, and the number of
    /// the first.
    fn added<'b>(self, bench: &'b mut Bench<'_>) -> Option<(&'b mut Vec<u32>, u32)> {
        match self {
            // Flow entries are removed by their cookie.
            Self::Flow => None,
            Self::Group => Some((&mut bench.groups, GROUP)),
            Self::Meter => Some((&mut bench.meters, METER)),
        }
    }
}

pub(super) fn delete_meter(meter: u32) -> Message {
    Message::MeterMod(MeterMod { command: MeterCommand::Delete, flags: 0, meter, bands: Vec::new() })
}

pub(super) fn delete_group(group: u32) -> Message {
    let added = GroupMod::add(group, GroupType::All, Vec::new());
    Message::GroupMod(GroupMod { command: GroupCommand::Delete, ..added })
}

fn add_entry(number: u32) -> Message {
    let [_, a, b, c] = number.to_be_bytes();
    // A source address that no host has.
    let source = MacAddress([2, 0x54, 0x4b, a, b, c]);
    Message::FlowMod(FlowMod {
        cookie: COOKIE,
        priority: 1,
        hard_timeout: LIFETIME,
        matching: vec![Oxm::EthSrc(source.into())].into(),
        ..FlowMod::default()
    })
}

/// Returns the maximum number of meters that the switch reports; `None`: it reports none.
pub(super) fn most_meters(bench: &mut Bench<'_>) -> Result<Option<u32>, MeasureError> {
    Ok(match bench.session.request(RequestBody::MeterFeatures)? {
        Some(ReplyBody::MeterFeatures(features)) if features.max_meter > 0 => Some(features.max_meter),
        _ => None,
    })
}

/// Returns the capacity of each kind.
pub(super) fn capacities(bench: &mut Bench<'_>) -> Result<Capacities, MeasureError> {
    let reply = match bench.session.request(RequestBody::TableFeatures(Vec::new()))? {
        Some(ReplyBody::TableFeatures(tables)) => {
            tables.iter().find(|table| table.table == 0).map(|table| table.max_entries).filter(|entries| *entries > 0)
        }
        _ => None,
    };
    let flow_entries = match reply {
        Some(count) => Count { count, source: Source::Reported },
        None => fill(bench, Kind::Flow)?,
    };
    let reply = match bench.session.request(RequestBody::GroupFeatures)? {
        Some(ReplyBody::GroupFeatures(features)) => Some(features.max_groups_all).filter(|groups| *groups > 0),
        _ => None,
    };
    let groups = match reply {
        Some(count) => Count { count, source: Source::Reported },
        None => fill(bench, Kind::Group)?,
    };
    let meters = match most_meters(bench)? {
        Some(count) => Count { count, source: Source::Reported },
        None => fill(bench, Kind::Meter)?,
    };
    let capacities = Capacities { flow_entries, groups, meters };
    bench.report(&format!(
        "room for {} flow entries, {} groups, {} meters",
        capacities.flow_entries.count, capacities.groups.count, capacities.meters.count
    ));
    Ok(capacities)
}

/// Adds entries until the switch refuses one, or the cap is reached. An addition is recorded for
/// removal before it is sent; a refused one is not.
fn fill(bench: &mut Bench<'_>, kind: Kind) -> Result<Count, MeasureError> {
    let cap = bench.settings.table_cap;
    let mut count = 0;
    while count < cap {
        bench.check_stop()?;
        let part: Vec<u32> = (count..cap).take(MESSAGES_MAX).collect();
        if let Some((added, first)) = kind.added(bench) {
            added.extend(part.iter().map(|number| first + number));
        }
        let messages: Vec<Message> = part.iter().map(|number| kind.addition(*number)).collect();
        let refused: Vec<u32> = bench
            .session
            .execute(&messages)?
            .iter()
            .filter_map(|failure| failure.message)
            .map(|index| part[index])
            .collect();
        if let Some(least) = refused.iter().min() {
            if let Some((added, first)) = kind.added(bench) {
                added.retain(|number| !refused.contains(&number.wrapping_sub(first)));
            }
            return Ok(Count { count: *least, source: Source::Refused });
        }
        count += messages.len() as u32;
    }
    Ok(Count { count, source: Source::Cap })
}
