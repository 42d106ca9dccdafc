//! Limits of the packets that hosts receive without admission: ports with limits, the controller's
//! share, and the drops of meters.
//!
//! The meters of hosts with limits are read with all others ([`traffic`](super::traffic)). Meters
//! limit even if their switch does not answer.

use std::collections::{BTreeMap, BTreeSet};

use takt_openflow::channel::Instant;
use takt_openflow::meter::MeterStats;

use super::{Config, Controller, Event};
use crate::PortRef;
use crate::forwarding::rules::{TABLES, meter};
use crate::model::HostLimit;
use crate::topology::Role;

fn has_limits(config: &Config) -> bool {
    config.network.as_ref().is_some_and(|network| network.has_host_limits())
}

/// Drops of the host meters of a switch.
#[derive(Debug, Default)]
pub(super) struct Overloads {
    /// Packets that each meter has dropped since the start of the controller.
    dropped: BTreeMap<u32, u64>,
    /// Counts of the previous reading.
    read: BTreeMap<u32, u64>,
    /// Meters that dropped packets between the last two readings.
    active: BTreeSet<u32>,
}

impl Overloads {
    /// Returns the number of packets that a meter has dropped since the start of the controller.
    pub(super) fn dropped(&self, meter: u32) -> u64 {
        self.dropped.get(&meter).copied().unwrap_or_default()
    }

    /// Counts a reading of a meter. Returns the drops since the previous reading, and whether drops
    /// have just begun.
    fn count(&mut self, now: Instant, stats: &MeterStats) -> (u64, bool) {
        let count = stats.bands.iter().map(|band| band.packet_count).fold(0, u64::saturating_add);
        let is_of_earlier_run = u64::from(stats.duration_sec) > now.0 / 1_000_000_000;
        let start = if is_of_earlier_run { count } else { 0 };
        let before = self.read.insert(stats.meter, count).unwrap_or(start);
        // A meter with a lower count than before was created again.
        let more = count.checked_sub(before).unwrap_or(count);
        let dropped = self.dropped.entry(stats.meter).or_default();
        *dropped = dropped.saturating_add(more);
        if more == 0 {
            self.active.remove(&stats.meter);
            return (0, false);
        }
        (more, self.active.insert(stats.meter))
    }
}

impl Controller {
    /// Returns the number of tables that a switch needs.
    pub(super) fn tables(&self) -> u8 {
        TABLES + u8::from(has_limits(&self.config))
    }

    /// Returns the limits of hosts at the ports of a switch.
    pub(super) fn host_limits(&self, dpid: u64) -> BTreeMap<u32, HostLimit> {
        let Some(network) = &self.config.network else { return BTreeMap::new() };
        let ports = self.topology.ports(dpid).map(|(port, _)| port.number);
        ports.filter_map(|port| Some((port, network.host_limit(PortRef::new(dpid, port))?))).collect()
    }

    /// Returns the limit of the hosts at a port, if it leads to hosts.
    fn host_limit(&self, at: PortRef) -> Option<HostLimit> {
        let limit = self.config.network.as_ref()?.host_limit(at)?;
        (self.topology.role(at) == Role::Edge).then_some(limit)
    }

    /// Reports whether the controller may send a frame out of a port in the lowest class now. A
    /// frame beyond the share of the port is counted and must be dropped.
    pub(super) fn has_share(&mut self, at: PortRef) -> bool {
        let Some(limit) = self.host_limit(at) else { return true };
        let is_within = self.rate_limiters.take_of_host(self.now, at, limit.of_controller());
        self.counters.host_excess_of_controller += u64::from(!is_within);
        is_within
    }

    /// Handles the drop counts of the meters of a switch.
    pub(super) fn update_overloads(&mut self, dpid: u64, meters: &[MeterStats]) {
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let ports: BTreeMap<u32, u32> = switch.limits.keys().map(|port| (meter::of_hosts(*port), *port)).collect();
        let (mut events, mut total) = (Vec::new(), 0_u64);
        for stats in meters {
            let port = ports.get(&stats.meter).copied();
            if port.is_none() && stats.meter != meter::GROUPS {
                continue;
            }
            let (dropped, is_new) = switch.overloads.count(self.now, stats);
            total = total.saturating_add(dropped);
            if is_new {
                events.push(Event::HostOverload { dpid, port, dropped });
            }
        }
        self.counters.host_excess = self.counters.host_excess.saturating_add(total);
        events.into_iter().for_each(|event| self.push(event));
    }
}

#[cfg(test)]
mod tests {
    use takt_openflow::meter::BandCounter;

    use super::*;

    fn stats(duration_sec: u32, packet_count: u64) -> MeterStats {
        let bands = vec![BandCounter { packet_count, byte_count: 0 }];
        MeterStats {
            meter: 7,
            ref_count: 1,
            packet_in_count: 0,
            byte_in_count: 0,
            duration_sec,
            duration_nsec: 0,
            bands,
        }
    }

    #[test]
    fn drops_are_counted_since_the_start_and_reported_when_they_begin() {
        let mut overloads = Overloads::default();
        let mut count = |second: u64, stats| overloads.count(Instant(second * 1_000_000_000), &stats);
        assert_eq!(count(10, stats(9, 5)), (5, true), "the meter was made by this run");
        assert_eq!(count(15, stats(14, 9)), (4, false));
        assert_eq!(count(20, stats(19, 9)), (0, false));
        assert_eq!(count(25, stats(24, 10)), (1, true), "drops began again");
        assert_eq!(count(30, stats(1, 2)), (2, false), "the switch made the meter again");
        assert_eq!(overloads.dropped(7), 12);
        let mut restarted = Overloads::default();
        assert_eq!(restarted.count(Instant(5_000_000_000), &stats(3600, 1_000)), (0, false), "drops of an earlier run");
    }
}
