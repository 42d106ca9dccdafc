//! The longest latencies that a Takt participant has measured: a property of its announcement
//! (RTPS 2.5 §9.6.3, `PID_PROPERTY_LIST`).
//!
//! The value of [`LATENCY_PROPERTY`] has one entry for each endpoint, separated by spaces: eight
//! hexadecimal digits of its entity id, a colon, and nanoseconds. A reader reports the longest time
//! from the source timestamp of a sample until the sample could be read. A writer reports its
//! longest call of `write`. The OpenFlow controller shows the latency next to the bound. Malformed
//! entries are ignored.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::EntityId;
use crate::qos::Property;

/// Name of the property.
pub const LATENCY_PROPERTY: &str = "rt.latency";

/// Maximum number of endpoints in a report. The entries of further endpoints are ignored.
pub const LATENCIES_MAX: usize = 32;

/// Longest measured latency of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedLatency {
    /// Entity id of the endpoint.
    pub entity: EntityId,
    /// Latency in nanoseconds.
    pub worst_ns: u64,
}

impl ObservedLatency {
    /// Returns the latencies that a participant reports.
    pub fn all_of(properties: &Property) -> impl Iterator<Item = Self> {
        let text = properties.get(LATENCY_PROPERTY).unwrap_or_default();
        text.split(' ').take(LATENCIES_MAX).filter_map(|entry| {
            let (entity, worst_ns) = entry.split_once(':')?;
            let (entity, worst_ns) = (u32::from_str_radix(entity, 16), worst_ns.parse());
            Some(Self { entity: EntityId(entity.ok()?.to_be_bytes()), worst_ns: worst_ns.ok()? }) // tidy-allow(dropped-cause): a malformed entry is ignored.
        })
    }

    /// Sets the property to these latencies, replacing an older report.
    pub fn put(reports: &[Self], properties: &mut Property) {
        let entry = |report: &Self| format!("{:08x}:{}", u32::from_be_bytes(report.entity.0), report.worst_ns);
        let entries: Vec<String> = reports.iter().take(LATENCIES_MAX).map(entry).collect();
        properties.set(LATENCY_PROPERTY, entries.join(" "), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::PropertyEntry;

    fn read(text: &str) -> Vec<(u32, u64)> {
        let properties = Property::from_iter([PropertyEntry::propagated(LATENCY_PROPERTY, text)]);
        ObservedLatency::all_of(&properties).map(|it| (u32::from_be_bytes(it.entity.0), it.worst_ns)).collect()
    }

    #[test]
    fn report_round_trips_and_replaces_an_older_one() {
        let report = |worst_ns| [ObservedLatency { entity: EntityId([0, 0, 1, 0xc7]), worst_ns }];
        let mut properties = Property::from_iter([PropertyEntry::propagated("a", "b")]);
        ObservedLatency::put(&report(5), &mut properties);
        ObservedLatency::put(&report(u64::MAX), &mut properties);
        assert_eq!(properties.entries.len(), 2);
        assert_eq!(ObservedLatency::all_of(&properties).collect::<Vec<_>>(), report(u64::MAX));
    }

    #[test]
    fn malformed_entries_are_ignored_and_their_number_is_bounded() {
        assert_eq!(read("000001c7:9 x:1 00000204: 1ffffffff:2 :  00000204:7"), [(0x1c7, 9), (0x204, 7)]);
        assert_eq!(read(&"1:1 ".repeat(1000)).len(), LATENCIES_MAX);
        assert_eq!(read(""), []);
    }
}
