//! Cost of mutual discovery of many participants: octets, datagrams and time until discovery is
//! complete, and afterwards.
//!
//! Every participant has as many writers as readers. Their topics rotate, so that each topic has
//! writers and readers of many participants. The participants start one millisecond apart, on
//! separate hosts, on one switch of 1 Gbit/s. Discovery is complete when each participant knows all
//! participants and all their endpoints, and all compatible endpoints are matched. The traffic
//! grows with the number of ordered pairs of participants, so that the results are divided by it.

use std::cell::Cell;
use std::rc::Rc;

use crate::check::Violation;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::network::Frame;
use crate::process::{Endpoint, Process};
use crate::scenario::{Role, Scenario};
use crate::timeline::Timeline;
use crate::world;

/// Interval between two checks for completion.
const CHECK_PERIOD: Nanos = 10 * MILLISECOND;

/// Duration of the measurement of announcements alone.
const QUIET: Nanos = 5 * SECOND;

/// Maximum time until discovery is complete.
const TIMEOUT: Nanos = 120 * SECOND;

/// Parameters of a discovery measurement.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryRun {
    /// Number of participants, each on a separate host.
    pub participants: usize,
    /// Number of endpoints of each participant; half of them are writers.
    pub endpoints: usize,
    /// Number of topics, which all participants share.
    pub topics: usize,
}

/// Network traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams sent by participants, counted once per destination.
    pub sent: u64,
    /// Octets sent, without UDP and IP headers.
    pub sent_octets: u64,
    /// Datagrams received by participants.
    pub received: u64,
    /// Octets received, without UDP and IP headers.
    pub received_octets: u64,
}

impl Traffic {
    fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            sent_octets: self.sent_octets - before.sent_octets,
            received: self.received - before.received,
            received_octets: self.received_octets - before.received_octets,
        }
    }
}

/// Result of a discovery measurement.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Time from the last start to the completion of discovery.
    pub time: Nanos,
    /// Traffic until completion.
    pub discovery_traffic: Traffic,
    /// Traffic per second after completion, which consists of announcements.
    pub quiet_per_second: Traffic,
    /// Number of matches of a writer with a reader.
    pub matches: usize,
    /// Submessages that all participants have sent until completion.
    pub submessages: Submessages,
}

/// Submessages by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submessages {
    /// `DATA` of the reliable protocol.
    pub data: u64,
    /// Retransmitted `DATA` among them.
    pub repairs: u64,
    /// `HEARTBEAT`s.
    pub heartbeats: u64,
    /// `ACKNACK`s.
    pub acknacks: u64,
}

impl Submessages {
    fn of(processes: &[Process]) -> Self {
        let counters = processes.iter().filter_map(|process| process.core.as_ref()).map(|core| core.counters());
        counters.fold(Self::default(), |sum, one| Self {
            data: sum.data + one.data_sent,
            repairs: sum.repairs + one.repairs_sent,
            heartbeats: sum.heartbeats + one.heartbeats_sent,
            acknacks: sum.acknacks + one.acknacks_sent,
        })
    }
}

/// Traffic counter.
#[derive(Default)]
struct Meter(Rc<Cell<Traffic>>);

impl Meter {
    fn change(&self, change: impl FnOnce(&mut Traffic)) {
        let mut traffic = self.0.get();
        change(&mut traffic);
        self.0.set(traffic);
    }
}

impl Timeline for Meter {
    fn sent(&mut self, _: Nanos, _: usize, frame: &Frame) {
        self.change(|traffic| {
            traffic.sent += 1;
            traffic.sent_octets += frame.bytes.len() as u64;
        });
    }

    fn received(&mut self, _: Nanos, _: usize, frame: &Frame) {
        self.change(|traffic| {
            traffic.received += 1;
            traffic.received_octets += frame.bytes.len() as u64;
        });
    }
}

/// Runs a discovery measurement. `None` if discovery is not complete within 120 s.
pub fn measure(run: &DiscoveryRun) -> Result<Option<Outcome>, Violation> {
    let scenario = Scenario::discovery_run(run);
    let last_start = scenario.processes.iter().map(|process| process.start).max().unwrap_or(0);
    let (readers_of, matches) = expected(&scenario);
    let meter = Meter::default();
    let traffic = Rc::clone(&meter.0);
    let mut found: Option<(Nanos, Traffic, Submessages)> = None;
    let mut outcome = None;
    let done = |now: Nanos, processes: &mut [Process]| {
        match found {
            None if is_complete(run, &scenario, &readers_of, processes) => {
                found = Some((now, traffic.get(), Submessages::of(processes)));
            }
            Some((at, finding, submessages)) if now >= at + QUIET => {
                let quiet = traffic.get().since(finding);
                let seconds = (now - at) / SECOND;
                let quiet_per_second = Traffic {
                    sent: quiet.sent / seconds,
                    sent_octets: quiet.sent_octets / seconds,
                    received: quiet.received / seconds,
                    received_octets: quiet.received_octets / seconds,
                };
                let time = at.saturating_sub(last_start);
                outcome = Some(Outcome { time, discovery_traffic: finding, quiet_per_second, matches, submessages });
            }
            _ => {}
        }
        outcome.is_some()
    };
    let mut meter = meter;
    world::run_until(&scenario, &mut meter, CHECK_PERIOD, done)?;
    Ok(outcome)
}

/// Returns the number of readers per topic, and the number of expected matches.
fn expected(scenario: &Scenario) -> (Vec<usize>, usize) {
    let (mut readers, mut writers) = (vec![0; scenario.topics.len()], vec![0; scenario.topics.len()]);
    for endpoint in scenario.processes.iter().flat_map(|process| &process.endpoints) {
        match endpoint.role {
            Role::Writer { .. } => writers[endpoint.topic] += 1,
            Role::Reader { .. } => readers[endpoint.topic] += 1,
        }
    }
    let matches = readers.iter().zip(&writers).map(|(readers, writers)| readers * writers).sum();
    (readers, matches)
}

/// Reports whether all participants know each other, and all compatible endpoints are matched.
fn is_complete(run: &DiscoveryRun, scenario: &Scenario, readers_of: &[usize], processes: &mut [Process]) -> bool {
    let others = run.participants - 1;
    processes.iter_mut().all(|process| {
        let plans = &scenario.processes[process.index].endpoints;
        let Some(core) = &mut process.core else { return false };
        let kept = core.remote_state_size();
        kept.participants == others
            && kept.on_probation == 0
            && kept.endpoints == others * run.endpoints
            && process.endpoints.iter().zip(plans).all(|(endpoint, plan)| match endpoint {
                Some(Endpoint::Writer { handle, .. }) => {
                    core.matched_subscriptions(*handle).is_ok_and(|all| all.len() == readers_of[plan.topic])
                }
                Some(Endpoint::Reader { .. }) => true,
                None => false,
            })
    })
}

impl Scenario {
    /// Returns a world without faults and without writes.
    fn discovery_run(run: &DiscoveryRun) -> Self {
        let mut scenario = Self::steady(run.participants, TIMEOUT);
        scenario.topics = vec![scenario.topics[0].clone(); run.topics];
        for (index, process) in scenario.processes.iter_mut().enumerate() {
            let [writer, reader] = [process.endpoints[0].clone(), process.endpoints[1].clone()];
            process.endpoints = (0..run.endpoints)
                .map(|at| {
                    let (half, is_writer) = (at / 2, at % 2 == 0);
                    let mut endpoint = if is_writer { writer.clone() } else { reader.clone() };
                    // A participant's readers use topics of adjacent participants.
                    endpoint.topic = (index + half + usize::from(!is_writer)) % run.topics;
                    if let Role::Writer { samples, .. } = &mut endpoint.role {
                        *samples = 0;
                    }
                    endpoint
                })
                .collect();
        }
        scenario
    }
}
