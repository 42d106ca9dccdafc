//! What happens in a world, decided by a seed before it begins: hosts, network, processes, endpoints, faults.
//!
//! A scenario is plain data, so that a failing one can be made smaller by leaving parts of it out ([`crate::shrink`]).

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

/// Everything that a seed decides, but for the dice that the links throw.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it comes from; also seeds the dice of the links.
    pub seed: u64,
    /// Applications write, and faults happen, until then.
    pub active: Nanos,
    /// The hosts.
    pub hosts: Vec<HostPlan>,
    /// Between hosts and switches.
    pub network: NetworkPlan,
    /// The topics, which endpoints name by index.
    pub topics: Vec<TopicPlan>,
    /// The processes.
    pub processes: Vec<ProcessPlan>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// A host that means harm.
    pub hostile: Option<HostilePlan>,
    /// What there is besides applications.
    pub services: Services,
    /// What applications change while all goes on.
    pub alterations: Vec<AlterationPlan>,
    /// PRESENTATION of all publishers and subscribers, of which each process has one; `None` is that of DDS.
    pub presentation: Option<Presentation>,
    /// Bursts are written as batches, and readers take so many samples at a time; `None`: one by one, and everything.
    pub batches: Option<usize>,
    /// All processes know all endpoints beforehand, so there is no endpoint discovery. Endpoints live as long as their processes.
    pub has_static_endpoints: bool,
    /// Readers that take once per period read before they take, and take every fourth time at least.
    pub reads: bool,
    /// Counters and clocks that begin just before a boundary.
    pub boundaries: Boundaries,
    /// The domain is under DDS Security.
    pub domain: Option<DomainPlan>,
}

/// What begins just before a boundary of its range; zero is as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// Added to the counts of HEARTBEAT, ACKNACK, HEARTBEAT_FRAG and NACK_FRAG, as if so many had been sent before.
    pub counts: i32,
    /// By how much the wall clocks of all hosts are ahead when the world begins.
    pub wall: i64,
}

/// A host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// How wrong its monotonic clock runs.
    pub drift_ppb: i64,
    /// When its wall clock is set, and by how many nanoseconds.
    pub wall_jumps: Vec<(Nanos, i64)>,
    /// Multicast reaches it. Without it needs to be a peer that others know.
    pub hears_multicast: bool,
    /// Which switch it hangs on.
    pub switch: usize,
}

/// How frames wait at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// In order of arrival.
    Fifo,
    /// The most urgent first; a frame that is being sent is not interrupted.
    StrictPriority,
}

/// The links, all alike, and the switches in a row.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// How many switches stand in a row.
    pub switches: usize,
    /// Bits per second of each link.
    pub bits_per_second: u64,
    /// Time from one end of a link to the other.
    pub propagation: Nanos,
    /// What a port holds before it drops.
    pub queue_bytes: usize,
    /// How frames wait.
    pub discipline: Discipline,
    /// Largest IP packet that a host sends.
    pub mtu: usize,
    /// Largest IP packet that switches pass on; larger ones are lost without a word.
    pub path_mtu: usize,
    /// Addresses are IPv6.
    pub is_v6: bool,
    /// Hosts have a second interface, which takes packets of 9,000 octets.
    pub has_second: bool,
    /// Each host is in a subnet of its own.
    pub is_routed: bool,
}

impl NetworkPlan {
    /// A switch with plain links, which pass on all that hosts send.
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
    /// How many instances are written; 0 for a topic without keys.
    pub instances: u8,
    /// Smallest and largest sample, payload header included.
    pub sizes: (usize, usize),
}

/// A process with one participant.
#[derive(Clone, Debug)]
pub struct ProcessPlan {
    /// Where it runs.
    pub host: usize,
    /// When it starts.
    pub start: Nanos,
    /// When it ends before its time.
    pub ends: Vec<EndPlan>,
    /// When and how long it gets no processor time.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Processor time that each datagram takes which it receives; others wait in its socket meanwhile.
    pub cost: Nanos,
    /// Its writers and readers.
    pub endpoints: Vec<EndpointPlan>,
}

/// How a process ends. It is started again with nothing left of its state.
#[derive(Clone, Copy, Debug)]
pub struct EndPlan {
    /// When.
    pub at: Nanos,
    /// How long until it is started again.
    pub pause: Nanos,
    /// It says farewell, else it is killed.
    pub farewell: bool,
}

/// A writer or reader.
#[derive(Clone, Debug)]
pub struct EndpointPlan {
    /// Index of its topic.
    pub topic: usize,
    /// Its policies.
    pub qos: QosPlan,
    /// When it is created after its process's start.
    pub create: Nanos,
    /// When it is deleted after its process's start.
    pub delete: Option<Nanos>,
    /// What it does.
    pub role: Role,
}

/// The policies that vary. The default is BEST_EFFORT, VOLATILE, KEEP_ALL.
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
    /// TRANSPORT_PRIORITY; 0 to 7 are the classes of the network.
    pub priority: u8,
    /// How urgent its datagrams are to its participant, from -64 to 63.
    pub urgency: i8,
    /// Index of its partition, which is the default one for 0.
    pub partition: u8,
    /// LIVELINESS; `None` is AUTOMATIC with an infinite lease.
    pub liveliness: Option<LivelinessPlan>,
    /// USER_DATA: so many octets of this value.
    pub user_data: u8,
    /// DEADLINE; `None` is infinite.
    pub deadline: Option<Nanos>,
    /// OWNERSHIP EXCLUSIVE with this OWNERSHIP_STRENGTH, which a reader has none of; `None` is SHARED.
    pub strength: Option<i32>,
    /// DESTINATION_ORDER BY_SOURCE_TIMESTAMP.
    pub by_source: bool,
    /// TIME_BASED_FILTER of a reader; `None` is off.
    pub separation: Option<Nanos>,
    /// READER_DATA_LIFECYCLE of a reader, both delays; `None` is infinite.
    pub purge: Option<Nanos>,
    /// LATENCY_BUDGET.
    pub budget: Nanos,
    /// LIFESPAN, which a reader has none of; `None` is infinite.
    pub lifespan: Option<Nanos>,
    /// A writer directs some samples to one of its readers.
    pub directed: bool,
    /// The content filter of a reader. A writer that has one filters for its readers, and compiles filters of that kind.
    pub filter: Option<FilterPlan>,
}

/// LIVELINESS with a lease that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivelinessPlan {
    /// Who has to show that the writer lives.
    pub kind: LivelinessKind,
    /// How often at least.
    pub lease: Nanos,
}

/// What an endpoint does.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Writes some samples per period.
    Writer {
        /// Between two bursts.
        period: Nanos,
        /// Samples of a burst.
        burst: u32,
        /// After so many it only waits.
        samples: u32,
        /// Chance, in parts of a million, that it disposes or unregisters an instance instead of writing a sample.
        endings: u32,
    },
    /// Takes everything: at once when told of data, or once per period.
    Reader {
        /// Between two takes; 0 for at once.
        period: Nanos,
    },
}

/// Something that goes wrong for a while.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When it begins.
    pub from: Nanos,
    /// When it is over.
    pub until: Nanos,
    /// What it is.
    pub kind: FaultKind,
}

/// Which direction of a host's link is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host to its switch.
    Up,
    /// From the switch to the host.
    Down,
}

/// What can go wrong.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// Frames on one host's link suffer.
    Link {
        /// Whose link.
        host: usize,
        /// Which way.
        direction: Direction,
        /// How.
        trouble: Trouble,
    },
    /// Frames from one group of hosts (a bit set) do not reach the other.
    Partition {
        /// The group, as a bit set.
        group: u64,
        /// Only frames that leave the group are lost.
        one_way: bool,
        /// It comes and goes with this period; 0 if it stays.
        flapping: Nanos,
    },
    /// The interface of a host vanishes, and comes back with another address.
    Move {
        /// Which host.
        host: usize,
    },
}

/// How frames suffer. Probabilities are parts of a million.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// Lost at random.
    Loss(u32),
    /// Lost in bursts: the chance that one begins, and that it ends, with each frame.
    Burst(u32, u32),
    /// Arrive twice.
    Duplication(u32),
    /// Overtaken: delayed by up to this time.
    Reordering(u32, Nanos),
    /// Damaged, which the receiving host's checksum finds.
    Corruption(u32),
    /// Damaged in structure, which no checksum finds and every receiver notices ([`crate::damage::disfigure`]).
    Disfigurement(u32),
    /// Some bits changed, which no checksum finds and a receiver may not notice ([`crate::damage::flip`]).
    Flips(u32),
    /// All delayed.
    Delay(Nanos),
    /// None gets through, and all wait as far as the queue holds them.
    Clog,
}

impl Scenario {
    /// A calm world to measure the simulator by: `participants` hosts with a process each that writes 100 samples of 64
    /// octets a second and reads those of its neighbour, reliably, for `active`.
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
            faults: vec![],
            hostile: None,
            services: Services::default(),
            alterations: vec![],
            presentation: None,
            batches: None,
            has_static_endpoints: false,
            reads: false,
            boundaries: Boundaries::default(),
            domain: None,
        }
    }

    /// Whether nothing goes wrong but that processes are killed, and nothing is altered but that plain publications are suspended.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_sound() && self.alterations.iter().all(|alteration| self.only_delays(alteration))
    }

    /// Whether nothing goes wrong but that processes are killed, whatever is altered.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.network.path_mtu == usize::MAX
            && self.faults.iter().all(|fault| fault.from >= self.active)
            && self.processes.iter().all(|process| process.stalls.is_empty() && process.cost == 0)
    }

    /// Whether an alteration does no more than make samples late, or decide which of them a reader wants: it suspends a writer without
    /// policies that time decides, or changes the parameters of a filter.
    fn only_delays(&self, alteration: &AlterationPlan) -> bool {
        let qos = &self.processes[alteration.process].endpoints[alteration.endpoint].qos;
        let is_timed = qos.liveliness.is_some() || qos.deadline.is_some() || qos.lifespan.is_some();
        let is_suspended = alteration.what == Alteration::Suspended(true);
        let is_filter = matches!(alteration.what, Alteration::Filter(_));
        is_filter || is_suspended && !is_timed && !qos.by_source && qos.strength.is_none()
    }

    /// Whether datagrams may arrive that say what their sender did not say, so that only rules of safety hold.
    #[must_use]
    pub fn has_lies(&self) -> bool {
        let flips = |fault: &Fault| matches!(fault.kind, FaultKind::Link { trouble: Trouble::Flips(_), .. });
        self.hostile.is_some_and(|plan| plan.impostor) || self.faults.iter().any(flips)
    }

    /// Whether nobody sets a wall clock.
    #[must_use]
    pub fn has_steady_clocks(&self) -> bool {
        self.hosts.iter().all(|host| host.wall_jumps.is_empty())
    }

    /// Since when no fault is on, no process is stalled and nobody believes in one that was killed; `None` if not now.
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

    /// Whether so little is sent that nothing waits long for a link: no link is asked for a tenth of what it carries.
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

    /// Most datagrams that a process sends in some time only to show that writers live: its own assertions to each other
    /// process, and its acknowledgements of theirs.
    #[must_use]
    pub fn assertions(&self, process: usize, time: Nanos) -> u64 {
        let leases = |plan: &ProcessPlan| {
            let of_writers = plan.endpoints.iter().filter(|endpoint| matches!(endpoint.role, Role::Writer { .. }));
            let automatic = |endpoint: &EndpointPlan| {
                endpoint.qos.liveliness.filter(|liveliness| liveliness.kind == LivelinessKind::Automatic)
            };
            of_writers.filter_map(automatic).map(|liveliness| liveliness.lease).min()
        };
        // Three in a lease.
        let count = |plan: &ProcessPlan| leases(plan).map_or(0, |lease| 3 * time / lease + 1);
        let others = self.processes.len() as u64 - 1;
        let all: u64 = self.processes.iter().map(count).sum();
        all + count(&self.processes[process]) * others
            + self.introductions(process)
            + self.reminders(time)
            + self.handshakes(time)
    }
}
