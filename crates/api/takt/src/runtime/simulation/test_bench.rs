//! Test bench: real participants on an executor without a thread, a peer that writes to them, and
//! the measurement of responses.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use takt_core::Priority;
use takt_derive::DdsType;
use takt_schedule::{JobClass, JobKind};
use takt_testkit::Random;
use takt_wire::qos::{History, Property, PropertyEntry, Reliability, ReliabilityKind};

use super::network::Network;
use super::system::{Kind, Plan, PlannedCalls, PlannedFlow};
use super::{Calls, NormalWait, Releaser, SimulationGuard, WORLD, cost, jobs_between, key_of, now_ns, take_time};
use crate::executor::Job;
use crate::qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicQos};
use crate::runtime::drive::Driving;
use crate::{
    DataReader, DataReaderListener, DataWriter, DomainParticipant, Duration, Executor, PRIORITY_PROPERTY, Runtime,
};

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", name = "Sample")]
pub(super) struct Sample {
    flow: u32,
    arrived_ns: u64,
    bulk: Vec<u8>,
}

/// Longest response of a flow, and the jobs that ran during it.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    pub(super) ns: u64,
    pub(super) jobs: String,
}

/// Longest response of each flow, and the bound above which the jobs are recorded.
type Longest = Arc<Mutex<Vec<(Response, u64)>>>;

/// Records that an event of a flow is completed.
fn note(longest: &Longest, flow: usize, arrived_ns: u64) {
    WORLD.with_borrow_mut(|world| world.done.push((flow, arrived_ns, now_ns())));
    let mut longest = longest.lock().expect("no panic");
    let Some((longest, bound_ns)) = longest.get_mut(flow) else { return };
    let ns = now_ns() - arrived_ns;
    if ns > longest.ns {
        let jobs = if ns > *bound_ns { jobs_between(arrived_ns, now_ns()) } else { String::new() };
        *longest = Response { ns, jobs };
    }
}

/// Arrival pattern of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalPattern {
    /// All events arrive just after this job has begun, then as densely as permitted. All execution
    /// times are maximal.
    Critical(Releaser),
    /// Random within the permitted limits.
    Random,
}

pub(super) struct TestBench {
    plan: Plan,
    pub(super) network: Network,
    executor: Executor,
    driving: Driving,
    pub(super) participants: Vec<DomainParticipant>,
    pub(super) peer: DomainParticipant,
    writers: Vec<Option<DataWriter<Sample>>>,
    readers: Vec<DataReader<Sample>>,
    /// Reader of normal priority without a listener.
    pub(super) polled: DataReader<Sample>,
    normal: Vec<DataWriter<Sample>>,
    longest: Longest,
    jobs: Vec<Job>,
    /// Dropped last, since everything else needs the world until its end.
    _guard: SimulationGuard,
}

struct Answering {
    /// Flow of the sample; `None` for normal load.
    flow: Option<usize>,
    priority: Priority,
    cost_ns: u64,
    longest: Longest,
}

impl DataReaderListener<Sample> for Answering {
    fn on_data_available(&mut self, reader: &DataReader<Sample>) {
        if let Some(flow) = self.flow {
            super::release(Releaser::Flow(flow));
        }
        take_time("callback", self.priority, cost(self.cost_ns));
        for sample in reader.take(usize::MAX).expect("open") {
            let Some(sample) = sample.data else { continue };
            note(&self.longest, sample.flow as usize, sample.arrived_ns);
        }
    }
}

fn best_effort() -> Reliability {
    Reliability { kind: ReliabilityKind::BestEffort, ..Reliability::RELIABLE }
}

fn writer(participant: &DomainParticipant, topic: &str) -> DataWriter<Sample> {
    let topic = participant.create_topic::<Sample>(topic, TopicQos::default()).expect("topic");
    let qos = DataWriterQos { reliability: best_effort(), history: History::KeepLast(1), ..DataWriterQos::default() };
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    publisher.create_datawriter(&topic, qos).expect("writer")
}

fn reader(participant: &DomainParticipant, topic: &str, priority: i32) -> DataReader<Sample> {
    let topic = participant.create_topic::<Sample>(topic, TopicQos::default()).expect("topic");
    let property = Property::from_iter([PropertyEntry::local(PRIORITY_PROPERTY, priority.to_string())]);
    let history = History::KeepLast(1000);
    let qos = DataReaderQos { reliability: best_effort(), history, property, ..DataReaderQos::default() };
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    subscriber.create_datareader(&topic, qos).expect("reader")
}

impl TestBench {
    /// Creates all entities and matches the participants. Jobs take no time meanwhile.
    pub(super) fn new(plan: Plan) -> Self {
        let here = SimulationGuard::new();
        let network = Network::default();
        let executor = Executor::without_thread("simulated").expect("a waker");
        let build = || {
            let builder = DomainParticipant::builder(0).transport(network.join()).shared_memory(plan.by_memory);
            builder.lease_duration(std::time::Duration::from_secs(10_000))
        };
        let participants: Vec<_> =
            (0..plan.participants).map(|_| build().executor(&executor).build().expect("participant")).collect();
        let peer = build().runtime(Runtime::Inline).build().expect("participant");
        let longest = Longest::new(Mutex::new(vec![Default::default(); plan.flows.len()]));
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for (at, flow) in plan.flows.iter().enumerate() {
            let Kind::Topic { participant, .. } = flow.kind else {
                writers.push(None);
                continue;
            };
            let topic = format!("flow {at}");
            writers.push(Some(writer(&peer, &topic)));
            let reader = reader(&participants[participant], &topic, flow.priority);
            let listener = Answering {
                flow: Some(at),
                priority: Priority::new(flow.priority),
                cost_ns: flow.cost_ns,
                longest: Arc::clone(&longest),
            };
            reader.set_listener(Box::new(listener)).expect("open");
            readers.push(reader);
        }
        let polled = reader(&participants[0], "polled", 0);
        let normal: Vec<_> = (0..plan.participants).map(|at| writer(&peer, &format!("normal {at}"))).collect();
        for (at, participant) in participants.iter().enumerate() {
            let reader = reader(participant, &format!("normal {at}"), 0);
            let longest = Arc::clone(&longest);
            let listener = Answering { flow: None, priority: Priority::NORMAL, cost_ns: plan.normal_ns, longest };
            reader.set_listener(Box::new(listener)).expect("open");
            readers.push(reader);
        }
        let to_polled = writer(&peer, "polled");
        let mut test_bench = Self {
            plan,
            network,
            executor,
            driving: Driving::default(),
            participants,
            peer,
            writers,
            readers,
            polled,
            normal,
            longest,
            jobs: Vec::new(),
            _guard: here,
        };
        test_bench.normal.push(to_polled);
        test_bench.match_all();
        test_bench
    }

    fn match_all(&mut self) {
        let is_matched = |writer: &DataWriter<Sample>| !writer.matched_subscriptions().expect("open").is_empty();
        for _ in 0..20_000 {
            self.drive(1_000_000);
            for _ in 0..8 {
                self.peer.spin_once(Duration::ZERO).expect("own thread");
            }
            let is_known = |reader: &DataReader<Sample>| !reader.matched_publications().expect("open").is_empty();
            let mut readers = self.readers.iter().chain([&self.polled]);
            if readers.all(is_known) && self.writers.iter().flatten().chain(&self.normal).all(is_matched) {
                return;
            }
        }
        panic!("the participants do not find each other");
    }

    /// Runs the executor for `ns` nanoseconds.
    pub(super) fn drive(&mut self, ns: u64) {
        let end_ns = now_ns() + ns;
        WORLD.with_borrow_mut(|world| (world.is_driving, world.end_ns) = (true, end_ns));
        self.executor.drive_until(&mut self.driving, || now_ns() >= end_ns);
        WORLD.with_borrow_mut(|world| world.is_driving = false);
    }

    /// Returns the number of datagrams of a sample, for each flow.
    pub(super) fn pieces(&mut self) -> Vec<u64> {
        let flows: Vec<_> = self.plan.flows.iter().map(|flow| (flow.kind, Priority::new(flow.priority))).collect();
        let mut pieces = Vec::new();
        for (at, (kind, priority)) in flows.into_iter().enumerate() {
            pieces.push(match kind {
                Kind::Topic { participant, octets } => {
                    let mut count = || {
                        let before = self.receive_jobs(participant, priority);
                        write_to(self.writers[at].clone().expect("of a topic"), at, octets)(now_ns());
                        (0..4).for_each(|_| self.drive(1_000_000));
                        self.receive_jobs(participant, priority) - before
                    };
                    // The first sample may arrive before the connection that announces its shared
                    // memory is handled.
                    count();
                    count()
                }
                Kind::Job => 1,
            });
        }
        self.longest.lock().expect("no panic").fill(Default::default());
        pieces
    }

    /// Makes jobs take time from now on, and keeps a job below normal priority always ready.
    /// Responses above these bounds record the jobs that ran.
    pub(super) fn begin(&mut self, bounds_ns: &[u64]) {
        for ((_, bound_ns), ns) in self.longest.lock().expect("no panic").iter_mut().zip(bounds_ns) {
            *bound_ns = *ns;
        }
        let plan = &self.plan;
        WORLD.with_borrow_mut(|world| {
            for kind in [JobKind::Receive, JobKind::Transmit, JobKind::Timers] {
                world.costs.insert((kind.name(), Priority::NORMAL), plan.normal_ns);
            }
            for (priority, ns) in &plan.receive_ns {
                world.costs.insert((JobKind::Receive.name(), Priority::new(*priority)), *ns);
            }
        });
        let below_ns = plan.below_ns;
        let below = std::future::poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            super::release(Releaser::Below);
            take_time("application", Priority::new(-10), cost(below_ns));
            Poll::Pending
        });
        let below = self.executor.spawn(Priority::new(-10), "below", below).expect("room");
        self.jobs.push(below);
        self.add_actions();
        for participant in self.participants.iter().filter(|_| self.plan.calls.is_some()) {
            self.add_calls(participant);
        }
    }

    /// Adds calls of other threads, which alternate between write and take.
    fn add_calls(&self, participant: &DomainParticipant) {
        let Some(planned) = self.plan.calls else { return };
        let (own, polled) = (writer(participant, "own"), reader(participant, "taken", 0));
        let mut count = 0;
        let call = move || {
            count += 1;
            if count % 2 == 0 {
                own.write(&Sample::default()).expect("room");
            } else {
                polled.take(usize::MAX).expect("open");
            }
        };
        let PlannedCalls { hold_ns, gap_ns } = planned;
        let calls = Calls { hold_ns, gap_ns, due_ns: u64::MAX, call: Box::new(call) };
        WORLD.with_borrow_mut(|world| world.calls.insert(key_of(participant.engine()), calls));
    }

    /// Adds one action for each flow, followed by one for each normal writer.
    fn add_actions(&mut self) {
        let mut actions: Vec<super::Action> = Vec::new();
        for (at, flow) in self.plan.flows.iter().enumerate() {
            actions.push(match flow.kind {
                Kind::Topic { octets, .. } => write_to(self.writers[at].clone().expect("of a topic"), at, octets),
                Kind::Job => job(&self.executor, at, flow, &self.longest),
            });
        }
        actions.extend(self.normal.iter().map(|writer| {
            let mut write = write_to(writer.clone(), usize::MAX >> 33, 8);
            let write: super::Action = Box::new(move |at| {
                WORLD.with_borrow_mut(|world| world.normal.since = world.normal.since.or(Some(at)));
                write(at);
            });
            write
        }));
        WORLD.with_borrow_mut(|world| world.actions = actions.into_iter().map(Some).collect());
    }

    /// Runs the executor for `ns` nanoseconds with this arrival pattern, then until all work is
    /// done. Returns the number of receive jobs of normal priority while events arrived.
    pub(super) fn run(&mut self, pattern: ArrivalPattern, ns: u64, random: &mut Random) -> u64 {
        self.run_given(pattern, ns, None, random)
    }

    /// Returns arrival and completion times of the first flow's events in the last run, ordered by
    /// arrival.
    pub(super) fn done_of_first(&self) -> Vec<(u64, u64)> {
        let is_first = |(flow, came_ns, done_ns): &(usize, u64, u64)| (*flow == 0).then_some((*came_ns, *done_ns));
        let mut done: Vec<(u64, u64)> = WORLD.with_borrow(|world| world.done.iter().filter_map(is_first).collect());
        done.sort_unstable();
        done
    }

    /// As [`run`](Self::run), with `given` arrival times for the first flow, relative to the start
    /// of the run.
    pub(super) fn run_given(
        &mut self,
        pattern: ArrivalPattern,
        ns: u64,
        given: Option<&[u64]>,
        random: &mut Random,
    ) -> u64 {
        let normal_before = self.receive_jobs(0, Priority::NORMAL);
        let start = now_ns();
        let every = 1_000_000 / self.plan.normal_load.max(1);
        let count = if self.plan.normal_load == 0 { 0 } else { ns / every };
        let writers = (self.plan.flows.len()..).zip(0..self.normal.len() as u64);
        let normal = writers.flat_map(|(at, n)| (0..count).map(move |k| (k * every + n * 777, at)));
        WORLD.with_borrow_mut(|world| {
            world.random = (pattern == ArrivalPattern::Random).then(|| random.clone());
            world.done.clear();
            // Calls cause normal work, which would prevent a job below it from ever starting.
            let calls_from = if pattern == ArrivalPattern::Random { start } else { u64::MAX };
            world.call_from(calls_from);
            for (at, flow) in self.plan.flows.iter().enumerate() {
                let given = given.filter(|_| at == 0).map(<[u64]>::to_vec);
                let times =
                    given.unwrap_or_else(|| times(flow, ns, pattern, random)).into_iter().map(|time| (time, at));
                match pattern {
                    ArrivalPattern::Critical(releaser) if releaser != Releaser::Flow(at) => {
                        world.at_release.extend(times)
                    }
                    _ => world.plan.extend(times.map(|(time, at)| Reverse((start + time, at)))),
                }
            }
            match pattern {
                ArrivalPattern::Critical(releaser) => {
                    world.releases = Some(releaser);
                    world.at_release.extend(normal);
                }
                ArrivalPattern::Random => world.plan.extend(normal.map(|(time, at)| Reverse((start + time, at)))),
            }
        });
        self.drive(ns);
        let normal_jobs = self.receive_jobs(0, Priority::NORMAL) - normal_before;
        self.complete_all();
        normal_jobs
    }

    /// Runs until all events are completed, so that all flows can start together again.
    fn complete_all(&mut self) {
        const SLICES_MAX: usize = 1000;
        for _ in 0..SLICES_MAX {
            WORLD.with_borrow_mut(|world| {
                assert!(world.at_release.is_empty(), "the run has begun");
                world.releases = Some(Releaser::Below);
                world.call_from(u64::MAX);
            });
            self.drive(20_000_000);
            if WORLD.with_borrow(|world| world.releases.is_none() && world.plan.is_empty()) {
                return;
            }
        }
        panic!("the executor does not come to rest: {:#?}", self.plan);
    }

    /// Moves the first participant to the end, so that another one is first among equals.
    pub(super) fn rotate(&self) {
        self.executor.rotate();
    }

    /// Returns the longest time from the arrival of a normal datagram to the end of the next normal
    /// job.
    pub(super) fn longest_normal_wait(&self) -> u64 {
        WORLD.with_borrow(|world| {
            let NormalWait { since, longest_ns } = world.normal;
            longest_ns.max(since.map_or(0, |since| now_ns() - since))
        })
    }

    /// Fails unless samples arrived by the planned transport.
    pub(super) fn check_transport(&self) {
        let stats =
            self.participants.iter().flat_map(|participant| participant.diagnostics().transport_stats().expect("open"));
        let by_memory: u64 =
            stats.filter(|traffic| traffic.name == "shm").map(|traffic| traffic.stats.datagrams_in).sum();
        let has_samples = self.plan.normal_load > 0 || self.writers.iter().any(Option::is_some);
        assert_eq!(by_memory > 0, self.plan.by_memory && has_samples, "{by_memory} datagrams by shared memory");
    }

    /// Returns the number of receive jobs of a participant at this priority.
    fn receive_jobs(&self, participant: usize, priority: Priority) -> u64 {
        let classes = self.participants[participant].job_classes().expect("open");
        let is_meant = |class: &&JobClass| (class.kind, class.priority) == (JobKind::Receive, priority);
        classes.iter().find(is_meant).map_or(0, |class| class.durations.count())
    }

    /// Makes a participant that receives urgent samples write while its transport accepts nothing.
    pub(super) fn write_through_a_broken_transport(&mut self) {
        let own = writer(&self.participants[0], "to all");
        let _reader = reader(&self.peer, "to all", 0);
        self.normal.push(own.clone());
        self.match_all();
        self.network.break_end(0);
        own.write(&Sample::default()).expect("room");
        let failures = self.participants[0].diagnostics().driver_counters().expect("open").send_failures;
        assert!(failures > 0, "{failures}");
    }

    /// Returns the longest response of each flow.
    pub(super) fn longest(&self) -> Vec<Response> {
        self.longest.lock().expect("no panic").iter().map(|(longest, _)| longest.clone()).collect()
    }
}

fn write_to(writer: DataWriter<Sample>, flow: usize, octets: usize) -> super::Action {
    let mut sample = Sample { flow: flow as u32, arrived_ns: 0, bulk: vec![0; octets] };
    Box::new(move |at| {
        sample.arrived_ns = at;
        writer.write(&sample).expect("room");
    })
}

/// Creates an application job that exists as long as the action that triggers it.
fn job(executor: &Executor, at: usize, flow: &PlannedFlow, longest: &Longest) -> super::Action {
    let waiting = Arc::new(Mutex::new(VecDeque::new()));
    let (to_do, longest) = (Arc::clone(&waiting), Arc::clone(longest));
    let (priority, cost_ns) = (Priority::new(flow.priority), flow.cost_ns);
    let work = move || {
        super::release(Releaser::Flow(at));
        let done: Vec<u64> = to_do.lock().expect("no panic").drain(..).collect();
        take_time("application", priority, cost(cost_ns));
        done.into_iter().for_each(|arrived_ns| note(&longest, at, arrived_ns));
    };
    let job = executor.on_event(Priority::new(flow.priority), "job", work).expect("room");
    Box::new(move |arrived_ns| {
        waiting.lock().expect("no panic").push_back(arrived_ns);
        job.trigger();
    })
}

/// Returns the arrival times of a flow's events up to `until`.
fn times(flow: &PlannedFlow, until: u64, pattern: ArrivalPattern, random: &mut Random) -> Vec<u64> {
    let arrivals = flow.arrivals;
    let mut times: Vec<u64> = Vec::new();
    let offset = if pattern == ArrivalPattern::Random { random.between(0, arrivals.period_ns) } else { 0 };
    for n in 0.. {
        let time = match pattern {
            ArrivalPattern::Critical(_) => arrivals.span(n),
            // Each event has its nominal time and is delayed by at most its jitter.
            ArrivalPattern::Random => offset + n * arrivals.period_ns + random.between(0, arrivals.jitter_ns),
        };
        if time > until {
            break;
        }
        times.push(time);
    }
    times.sort_unstable();
    // Drop events that violate the minimum distance.
    let mut kept: Vec<u64> = Vec::new();
    for time in times {
        if kept.last().is_none_or(|last| time - last >= arrivals.distance_ns) {
            kept.push(time);
        }
    }
    kept
}
