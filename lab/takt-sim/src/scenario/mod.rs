//! Scenario of a world, which a seed determines in advance: hosts, network, processes, endpoints,
//! faults.
//!
//! A scenario is plain data, so that a failing one can be reduced by omitting parts of it
//! ([`crate::shrink`]).

mod alteration;
mod batches;
mod exact;
mod filtering;
mod focus;
mod ignoring;
mod long;
mod lookups;
mod patterns;
mod reading;
mod secured;
mod seed;
mod services;
mod statics;

pub use alteration::{Alteration, AlterationPlan};
pub use filtering::FilterPlan;
pub use focus::Focus;
pub use seed::Size;
pub use services::{Service, Services};

use takt_wire::qos::{LivelinessKind, Presentation};

use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::domain::DomainPlan;
use crate::hostile::HostilePlan;

/// Everything that a seed determines, except for the random numbers of the links.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// Seed of the scenario and of the random numbers of the links.
    pub seed: u64,
    /// End of the applications' writes and of the faults.
    pub active: Nanos,
    /// The hosts.
    pub hosts: Vec<HostPlan>,
    /// Links and switches.
    pub network: NetworkPlan,
    /// Topics, which endpoints reference by index.
    pub topics: Vec<TopicPlan>,
    /// Processes.
    pub processes: Vec<ProcessPlan>,
    /// Faults.
    pub faults: Vec<Fault>,
    /// Hostile host.
    pub hostile: Option<HostilePlan>,
    /// Services in addition to the applications.
    pub services: Services,
    /// Alterations at run time.
    pub alterations: Vec<AlterationPlan>,
    /// PRESENTATION of all publishers and subscribers, of which each process has one; `None` is the
    /// default of DDS.
    pub presentation: Option<Presentation>,
    /// Maximum number of samples per take, with bursts written as batches; `None` writes one by one
    /// and takes everything.
    pub batches: Option<usize>,
    /// Whether all endpoints are static: all processes know them in advance, without endpoint
    /// discovery. They live as long as their processes.
    pub has_static_endpoints: bool,
    /// Whether readers that take once per period read before they take, and take at least every
    /// fourth time.
    pub reads: bool,
    /// Counters and clocks that start just before a boundary.
    pub boundaries: Boundaries,
    /// Domain under DDS Security, if any.
    pub domain: Option<DomainPlan>,
}

/// Start values just before a boundary; zero has no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// Offset of the counts of HEARTBEAT, ACKNACK, HEARTBEAT_FRAG and NACK_FRAG, as if as many had
    /// been sent before.
    pub counts: i32,
    /// Offset of the wall clocks of all hosts at the start of the world, in nanoseconds.
    pub wall: i64,
}

/// A host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Drift of the monotonic clock in parts per billion.
    pub drift_ppb: i64,
    /// Times at which the wall clock is set, with the offset in nanoseconds.
    pub wall_jumps: Vec<(Nanos, i64)>,
    /// Whether multicast reaches the host. A host without multicast is a configured peer of the
    /// others.
    pub hears_multicast: bool,
    /// Index of the switch that the host is connected to.
    pub switch: usize,
}

/// Queueing discipline of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// In order of arrival.
    Fifo,
    /// Most urgent first, without preemption of a frame in transmission.
    StrictPriority,
}

/// Links, which are all alike, and switches in a row.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// Number of switches.
    pub switches: usize,
    /// Bits per second of each link.
    pub bits_per_second: u64,
    /// Propagation delay of a link.
    pub propagation: Nanos,
    /// Queue length of a port in octets.
    pub queue_bytes: usize,
    /// Queueing discipline.
    pub discipline: Discipline,
    /// Maximum size of an IP packet that a host sends, in octets.
    pub mtu: usize,
    /// Maximum size of an IP packet that switches forward, in octets; larger ones are dropped
    /// silently.
    pub path_mtu: usize,
    /// Whether addresses are IPv6.
    pub is_v6: bool,
    /// Whether hosts have a second interface, with an MTU of 9,000 octets.
    pub has_second: bool,
    /// Whether each host is in a separate subnet.
    pub is_routed: bool,
}

impl Default for NetworkPlan {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl NetworkPlan {
    /// One switch with links that forward everything that hosts send.
    pub const PLAIN: Self = Self {
        switches: 1,
        bits_per_second: 1_000_000_000,
        propagation: 1_000,
        queue_bytes: 1_000_000,
        discipline: Discipline::Fifo,
        mtu: 1_500,
        path_mtu: usize::MAX,
        is_v6: false,
        has_second: false,
        is_routed: false,
    };
}

/// A topic.
#[derive(Clone, Debug)]
pub struct TopicPlan {
    /// Number of instances; 0 for a topic without keys.
    pub instances: u8,
    /// Minimum and maximum size of a sample in octets, including the payload header.
    pub sizes: (usize, usize),
}

/// A process with one participant.
#[derive(Clone, Debug)]
pub struct ProcessPlan {
    /// Index of the host.
    pub host: usize,
    /// Start time.
    pub start: Nanos,
    /// Ends of the process during the run.
    pub ends: Vec<EndPlan>,
    /// Start and duration of the stalls, in which the process gets no processor time.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Processor time per received datagram. Other datagrams wait in the socket meanwhile.
    pub cost: Nanos,
    /// Writers and readers.
    pub endpoints: Vec<EndpointPlan>,
}

/// End of a process. The process restarts without its state.
#[derive(Clone, Copy, Debug)]
pub struct EndPlan {
    /// Time of the end.
    pub at: Nanos,
    /// Time until the restart.
    pub pause: Nanos,
    /// Whether the participant announces its end; otherwise the process is killed.
    pub farewell: bool,
}

/// A writer or reader.
#[derive(Clone, Debug)]
pub struct EndpointPlan {
    /// Index of the topic.
    pub topic: usize,
    /// Policies.
    pub qos: QosPlan,
    /// Time of creation after the start of the process.
    pub create: Nanos,
    /// Time of deletion after the start of the process.
    pub delete: Option<Nanos>,
    /// Behavior of the application.
    pub role: Role,
}

/// Policies that vary. The default is BEST_EFFORT, VOLATILE, KEEP_ALL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosPlan {
    /// RELIABLE, else BEST_EFFORT.
    pub reliable: bool,
    /// TRANSIENT_LOCAL, else VOLATILE.
    pub transient_local: bool,
    /// KEEP_LAST of this depth, else KEEP_ALL.
    pub keep_last: Option<u32>,
    /// RESOURCE_LIMITS.max_samples.
    pub max_samples: Option<u32>,
    /// TRANSPORT_PRIORITY; 0 to 7 are the traffic classes of the network.
    pub priority: u8,
    /// Urgency of its datagrams within the participant, from -64 to 63.
    pub urgency: i8,
    /// Index of its PARTITION list; 0 is the default partition.
    pub partition: u8,
    /// LIVELINESS; `None` is AUTOMATIC with an infinite lease.
    pub liveliness: Option<LivelinessPlan>,
    /// Length and octet value of USER_DATA.
    pub user_data: u8,
    /// DEADLINE; `None` is infinite.
    pub deadline: Option<Nanos>,
    /// OWNERSHIP EXCLUSIVE with this OWNERSHIP_STRENGTH, which has no meaning for a reader; `None`
    /// is SHARED.
    pub strength: Option<i32>,
    /// DESTINATION_ORDER BY_SOURCE_TIMESTAMP.
    pub by_source: bool,
    /// TIME_BASED_FILTER of a reader; `None` is off.
    pub separation: Option<Nanos>,
    /// Both delays of READER_DATA_LIFECYCLE of a reader; `None` is infinite.
    pub purge: Option<Nanos>,
    /// LATENCY_BUDGET.
    pub budget: Nanos,
    /// LIFESPAN of a writer; `None` is infinite.
    pub lifespan: Option<Nanos>,
    /// Whether a writer directs some samples to one of its readers.
    pub directed: bool,
    /// Content filter of a reader. A writer with a filter compiles filters of that kind and applies
    /// them for its readers.
    pub filter: Option<FilterPlan>,
}

/// LIVELINESS with a finite lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivelinessPlan {
    /// Kind, which determines what asserts the liveliness.
    pub kind: LivelinessKind,
    /// Lease duration.
    pub lease: Nanos,
}

/// Behavior of an application with an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Writes some samples per period.
    Writer {
        /// Time between two bursts.
        period: Nanos,
        /// Samples per burst.
        burst: u32,
        /// Number of samples after which the writer stops.
        samples: u32,
        /// Chance, in parts of a million, of a dispose or an unregister in place of a sample.
        endings: u32,
    },
    /// Takes everything: on data available, or once per period.
    Reader {
        /// Time between two takes; 0 takes on data available.
        period: Nanos,
    },
}

/// A temporary fault.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Start time.
    pub from: Nanos,
    /// End time.
    pub until: Nanos,
    /// Kind of the fault.
    pub kind: FaultKind,
}

/// Direction of a host's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host to its switch.
    Up,
    /// From the switch to the host.
    Down,
}

/// Kind of a fault.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// Frames on the link of one host are impaired.
    Link {
        /// Index of the host.
        host: usize,
        /// Direction.
        direction: Direction,
        /// Kind of impairment.
        impairment: Impairment,
    },
    /// Frames from one group of hosts (a bit set) do not reach the other.
    Partition {
        /// Group as a bit set.
        group: u64,
        /// Whether only frames that leave the group are lost.
        one_way: bool,
        /// Period with which the partition alternates; 0 if it is permanent.
        flapping: Nanos,
    },
    /// The interface of a host vanishes and reappears with another address.
    Move {
        /// Index of the host.
        host: usize,
    },
}

/// Impairment of frames. Probabilities are parts of a million.
#[derive(Clone, Copy, Debug)]
pub enum Impairment {
    /// Random loss.
    Loss(u32),
    /// Loss in bursts: the chance per frame that a burst begins, and that it ends.
    Burst(u32, u32),
    /// Duplication.
    Duplication(u32),
    /// Reordering by a random delay of up to this time.
    Reordering(u32, Nanos),
    /// Damage that the receiving host's checksum detects.
    Corruption(u32),
    /// Structural damage that no checksum detects and every receiver detects
    /// ([`crate::damage::damage_structure`]).
    StructuralDamage(u32),
    /// Changed bits that no checksum detects and a receiver may not detect
    /// ([`crate::damage::flip`]).
    Flips(u32),
    /// Delay of all frames.
    Delay(Nanos),
    /// Blocked port: frames wait as far as the queue holds them.
    Blockage,
}

impl Scenario {
    /// Returns a fault-free world to measure the simulator. It has `participants` hosts with one
    /// process each. Each process writes 100 samples of 64 octets per second and reads those of the
    /// next one, reliably, for `active`.
    #[must_use]
    pub fn steady(participants: usize, active: Nanos) -> Self {
        let qos = QosPlan { reliable: true, ..QosPlan::default() };
        let endpoint = |topic, role| EndpointPlan { topic, qos, create: 0, delete: None, role };
        let writer = Role::Writer { period: 10 * MILLISECOND, burst: 1, samples: u32::MAX, endings: 0 };
        let process = |host| ProcessPlan {
            host,
            start: host as Nanos * MILLISECOND,
            ends: vec![],
            stalls: vec![],
            cost: 0,
            endpoints: vec![endpoint(host, writer), endpoint((host + 1) % participants, Role::Reader { period: 0 })],
        };
        Self {
            seed: 0,
            active,
            hosts: vec![HostPlan { drift_ppb: 0, wall_jumps: vec![], hears_multicast: true, switch: 0 }; participants],
            network: NetworkPlan::PLAIN,
            topics: vec![TopicPlan { instances: 0, sizes: (64, 64) }; participants],
            processes: (0..participants).map(process).collect(),
            ..Self::default()
        }
    }

    /// Reports whether the only faults are killed processes, and the only alterations are suspended
    /// publications without further effects.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_sound() && self.alterations.iter().all(|alteration| self.only_delays(alteration))
    }

    /// Reports whether the only faults are killed processes, with any alterations.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.network.path_mtu == usize::MAX
            && self.faults.iter().all(|fault| fault.from >= self.active)
            && self.processes.iter().all(|process| process.stalls.is_empty() && process.cost == 0)
            && !self.domain.as_ref().is_some_and(DomainPlan::ends_matches)
    }

    /// Reports whether an alteration only delays samples or changes which of them a reader wants.
    /// It suspends a writer without time-dependent policies, or changes the parameters of a filter.
    fn only_delays(&self, alteration: &AlterationPlan) -> bool {
        let qos = &self.processes[alteration.process].endpoints[alteration.endpoint].qos;
        let is_timed = qos.liveliness.is_some() || qos.deadline.is_some() || qos.lifespan.is_some();
        let is_suspended = alteration.what == Alteration::Suspended(true);
        let is_filter = matches!(alteration.what, Alteration::Filter(_));
        is_filter || is_suspended && !is_timed && !qos.by_source && qos.strength.is_none()
    }

    /// Reports whether falsified datagrams may be accepted, so that only the safety rules hold.
    #[must_use]
    pub fn has_falsified(&self) -> bool {
        let flips = |fault: &Fault| matches!(fault.kind, FaultKind::Link { impairment: Impairment::Flips(_), .. });
        let is_exposed = !self.domain.as_ref().is_some_and(DomainPlan::signs_messages);
        self.hostile.is_some_and(|plan| plan.impostor && is_exposed) || self.faults.iter().any(flips)
    }

    /// Reports whether a hostile host repeats protected messages.
    #[must_use]
    pub fn repeats_protected_messages(&self) -> bool {
        self.hostile.is_some_and(|plan| plan.attacks_domain)
    }

    /// Reports whether network interfaces delay fragments of large samples, while other datagrams
    /// are sent. Only where samples may be late.
    #[must_use]
    pub fn limits_fragments(&self) -> bool {
        self.seed.is_multiple_of(3) && !self.is_sound() && !self.is_exact()
    }

    /// Reports whether no wall clock is set.
    #[must_use]
    pub fn has_steady_clocks(&self) -> bool {
        self.hosts.iter().all(|host| host.wall_jumps.is_empty())
    }

    /// Returns the time since which no fault is active, no process is stalled and the lease of
    /// every killed one has ended; `None` if there is none.
    #[must_use]
    pub fn quiet_since(&self, now: Nanos, lease: Nanos) -> Option<Nanos> {
        let faults = self.faults.iter().map(|fault| (fault.from, fault.until.min(self.active)));
        let stalls = self.processes.iter().flat_map(|process| &process.stalls);
        let stalls = stalls.map(|(from, time)| (*from, (from + time).min(self.active)));
        let ends = self.processes.iter().flat_map(|process| &process.ends).filter(|end| end.at < self.active);
        let ends = ends.map(|end| (end.at, end.at + lease));
        let alterations = self.alterations.iter().map(|alteration| (alteration.at, alteration.until()));
        let wrong = faults.chain(stalls).chain(ends).chain(alterations).chain(self.server_absences());
        let begun = wrong.filter(|(from, until)| *from <= now && from < until);
        let last = begun.map(|(_, until)| until).max().unwrap_or(0);
        (last <= now).then_some(last)
    }

    /// Reports whether the load is so low that no frame waits long: each link carries less than a
    /// tenth of its capacity.
    #[must_use]
    pub fn is_light(&self) -> bool {
        let endpoints = || self.processes.iter().flat_map(|process| &process.endpoints);
        let load = |plan: &EndpointPlan| match plan.role {
            Role::Writer { period, burst, .. } => {
                let readers = endpoints().filter(|other| other.topic == plan.topic).count() as u64;
                self.topics[plan.topic].sizes.1 as u64 * 8 * u64::from(burst) * readers * SECOND / period
            }
            Role::Reader { .. } => 0,
        };
        endpoints().map(load).sum::<u64>() < self.network.bits_per_second / 10
    }

    /// Returns the maximum number of datagrams that a process sends in `time` for liveliness alone:
    /// its assertions to each other process, and its acknowledgments of theirs.
    #[must_use]
    pub fn assertions(&self, process: usize, time: Nanos) -> u64 {
        let leases = |plan: &ProcessPlan| {
            let of_writers = plan.endpoints.iter().filter(|endpoint| matches!(endpoint.role, Role::Writer { .. }));
            let automatic = |endpoint: &EndpointPlan| {
                endpoint.qos.liveliness.filter(|liveliness| liveliness.kind == LivelinessKind::Automatic)
            };
            of_writers.filter_map(automatic).map(|liveliness| liveliness.lease).min()
        };
        // Three per lease.
        let count = |plan: &ProcessPlan| leases(plan).map_or(0, |lease| 3 * time / lease + 1);
        let others = self.processes.len() as u64 - 1;
        let all: u64 = self.processes.iter().map(count).sum();
        all + count(&self.processes[process]) * others
            + self.introductions(process)
            + self.reminders(time)
            + self.handshakes(time)
    }
}
