//! Generation of the scenario of a seed.

use takt_wire::qos::{AccessScope, LivelinessKind, Presentation};

use super::{
    Direction, Discipline, EndPlan, EndpointPlan, Fault, FaultKind, FilterPlan, HostPlan, Impairment, LivelinessPlan,
    NetworkPlan, ProcessPlan, QosPlan, Role, Scenario, TopicPlan,
};
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::hostile::HostilePlan;
use crate::rng::Rng;

/// Maximum LATENCY_BUDGET in milliseconds.
const BUDGET_MAX_MS: Nanos = 20;

/// Chance in a million that a world is exact.
const EXACT_CHANCE: u32 = 250_000;

/// Bounds of the generated scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Maximum number of hosts.
    pub hosts: u64,
    /// Maximum number of processes.
    pub processes: u64,
    /// Maximum number of topics.
    pub topics: u64,
    /// Maximum number of endpoints per process.
    pub endpoints: u64,
    /// Maximum active time.
    pub active: Nanos,
}

impl Size {
    /// Small worlds, which take some tens of milliseconds of processor time.
    pub const SMALL: Self = Self { hosts: 4, processes: 5, topics: 4, endpoints: 4, active: 4 * SECOND };
    /// Large worlds, some with at least 20 hosts and 50 topics.
    pub const LARGE: Self = Self { hosts: 32, processes: 40, topics: 80, endpoints: 8, active: 6 * SECOND };
}

impl Scenario {
    /// Returns the scenario of a seed: occasionally a large one, mostly a small one, which finds
    /// most errors per processor time.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        if let Some(focus) = Self::focus_of(seed) {
            return Self::focused_on(focus, seed);
        }
        if let Some(service) = Self::service_of(seed) {
            return Self::served(service, seed);
        }
        // Separate random numbers: other worlds stay unchanged.
        if Rng::new(seed ^ 0x6578_6163).chance(EXACT_CHANCE) {
            return Self::exact(seed);
        }
        let mut rng = Rng::new(seed);
        let size = if rng.chance(30_000) { Size::LARGE } else { Size::SMALL };
        let scenario = Self::within(seed, &size);
        // Separate random numbers: worlds without a hostile host stay unchanged.
        if Rng::new(seed ^ 0x7761_7221).chance(100_000) { scenario.with_hostile() } else { scenario }
    }

    /// Adds a hostile host, as the seed determines. It replaces a recorded participant.
    #[must_use]
    pub fn with_hostile(mut self) -> Self {
        self.hostile = Some(HostilePlan::of_seed(self.seed, self.hosts.len(), self.active));
        self.services.recorded = None;
        self
    }

    /// Returns the scenario of a seed within bounds.
    #[must_use]
    pub fn within(seed: u64, size: &Size) -> Self {
        let mut rng = Rng::new(seed ^ 0x7461_6b74);
        let mut later = Rng::new(seed ^ 0x6c69_6665);
        let mut last = Rng::new(seed ^ 0x7061_6365);
        let mut moving = Rng::new(seed ^ 0x6d6f_7665);
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
        let mut scenario = Self { seed, active, hosts, network, topics, processes, faults, ..Self::default() };
        add_moves(&mut moving, &mut scenario);
        add_instance_ends(&mut later, &mut scenario);
        add_contracts(&mut last, &mut scenario);
        add_orders(&mut Rng::new(seed ^ 0x6f72_6465), &mut scenario);
        add_budgets(&mut Rng::new(seed ^ 0x6275_6467), &mut scenario);
        add_purges(&mut Rng::new(seed ^ 0x7075_7267), &mut scenario);
        add_lifespans(&mut Rng::new(seed ^ 0x7370_616e), &mut scenario);
        add_filters(&mut Rng::new(seed ^ 0x6669_6c74), &mut scenario);
        add_separations(&mut Rng::new(seed ^ 0x7365_7061), &mut scenario);
        add_presentation(&mut Rng::new(seed ^ 0x7072_6573), &mut scenario);
        add_urgencies(&mut Rng::new(seed ^ 0x7572_6765), &mut scenario);
        scenario.add_alterations(&mut Rng::new(seed ^ 0x616c_7465));
        add_paths(&mut Rng::new(seed ^ 0x7061_7468), &mut scenario.network);
        scenario.add_batches(&mut Rng::new(seed ^ 0x6261_7463));
        scenario.add_static_endpoints(&mut Rng::new(seed ^ 0x7374_6174));
        scenario.add_ignoring(&mut Rng::new(seed ^ 0x6967_6e6f));
        add_costs(&mut Rng::new(seed ^ 0x636f_7374), &mut scenario);
        add_damage(&mut Rng::new(seed ^ 0x6461_6d61), &mut scenario);
        scenario
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
        ..NetworkPlan::PLAIN
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
    let end = |at, pause| EndPlan { at, pause, farewell: false };
    let ends = if rng.chance(150_000) { vec![end(moment(rng), rng.between(MILLISECOND, 2 * SECOND))] } else { vec![] };
    let stalls = if rng.chance(100_000) { vec![(moment(rng), rng.between(MILLISECOND, SECOND / 2))] } else { vec![] };
    let endpoints = (0..rng.between(1, size.endpoints)).map(|_| endpoint(rng, topics, active)).collect();
    // Every host has a process before any host has two.
    let host = if index < hosts.len() { index } else { rng.below(hosts.len() as u64) as usize };
    ProcessPlan { host, start, ends, stalls, cost: 0, endpoints }
}

fn endpoint(rng: &mut Rng, topics: &[TopicPlan], active: Nanos) -> EndpointPlan {
    let topic = rng.below(topics.len() as u64) as usize;
    let create = if rng.chance(700_000) { 0 } else { rng.below(active) };
    let delete = rng.chance(100_000).then(|| create + rng.below(active));
    let role = if rng.chance(450_000) {
        // At most some 20 MB/s per writer.
        let least = (topics[topic].sizes.1 as u64 * 50).max(MILLISECOND / 2);
        let period = *rng.pick(&[1, 3, 10, 30, 100]) * MILLISECOND;
        let bytes = topics[topic].sizes.1 as u64 * (active / period.max(least)).max(1);
        let samples = if bytes > 20_000_000 { 20_000_000 / topics[topic].sizes.1 as u64 } else { 5_000 };
        let burst = if rng.chance(300_000) { rng.between(2, 30) } else { 1 };
        let samples = samples.min(rng.between(1, 5_000)) as u32;
        Role::Writer { period: period.max(least) * burst, burst: burst as u32, samples, endings: 0 }
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
        ..QosPlan::default()
    }
}

fn fault(rng: &mut Rng, hosts: usize, active: Nanos) -> Fault {
    let from = rng.below(active);
    let until = (from + rng.between(MILLISECOND, active)).min(active);
    let kind = if rng.chance(750_000) {
        let share = |rng: &mut Rng| *rng.pick(&[10_000, 100_000, 300_000]);
        let impairment = match rng.below(7) {
            0 => Impairment::Loss(share(rng)),
            1 => Impairment::Burst(5_000, 100_000),
            2 => Impairment::Duplication(share(rng)),
            3 => Impairment::Reordering(share(rng), rng.between(1_000, 20 * MILLISECOND)),
            4 => Impairment::Corruption(share(rng)),
            5 => Impairment::Delay(rng.between(MILLISECOND, 100 * MILLISECOND)),
            _ => Impairment::Blockage,
        };
        let direction = *rng.pick(&[Direction::Up, Direction::Down]);
        FaultKind::Link { host: rng.below(hosts as u64) as usize, direction, impairment }
    } else {
        let flapping = if rng.chance(300_000) { rng.between(50, 2_000) * MILLISECOND } else { 0 };
        FaultKind::Partition { group: rng.next(), one_way: rng.chance(300_000), flapping }
    };
    Fault { from, until, kind }
}

/// Adds announced ends, disposals and leases, with separate random numbers, so that the rest of a
/// world stays unchanged.
fn add_instance_ends(rng: &mut Rng, scenario: &mut Scenario) {
    for process in &mut scenario.processes {
        for end in &mut process.ends {
            end.farewell = rng.chance(500_000);
        }
        for endpoint in &mut process.endpoints {
            let keyed = scenario.topics[endpoint.topic].instances > 0;
            // A reader with a finite lease matches few writers.
            let asks = if matches!(endpoint.role, Role::Writer { .. }) { 250_000 } else { 60_000 };
            if rng.chance(asks) {
                endpoint.qos.liveliness = Some(liveliness(rng));
            }
            if let Role::Writer { endings, .. } = &mut endpoint.role
                && keyed
                && rng.chance(500_000)
            {
                *endings = *rng.pick(&[1_000, 50_000, 300_000]);
            }
        }
    }
}

fn liveliness(rng: &mut Rng) -> LivelinessPlan {
    let kinds = [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic];
    LivelinessPlan { kind: *rng.pick(&kinds), lease: *rng.pick(&[300, 600, 2_000]) * MILLISECOND }
}

/// Adds deadlines and ownership, with separate random numbers.
fn add_contracts(rng: &mut Rng, scenario: &mut Scenario) {
    for topic in 0..scenario.topics.len() {
        let (is_exclusive, has_deadlines) = (rng.chance(200_000), rng.chance(250_000));
        for endpoint in endpoints_of(scenario, topic) {
            let is_writer = matches!(endpoint.role, Role::Writer { .. });
            let strength = if is_writer { rng.below(3) as i32 } else { 0 };
            endpoint.qos.strength = is_exclusive.then_some(strength);
            // A reader with a finite deadline matches few writers.
            let asks = if is_writer { 700_000 } else { 400_000 };
            let period = *rng.pick(&[100, 300, 1_000]) * MILLISECOND;
            endpoint.qos.deadline = (has_deadlines && rng.chance(asks)).then_some(period);
        }
    }
}

/// Adds lifespans, with separate random numbers.
fn add_lifespans(rng: &mut Rng, scenario: &mut Scenario) {
    for topic in 0..scenario.topics.len() {
        let has_lifespans = rng.chance(200_000);
        for endpoint in endpoints_of(scenario, topic) {
            let lifespan = *rng.pick(&[200, 600, 2_000]) * MILLISECOND;
            let is_writer = matches!(endpoint.role, Role::Writer { .. });
            endpoint.qos.lifespan = (has_lifespans && is_writer && rng.chance(700_000)).then_some(lifespan);
        }
    }
}

/// Adds DESTINATION_ORDER by source timestamp, with separate random numbers.
fn add_orders(rng: &mut Rng, scenario: &mut Scenario) {
    for topic in 0..scenario.topics.len() {
        let is_ordered = rng.chance(250_000);
        for endpoint in endpoints_of(scenario, topic) {
            let asks = if matches!(endpoint.role, Role::Writer { .. }) { 900_000 } else { 700_000 };
            endpoint.qos.by_source = is_ordered && rng.chance(asks);
        }
    }
}

/// Adds content filters, with separate random numbers. The owner of an instance, the time without a
/// sample and the last sample depend on the filter of a reader. Topics with such policies therefore
/// have no filters.
fn add_filters(rng: &mut Rng, scenario: &mut Scenario) {
    for topic in 0..scenario.topics.len() {
        let is_contract = |qos: &QosPlan| qos.strength.is_some() || qos.deadline.is_some() || qos.by_source;
        let has_contracts = endpoints_of(scenario, topic).any(|endpoint| is_contract(&endpoint.qos));
        let has_filters = rng.chance(250_000) && !has_contracts;
        for endpoint in endpoints_of(scenario, topic) {
            let filter = *rng.pick(&[2, 3, 10, 100_000]);
            let filters = if matches!(endpoint.role, Role::Writer { .. }) { 700_000 } else { 600_000 };
            endpoint.qos.filter = (has_filters && rng.chance(filters)).then_some(FilterPlan::Multiples(filter));
        }
    }
}

/// Adds time-based filters, with separate random numbers. Excludes topics with content filters.
fn add_separations(rng: &mut Rng, scenario: &mut Scenario) {
    for topic in 0..scenario.topics.len() {
        let has_filters = endpoints_of(scenario, topic).any(|endpoint| endpoint.qos.filter.is_some());
        let is_filtered = rng.chance(250_000) && !has_filters;
        for endpoint in endpoints_of(scenario, topic) {
            let separation = *rng.pick(&[50, 150, 300]) * MILLISECOND;
            let is_reader = matches!(endpoint.role, Role::Reader { .. });
            // The minimum separation must not exceed the deadline.
            let fits = endpoint.qos.deadline.is_none_or(|period| period >= separation);
            endpoint.qos.separation = (is_filtered && is_reader && rng.chance(600_000) && fits).then_some(separation);
        }
    }
}

/// Adds READER_DATA_LIFECYCLE, with separate random numbers.
fn add_purges(rng: &mut Rng, scenario: &mut Scenario) {
    for topic in 0..scenario.topics.len() {
        let is_purged = rng.chance(300_000);
        for endpoint in endpoints_of(scenario, topic) {
            let delay = *rng.pick(&[20, 100, 300, 700]) * MILLISECOND;
            let is_reader = matches!(endpoint.role, Role::Reader { .. });
            endpoint.qos.purge = (is_purged && is_reader && rng.chance(600_000)).then_some(delay);
        }
    }
}

/// Adds urgencies of writers and readers above or below those of others and of discovery to every
/// second world, with separate random numbers.
fn add_urgencies(rng: &mut Rng, scenario: &mut Scenario) {
    if rng.chance(500_000) {
        for endpoint in scenario.processes.iter_mut().flat_map(|process| &mut process.endpoints) {
            endpoint.qos.urgency = *rng.pick(&[-20, 0, 0, 10, 40]);
        }
    }
}

/// Adds latency budgets, so that samples share datagrams, with separate random numbers.
fn add_budgets(rng: &mut Rng, scenario: &mut Scenario) {
    for topic in 0..scenario.topics.len() {
        let has_budgets = rng.chance(250_000);
        for endpoint in endpoints_of(scenario, topic) {
            let is_writer = matches!(endpoint.role, Role::Writer { .. });
            let budget = if is_writer { *rng.pick(&[2, 10, BUDGET_MAX_MS]) } else { BUDGET_MAX_MS } * MILLISECOND;
            endpoint.qos.budget = if has_budgets && rng.chance(800_000) { budget } else { 0 };
        }
    }
}

fn endpoints_of(scenario: &mut Scenario, topic: usize) -> impl Iterator<Item = &mut EndpointPlan> {
    let endpoints = scenario.processes.iter_mut().flat_map(|process| &mut process.endpoints);
    endpoints.filter(move |endpoint| endpoint.topic == topic)
}

/// Adds hosts whose interfaces vanish and reappear with other addresses, with separate random
/// numbers. Hosts without multicast keep their addresses, which others have configured.
fn add_moves(rng: &mut Rng, scenario: &mut Scenario) {
    let moves = if rng.chance(150_000) { rng.between(1, 4) } else { 0 };
    for _ in 0..moves {
        let host = rng.below(scenario.hosts.len() as u64) as usize;
        let from = rng.below(scenario.active);
        let time = *rng.pick(&[MILLISECOND, 50 * MILLISECOND, SECOND, 4 * SECOND]);
        if scenario.hosts[host].hears_multicast {
            let until = (from + rng.between(time / 2, time)).min(scenario.active);
            scenario.faults.push(Fault { from, until, kind: FaultKind::Move { host } });
        }
    }
}

/// Adds IPv6 to 20 % of the worlds, a second interface to 10 %, and switches with a smaller MTU
/// than hosts to 7 %, with separate random numbers.
fn add_paths(rng: &mut Rng, network: &mut NetworkPlan) {
    network.is_v6 = rng.chance(200_000);
    network.has_second = rng.chance(100_000);
    if rng.chance(70_000) {
        (network.mtu, network.path_mtu) = (9_000, 1_500);
    }
}

/// Adds processing time per datagram to 10 % of the worlds, with separate random numbers. Some
/// processes become overloaded.
fn add_costs(rng: &mut Rng, scenario: &mut Scenario) {
    if rng.chance(100_000) {
        for process in &mut scenario.processes {
            process.cost = *rng.pick(&[0, 20_000, 100_000, 200_000]);
        }
    }
}

/// Adds undetected damage of datagrams, with separate random numbers: of the structure in 15 % of
/// the worlds, of any bit in 3 %.
fn add_damage(rng: &mut Rng, scenario: &mut Scenario) {
    let (is_disfigured, is_flipped) = (rng.chance(150_000), rng.chance(30_000));
    let faults = if is_disfigured || is_flipped { rng.between(1, 3) } else { 0 };
    for _ in 0..faults {
        let share = *rng.pick(&[10_000, 100_000, 500_000]);
        let impairment = if is_flipped { Impairment::Flips(share) } else { Impairment::StructuralDamage(share) };
        let host = rng.below(scenario.hosts.len() as u64) as usize;
        let direction = *rng.pick(&[Direction::Up, Direction::Down]);
        let from = rng.below(scenario.active);
        let until = (from + rng.between(MILLISECOND, scenario.active)).min(scenario.active);
        scenario.faults.push(Fault { from, until, kind: FaultKind::Link { host, direction, impairment } });
    }
}

/// Adds coherent sets and ordered access, in separate worlds without other policies that drop or
/// delay samples.
fn add_presentation(rng: &mut Rng, scenario: &mut Scenario) {
    if !rng.chance(200_000) {
        return;
    }
    let access_scope = *rng.pick(&[AccessScope::Instance, AccessScope::Topic, AccessScope::Group, AccessScope::Group]);
    let coherent_access = rng.chance(700_000);
    let ordered_access = !coherent_access || rng.chance(500_000);
    scenario.presentation = Some(Presentation { access_scope, coherent_access, ordered_access });
    let topics = scenario.topics.len().min(2);
    for endpoint in scenario.processes.iter_mut().flat_map(|process| &mut process.endpoints) {
        // Few topics, so that some sets have several writers that one subscriber reads.
        endpoint.topic %= topics;
        let QosPlan { reliable, transient_local, keep_last, max_samples, priority, liveliness, .. } = endpoint.qos;
        endpoint.qos =
            QosPlan { reliable, transient_local, keep_last, max_samples, priority, liveliness, ..QosPlan::default() };
    }
}
