//! What happens in a world, decided by a seed before it begins: hosts, network, processes, endpoints, faults.
//!
//! A scenario is plain data, so that a failing one can be made smaller by leaving parts of it out ([`crate::shrink`]).

use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::rng::Rng;

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
    /// Largest IP packet.
    pub mtu: usize,
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
    /// When it is killed, and how long until it is started again with nothing left of its state.
    pub crashes: Vec<(Nanos, Nanos)>,
    /// When and how long it gets no processor time.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Its writers and readers.
    pub endpoints: Vec<EndpointPlan>,
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

/// The policies that vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Index of its partition, which is the default one for 0.
    pub partition: u8,
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
    /// All delayed.
    Delay(Nanos),
    /// None gets through, and all wait as far as the queue holds them.
    Clog,
}

/// Bounds within which a seed may choose.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Most hosts.
    pub hosts: u64,
    /// Most processes.
    pub processes: u64,
    /// Most topics.
    pub topics: u64,
    /// Most endpoints of a process.
    pub endpoints: u64,
    /// Longest active time.
    pub active: Nanos,
}

impl Size {
    /// Some tens of milliseconds of computing.
    pub const SMALL: Self = Self { hosts: 4, processes: 5, topics: 4, endpoints: 4, active: 4 * SECOND };
    /// At least 20 hosts and 50 topics are among these.
    pub const LARGE: Self = Self { hosts: 32, processes: 40, topics: 80, endpoints: 8, active: 6 * SECOND };
}

impl Scenario {
    /// The scenario of a seed: a large one now and then, mostly a small one, which finds most and costs least.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let size = if rng.chance(30_000) { Size::LARGE } else { Size::SMALL };
        Self::within(seed, &size)
    }

    /// A calm world to measure the simulator by: `participants` hosts with a process each that writes 100 samples of 64
    /// octets a second and reads those of its neighbour, reliably, for `active`.
    #[must_use]
    pub fn steady(participants: usize, active: Nanos) -> Self {
        let qos = QosPlan {
            reliable: true,
            transient_local: false,
            keep_last: None,
            max_samples: None,
            priority: 0,
            partition: 0,
        };
        let endpoint = |topic, role| EndpointPlan { topic, qos, create: 0, delete: None, role };
        let writer = Role::Writer { period: 10 * MILLISECOND, burst: 1, samples: u32::MAX };
        let process = |host| ProcessPlan {
            host,
            start: host as Nanos * MILLISECOND,
            crashes: vec![],
            stalls: vec![],
            endpoints: vec![endpoint(host, writer), endpoint((host + 1) % participants, Role::Reader { period: 0 })],
        };
        Self {
            seed: 0,
            active,
            hosts: vec![HostPlan { drift_ppb: 0, wall_jumps: vec![], hears_multicast: true, switch: 0 }; participants],
            network: NetworkPlan {
                switches: 1,
                bits_per_second: 1_000_000_000,
                propagation: 1_000,
                queue_bytes: 1_000_000,
                discipline: Discipline::Fifo,
                mtu: 1_500,
            },
            topics: vec![TopicPlan { instances: 0, sizes: (64, 64) }; participants],
            processes: (0..participants).map(process).collect(),
            faults: vec![],
        }
    }

    /// Whether nothing goes wrong but that processes are killed.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.faults.iter().all(|fault| fault.from >= self.active)
            && self.processes.iter().all(|process| process.stalls.is_empty())
    }

    /// The scenario of a seed within bounds.
    #[must_use]
    pub fn within(seed: u64, size: &Size) -> Self {
        let mut rng = Rng::new(seed ^ 0x7461_6b74);
        let large = size.hosts > 20;
        let least = if large { (20, 50) } else { (1, 1) };
        let active = rng.between(size.active / 4, size.active);
        let network = network(&mut rng, large);
        let hosts: Vec<_> = (0..rng.between(least.0, size.hosts)).map(|_| host(&mut rng, &network, active)).collect();
        let topics: Vec<_> = (0..rng.between(least.1, size.topics)).map(|_| topic(&mut rng, large)).collect();
        let least = if large { hosts.len() as u64 } else { 2 };
        let processes: Vec<_> = (0..rng.between(least, size.processes.max(least)))
            .map(|index| process(&mut rng, index as usize, &hosts, &topics, size, active))
            .collect();
        let faults = (0..rng.below(5)).map(|_| fault(&mut rng, hosts.len(), active)).collect();
        Self { seed, active, hosts, network, topics, processes, faults }
    }
}

fn network(rng: &mut Rng, large: bool) -> NetworkPlan {
    NetworkPlan {
        switches: rng.between(1, if large { 4 } else { 2 }) as usize,
        bits_per_second: *rng.pick(&[100_000_000, 1_000_000_000, 10_000_000_000]),
        propagation: rng.between(500, 50_000),
        queue_bytes: *rng.pick(&[64_000, 256_000, 1_000_000]),
        discipline: *rng.pick(&[Discipline::Fifo, Discipline::StrictPriority]),
        mtu: *rng.pick(&[1_500, 1_500, 9_000, 1_280]),
    }
}

fn host(rng: &mut Rng, network: &NetworkPlan, active: Nanos) -> HostPlan {
    let jumps = if rng.chance(200_000) { rng.between(1, 3) } else { 0 };
    let jump = |rng: &mut Rng| (rng.below(active), rng.between(0, 7_200 * SECOND) as i64 - 3_600 * SECOND as i64);
    HostPlan {
        drift_ppb: rng.between(0, 400_000) as i64 - 200_000,
        wall_jumps: (0..jumps).map(|_| jump(rng)).collect(),
        hears_multicast: !rng.chance(100_000),
        switch: rng.below(network.switches as u64) as usize,
    }
}

fn topic(rng: &mut Rng, large: bool) -> TopicPlan {
    let longest = *rng.pick(&[24, 24, 200, 1_400, 20_000, if large { 20_000 } else { 200_000 }]);
    let shortest = if rng.chance(500_000) { 24 } else { longest };
    let instances = if rng.chance(500_000) { rng.between(1, 6) as u8 } else { 0 };
    TopicPlan { instances, sizes: (shortest, longest) }
}

fn process(
    rng: &mut Rng,
    index: usize,
    hosts: &[HostPlan],
    topics: &[TopicPlan],
    size: &Size,
    active: Nanos,
) -> ProcessPlan {
    let start = if rng.chance(700_000) { rng.below(MILLISECOND) } else { rng.below(active) };
    let moment = |rng: &mut Rng| rng.between(start, start + active);
    let crashes = if rng.chance(150_000) { vec![(moment(rng), rng.between(MILLISECOND, 2 * SECOND))] } else { vec![] };
    let stalls = if rng.chance(100_000) { vec![(moment(rng), rng.between(MILLISECOND, SECOND / 2))] } else { vec![] };
    let endpoints = (0..rng.between(1, size.endpoints)).map(|_| endpoint(rng, topics, active)).collect();
    // Every host has a process before any has two.
    let host = if index < hosts.len() { index } else { rng.below(hosts.len() as u64) as usize };
    ProcessPlan { host, start, crashes, stalls, endpoints }
}

fn endpoint(rng: &mut Rng, topics: &[TopicPlan], active: Nanos) -> EndpointPlan {
    let topic = rng.below(topics.len() as u64) as usize;
    let create = if rng.chance(700_000) { 0 } else { rng.below(active) };
    let delete = rng.chance(100_000).then(|| create + rng.below(active));
    let role = if rng.chance(450_000) {
        // No more than some 20 MB/s of one writer.
        let least = (topics[topic].sizes.1 as u64 * 50).max(MILLISECOND / 2);
        let period = *rng.pick(&[1, 3, 10, 30, 100]) * MILLISECOND;
        let bytes = topics[topic].sizes.1 as u64 * (active / period.max(least)).max(1);
        let samples = if bytes > 20_000_000 { 20_000_000 / topics[topic].sizes.1 as u64 } else { 5_000 };
        let burst = if rng.chance(300_000) { rng.between(2, 30) } else { 1 };
        let samples = samples.min(rng.between(1, 5_000)) as u32;
        Role::Writer { period: period.max(least) * burst, burst: burst as u32, samples }
    } else {
        Role::Reader { period: *rng.pick(&[0, 0, 0, 7, 50, 400]) * MILLISECOND }
    };
    EndpointPlan { topic, qos: qos(rng), create, delete, role }
}

fn qos(rng: &mut Rng) -> QosPlan {
    let keep_last = rng.chance(500_000).then(|| rng.between(1, 20) as u32);
    let limit = |rng: &mut Rng| (keep_last.is_none() && rng.chance(300_000)).then(|| rng.between(8, 300) as u32);
    QosPlan {
        reliable: rng.chance(750_000),
        transient_local: rng.chance(400_000),
        keep_last,
        max_samples: limit(rng),
        priority: rng.below(8) as u8,
        partition: if rng.chance(900_000) { 0 } else { rng.between(1, 2) as u8 },
    }
}

fn fault(rng: &mut Rng, hosts: usize, active: Nanos) -> Fault {
    let from = rng.below(active);
    let until = (from + rng.between(MILLISECOND, active)).min(active);
    let kind = if rng.chance(750_000) {
        let share = |rng: &mut Rng| *rng.pick(&[10_000, 100_000, 300_000]);
        let trouble = match rng.below(7) {
            0 => Trouble::Loss(share(rng)),
            1 => Trouble::Burst(5_000, 100_000),
            2 => Trouble::Duplication(share(rng)),
            3 => Trouble::Reordering(share(rng), rng.between(1_000, 20 * MILLISECOND)),
            4 => Trouble::Corruption(share(rng)),
            5 => Trouble::Delay(rng.between(MILLISECOND, 100 * MILLISECOND)),
            _ => Trouble::Clog,
        };
        let direction = *rng.pick(&[Direction::Up, Direction::Down]);
        FaultKind::Link { host: rng.below(hosts as u64) as usize, direction, trouble }
    } else {
        let flapping = if rng.chance(300_000) { rng.between(50, 2_000) * MILLISECOND } else { 0 };
        FaultKind::Partition { group: rng.next(), one_way: rng.chance(300_000), flapping }
    };
    Fault { from, until, kind }
}
