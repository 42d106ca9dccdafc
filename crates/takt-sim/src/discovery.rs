//! What it costs that many participants find each other: octets, datagrams and time, until everybody knows everybody, and
//! afterwards.
//!
//! Every participant has as many writers as readers, of topics that go round, so that each topic has writers and readers of
//! many participants. They start a millisecond apart, on hosts of their own, on one switch of 1 Gbit/s. It is over when each
//! knows all participants and all their endpoints, and all that fit are matched. What the protocol has to say grows with the
//! ordered pairs of participants, so that is what the figures are divided by.

use std::cell::Cell;
use std::rc::Rc;

use crate::check::Violation;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::network::Frame;
use crate::process::{Endpoint, Process};
use crate::scenario::{Role, Scenario};
use crate::timeline::Timeline;
use crate::world;

/// How often it is looked whether all is found.
const LOOK_PERIOD: Nanos = 10 * MILLISECOND;

/// How long announcements alone are measured.
const QUIET: Nanos = 5 * SECOND;

/// Longest time that is waited for all to find each other.
const PATIENCE: Nanos = 120 * SECOND;

/// Who meets.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    /// Participants, each on a host of its own.
    pub participants: usize,
    /// Endpoints of each, half of them writers.
    pub endpoints: usize,
    /// Topics that all share.
    pub topics: usize,
}

/// What went over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams that left a participant, one for each destination.
    pub sent: u64,
    /// Their octets, headers of UDP and IP left out.
    pub sent_octets: u64,
    /// Datagrams that arrived at a participant.
    pub received: u64,
    /// Their octets.
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

/// How a meeting went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// From the last start until all was found.
    pub time: Nanos,
    /// Until then.
    pub finding: Traffic,
    /// Per second afterwards, announcements and nothing else.
    pub quiet_per_second: Traffic,
    /// Matches of a writer with a reader.
    pub matches: usize,
    /// What all participants have sent until then.
    pub submessages: Submessages,
}

/// Submessages by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submessages {
    /// `DATA` of the reliable protocol.
    pub data: u64,
    /// Of these, those that were asked for.
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

/// Counts what passes.
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

/// Lets them meet. `None` if they have not all found each other in 120 s.
pub fn meet(meeting: &Meeting) -> Result<Option<Outcome>, Violation> {
    let scenario = Scenario::meeting(meeting);
    let last_start = scenario.processes.iter().map(|process| process.start).max().unwrap_or(0);
    let (readers_of, matches) = expected(&scenario);
    let meter = Meter::default();
    let traffic = Rc::clone(&meter.0);
    let mut found: Option<(Nanos, Traffic, Submessages)> = None;
    let mut outcome = None;
    let done = |now: Nanos, processes: &mut [Process]| {
        match found {
            None if is_complete(meeting, &scenario, &readers_of, processes) => {
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
                outcome = Some(Outcome { time, finding, quiet_per_second, matches, submessages });
            }
            _ => {}
        }
        outcome.is_some()
    };
    let mut meter = meter;
    world::run_until(&scenario, &mut meter, LOOK_PERIOD, done)?;
    Ok(outcome)
}

/// Per topic how many readers there are, and how many matches there will be.
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

/// Whether everybody knows everybody, and all that fit are matched.
fn is_complete(meeting: &Meeting, scenario: &Scenario, readers_of: &[usize], processes: &mut [Process]) -> bool {
    let others = meeting.participants - 1;
    processes.iter_mut().all(|process| {
        let plans = &scenario.processes[process.index].endpoints;
        let Some(core) = &mut process.core else { return false };
        let kept = core.kept();
        kept.participants == others
            && kept.on_probation == 0
            && kept.endpoints == others * meeting.endpoints
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
    /// A calm world in which nobody writes.
    fn meeting(meeting: &Meeting) -> Self {
        let mut scenario = Self::steady(meeting.participants, PATIENCE);
        scenario.topics = vec![scenario.topics[0].clone(); meeting.topics];
        for (index, process) in scenario.processes.iter_mut().enumerate() {
            let [writer, reader] = [process.endpoints[0].clone(), process.endpoints[1].clone()];
            process.endpoints = (0..meeting.endpoints)
                .map(|at| {
                    let (half, is_writer) = (at / 2, at % 2 == 0);
                    let mut endpoint = if is_writer { writer.clone() } else { reader.clone() };
                    // A participant's readers are of its neighbours' topics.
                    endpoint.topic = (index + half + usize::from(!is_writer)) % meeting.topics;
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
