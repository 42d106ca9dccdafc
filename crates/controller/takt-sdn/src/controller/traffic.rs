//! Traffic measurement: counters of ports, queues and meters that the controller reads from its
//! switches (OF 1.3.5 §7.3.5).
//!
//! Switches are read one after the other: each once in
//! [`Config::poll_cycle`](super::Config::poll_cycle), at least [`INTERVAL_MIN_NS`] apart. A switch
//! that has not answered is skipped. A rate is that of the last interval. Octets are those that the
//! switch counts: for Open vSwitch, frames without FCS.
//!
//! The meter of an admitted flow drops the excess over the contracts of its writers. An episode of
//! drops is reported once; it ends after [`QUIET_READINGS`] readings without drops. A meter does
//! not distinguish which of several writers of a flow violated its contract.

use std::collections::BTreeMap;

use takt_openflow::channel::Instant;
use takt_openflow::meter::MeterStats;
use takt_openflow::port::PortStats;
use takt_openflow::queue::QueueStats;

use super::session::Polled;
use super::{ClusterRole, ConnectionId, Controller, Event};
use crate::PortRef;
use crate::discovery::Pair;
use crate::rules::Selector;
use crate::view;

/// Minimum time between the requests to two switches.
const INTERVAL_MIN_NS: u64 = 10_000_000;
/// Number of readings without drops that ends an episode.
const QUIET_READINGS: u32 = 3;
/// FCS, preamble and interframe gap of a frame in octets, which switches do not count.
const FRAME_OVERHEAD: u64 = 24;

/// Counters in one direction; `None` for those that the switch does not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    frames: Option<u64>,
    octets: Option<u64>,
    dropped: Option<u64>,
}

/// Returns the value of a counter; a switch sets a counter that it does not keep to all ones.
fn counted(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

impl Reading {
    fn new(frames: u64, octets: u64, dropped: u64) -> Self {
        Self { frames: counted(frames), octets: counted(octets), dropped: counted(dropped) }
    }

    fn of_meter(stats: &MeterStats) -> Self {
        let dropped = stats.bands.iter().map(|band| band.packet_count).fold(0, u64::saturating_add);
        Self::new(stats.packet_in_count, stats.byte_in_count, dropped)
    }

    fn zip(self, other: Self, f: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        Self {
            frames: f(self.frames, other.frames),
            octets: f(self.octets, other.octets),
            dropped: f(self.dropped, other.dropped),
        }
    }

    /// Returns the difference to `before`. A counter with a lower value than before has restarted.
    fn since(self, before: Self) -> Self {
        self.zip(before, |now, before| {
            let (now, before) = (now?, before.unwrap_or(0));
            Some(now.checked_sub(before).unwrap_or(now))
        })
    }
}

/// History of a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    total: Reading,
    last: Option<(Instant, Reading)>,
    /// Duration in ns of the last interval between two readings, and the increase during it.
    interval: Option<(u64, Reading)>,
}

impl Track {
    /// Starts at `reading`, whose counts precede the admission of the flow.
    fn from(now: Instant, reading: Reading) -> Self {
        Self { last: Some((now, reading)), ..Self::default() }
    }

    /// Adds a reading and returns the increase since the previous one.
    fn read(&mut self, now: Instant, reading: Reading) -> Reading {
        let (since, before) = self.last.replace((now, reading)).unzip();
        let added = reading.since(before.unwrap_or_default());
        self.total = self.total.zip(added, sum);
        let length_ns = since.map(|since: Instant| now.0.saturating_sub(since.0)).filter(|ns| *ns > 0);
        self.interval = length_ns.map(|ns| (ns, added));
        added
    }

    /// Returns the rate in bit/s, with `more` octets added for each frame.
    fn rate_bps(&self, more: u64) -> Option<u64> {
        let (ns, Reading { frames, octets, .. }) = self.interval?;
        let octets = u128::from(octets?) + u128::from(more) * u128::from(frames.unwrap_or(0));
        u64::try_from(octets * 8 * 1_000_000_000 / u128::from(ns)).ok() // tidy-allow(dropped-cause): no port reaches that rate.
    }

    fn view(&self) -> view::Traffic {
        let Reading { frames, octets, dropped } = self.total;
        view::Traffic { frames, octets, dropped, rate_bps: self.rate_bps(0) }
    }
}

/// Meter of an admitted flow.
#[derive(Debug)]
struct Metered {
    /// Switch and meter number.
    at: (u64, u32),
    track: Track,
    /// Number of consecutive readings without drops during an episode; `None` outside one.
    quiet: Option<u32>,
}

/// Counters read from all switches.
#[derive(Debug, Default)]
pub(super) struct Polling {
    due: Instant,
    /// The switch that was read last.
    last: u64,
    /// Sent and received traffic.
    ports: BTreeMap<PortRef, [Track; 2]>,
    queues: BTreeMap<(PortRef, u32), Track>,
    flows: BTreeMap<Selector, Metered>,
}

impl Controller {
    /// Returns the time at which the next switch is read.
    pub(super) fn poll_due(&self) -> Option<Instant> {
        let is_off = self.config.poll_cycle.is_none() || matches!(self.cluster_role, ClusterRole::Standby { .. });
        (!is_off && !self.sessions.is_empty()).then_some(self.polling.due)
    }

    /// Requests the counters of the next switch when they are due.
    pub(super) fn poll_switches(&mut self, now: Instant) {
        let Some(cycle) = self.config.poll_cycle.filter(|_| self.poll_due().is_some_and(|due| now >= due)) else {
            return;
        };
        let connected = self.switches.iter().filter_map(|(dpid, switch)| Some((*dpid, switch.connection?)));
        let connected: BTreeMap<u64, ConnectionId> = connected.collect();
        let cycle_ns = u64::try_from(cycle.as_nanos()).unwrap_or(u64::MAX);
        let interval_ns = (cycle_ns / connected.len().max(1) as u64).max(INTERVAL_MIN_NS);
        self.polling.due = Instant(now.0.saturating_add(interval_ns));
        let next = connected.range(self.polling.last.saturating_add(1)..).next().or(connected.first_key_value());
        let Some((dpid, id)) = next.map(|(dpid, id)| (*dpid, *id)) else { return };
        self.polling.last = dpid;
        let has_queues = self.admission.is_some();
        let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.is_behind) else { return };
        match session.poll(now, has_queues) {
            Ok(true) => self.counters.polls += 1,
            Ok(false) => self.counters.polls_left_out += 1,
            Err(_) => self.counters.unsent += 1,
        }
    }

    /// Handles the counters of a switch.
    pub(super) fn handle_polled(&mut self, now: Instant, dpid: u64, polled: Polled) {
        match polled {
            Polled::Ports(ports) => self.read_ports(now, dpid, &ports),
            Polled::Queues(queues) => self.read_queues(now, dpid, &queues),
            Polled::Meters(meters) => {
                self.read_meters(now, dpid, &meters);
                self.update_overloads(dpid, &meters);
            }
            Polled::Failed => self.counters.polls_failed += 1,
        }
    }

    fn read_ports(&mut self, now: Instant, dpid: u64, stats: &[PortStats]) {
        let known: Vec<u32> = self.topology.ports(dpid).map(|(port, _)| port.number).collect();
        let is_known = |at: &PortRef| at.dpid != dpid || known.contains(&at.port);
        self.polling.ports.retain(|at, _| is_known(at));
        for PortStats { port, counters, .. } in stats {
            let at = PortRef::new(dpid, port.0);
            if !known.contains(&at.port) {
                continue;
            }
            let [sent, received] = self.polling.ports.entry(at).or_default();
            sent.read(now, Reading::new(counters.tx_packets, counters.tx_bytes, counters.tx_dropped));
            received.read(now, Reading::new(counters.rx_packets, counters.rx_bytes, counters.rx_dropped));
        }
    }

    /// Reads the counters of queues in the model of the switch; others are not shown.
    fn read_queues(&mut self, now: Instant, dpid: u64, stats: &[QueueStats]) {
        let Some(admission) = &self.admission else { return };
        let snapshot = admission.snapshot();
        let queues = snapshot.switch(dpid).into_iter().flat_map(|model| &model.queues);
        let numbers: Vec<u32> = queues.filter_map(|queue| queue.selection.set_queue).collect();
        let known: Vec<u32> = self.topology.ports(dpid).map(|(port, _)| port.number).collect();
        let is_known =
            |at: &PortRef, queue: &u32| at.dpid != dpid || known.contains(&at.port) && numbers.contains(queue);
        self.polling.queues.retain(|(at, queue), _| is_known(at, queue));
        for QueueStats { port, queue, tx_bytes, tx_packets, tx_errors, .. } in stats {
            let at = PortRef::new(dpid, port.0);
            if is_known(&at, queue) {
                let track = self.polling.queues.entry((at, *queue)).or_default();
                track.read(now, Reading::new(*tx_packets, *tx_bytes, *tx_errors));
            }
        }
    }

    fn read_meters(&mut self, now: Instant, dpid: u64, stats: &[MeterStats]) {
        let Some(admission) = &self.admission else { return };
        let metered: BTreeMap<u32, Selector> = admission.metered(dpid).collect();
        let flows = &mut self.polling.flows;
        flows.retain(|selector, _| admission.has_flow(selector));
        let mut broken = Vec::new();
        for stats in stats {
            let Some(selector) = metered.get(&stats.meter) else { continue };
            let (at, reading) = ((dpid, stats.meter), Reading::of_meter(stats));
            let uptime_s = now.0 / 1_000_000_000;
            // A meter that is older than this controller has counts of an earlier run.
            let is_kept = u64::from(stats.duration_sec) > uptime_s;
            let begin = || if is_kept { Track::from(now, reading) } else { Track::default() };
            let flow = flows.entry(*selector).or_insert_with(|| Metered { at, track: begin(), quiet: None });
            if flow.at != at {
                // The flow has a new first switch or meter.
                flow.at = at;
                flow.track = Track { total: flow.track.total, ..Track::default() };
            }
            let added = flow.track.read(now, reading);
            if let Some(dropped) = added.dropped.filter(|dropped| *dropped > 0) {
                if flow.quiet.replace(0).is_none() {
                    broken.push((*selector, dropped, added.frames.unwrap_or(dropped)));
                }
            } else {
                flow.quiet = flow.quiet.map(|quiet| quiet + 1).filter(|quiet| *quiet < QUIET_READINGS);
            }
        }
        for (selector, dropped, frames) in broken {
            let Some(admission) = &self.admission else { return };
            let (flow, pairs) = (admission.flow_name(&selector), admission.sharers(&selector).collect());
            self.counters.contracts_broken += 1;
            self.push(Event::ContractBroken { flow, pairs, dropped, frames });
        }
    }

    /// Returns the traffic that a connected switch sends and receives at a port.
    pub(super) fn port_traffic(&self, at: PortRef, rate_bps: Option<u64>) -> Option<view::PortTraffic> {
        let [sent, received] = self.polling.ports.get(&at).filter(|_| self.is_connected(at.dpid))?;
        let on_wire = sent.rate_bps(FRAME_OVERHEAD).zip(rate_bps.filter(|rate_bps| *rate_bps > 0));
        let share = on_wire.map(|(bps, rate_bps)| u128::from(bps) * 1_000_000 / u128::from(rate_bps));
        let sent_ppm = share.and_then(|ppm| u64::try_from(ppm).ok()); // tidy-allow(dropped-cause): no port reaches that rate.
        Some(view::PortTraffic { sent: sent.view(), received: received.view(), sent_ppm })
    }

    /// Returns the traffic that a connected switch sends from a queue.
    pub(super) fn queue_traffic(&self, at: PortRef, queue: u32) -> Option<view::Traffic> {
        self.polling.queues.get(&(at, queue)).filter(|_| self.is_connected(at.dpid)).map(Track::view)
    }

    fn is_connected(&self, dpid: u64) -> bool {
        self.switches.get(&dpid).is_some_and(|switch| switch.connection.is_some())
    }

    /// Returns the traffic that passed the meters of an admitted pair.
    pub(super) fn flow_traffic(&self, pair: Pair) -> Option<view::FlowTraffic> {
        let admission = self.admission.as_ref()?;
        let selectors = admission.selectors(pair);
        let source = selectors.first()?.source;
        let sharers = selectors.iter().map(|selector| admission.sharers(selector).count()).max().unwrap_or(0);
        let (mut samples, mut answers, mut breaks_contract) = (None, None, false);
        for selector in selectors {
            let Some(flow) = self.polling.flows.get(selector) else { continue };
            let is_of_samples = selector.source == source;
            breaks_contract |= is_of_samples && flow.quiet.is_some();
            let all: &mut Option<view::Traffic> = if is_of_samples { &mut samples } else { &mut answers };
            let own = flow.track.view();
            *all = Some(all.map_or(own, |all| view::Traffic {
                frames: sum(all.frames, own.frames),
                octets: sum(all.octets, own.octets),
                dropped: sum(all.dropped, own.dropped),
                rate_bps: sum(all.rate_bps, own.rate_bps),
            }));
        }
        Some(view::FlowTraffic { samples: samples?, answers, sharers, breaks_contract })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn rate_is_that_of_the_last_interval() {
        let mut track = Track::default();
        track.read(Instant(0), Reading::new(10, 1_000, 0));
        assert_eq!(track.rate_bps(0), None, "one reading has no interval");
        track.read(Instant(2 * SECOND), Reading::new(110, 101_000, 0));
        assert_eq!((track.rate_bps(0), track.rate_bps(FRAME_OVERHEAD)), (Some(400_000), Some(409_600)));
        track.read(Instant(4 * SECOND), Reading::new(110, 101_000, 0));
        assert_eq!(track.rate_bps(0), Some(0));
        assert_eq!(track.view().frames, Some(110));
    }

    #[test]
    fn restarted_counter_loses_no_counts() {
        let mut track = Track::default();
        track.read(Instant(0), Reading::new(10, 1_000, 2));
        let added = track.read(Instant(SECOND), Reading::new(4, 400, 1));
        assert_eq!(added, Reading::new(4, 400, 1));
        assert_eq!(track.total, Reading::new(14, 1_400, 3));
    }

    #[test]
    fn counts_of_an_earlier_run_are_excluded() {
        let mut track = Track::from(Instant(0), Reading::new(100, 10_000, 7));
        assert_eq!(track.read(Instant(SECOND), Reading::new(101, 10_100, 7)), Reading::new(1, 100, 0));
        assert_eq!(track.total, Reading::new(1, 100, 0));
    }

    #[test]
    fn counters_missing_in_a_switch_are_none() {
        let mut track = Track::default();
        track.read(Instant(0), Reading::new(5, u64::MAX, u64::MAX));
        track.read(Instant(SECOND), Reading::new(6, u64::MAX, u64::MAX));
        let expected = view::Traffic { frames: Some(6), octets: None, dropped: None, rate_bps: None };
        assert_eq!(track.view(), expected);
    }
}
