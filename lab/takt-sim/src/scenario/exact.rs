//! Exact worlds: without loss, damage and delay, so that the rules about time are exact. Also
//! crowds of readers that join a blocked writer, and coherent sets of writers with short histories.

use takt_wire::qos::{AccessScope, LivelinessKind, Presentation};

use super::{
    Direction, EndPlan, EndpointPlan, Fault, FaultKind, FilterPlan, HostPlan, Impairment, LivelinessPlan, NetworkPlan,
    ProcessPlan, QosPlan, Role, Scenario, TopicPlan,
};
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::rng::Rng;

/// Theme of the endpoints of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    /// DEADLINE.
    Deadlines,
    /// LIVELINESS.
    Leases,
    /// OWNERSHIP, with a strongest writer that is deleted.
    Owners,
    /// LATENCY_BUDGET.
    Budgets,
    /// DURABILITY and HISTORY, with late joiners.
    History,
    /// Instances that end and are written again.
    Lives,
    /// Samples that are directed to one reader.
    Directed,
}

const THEMES: [Theme; 7] =
    [Theme::Deadlines, Theme::Leases, Theme::Owners, Theme::Budgets, Theme::History, Theme::Lives, Theme::Directed];

/// Chance in a million that an exact world is a crowd instead. The next constant is that of
/// coherent sets.
const READER_CROWD_CHANCE: u32 = 150_000;
const SETS_CHANCE: u32 = 200_000;

impl Scenario {
    /// Returns the exact world of a seed.
    #[must_use]
    pub fn exact(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x6578_6163_746c_7921);
        let active = rng.between(3 * SECOND, 5 * SECOND);
        let hosts: Vec<_> = (0..rng.between(1, 3)).map(|_| host(&mut rng)).collect();
        let (is_crowd, has_sets) = (rng.chance(READER_CROWD_CHANCE), rng.chance(SETS_CHANCE));
        let themes: Vec<_> = (0..rng.between(1, 3)).map(|_| *rng.pick(&THEMES)).collect();
        let mut processes: Vec<_> =
            (0..rng.between(2, 4) as usize).map(|index| process(&mut rng, index % hosts.len(), active)).collect();
        let (mut presentation, mut faults) = (None, vec![]);
        let topics = if is_crowd {
            reader_crowd(&mut rng, &mut processes, active);
            // Readers that join lose the messages that state where their data begin.
            let kind = FaultKind::Link { host: 0, direction: Direction::Up, impairment: Impairment::Loss(300_000) };
            faults.push(Fault { from: 0, until: active, kind });
            vec![TopicPlan { instances: 0, sizes: (24, 1_000) }]
        } else if has_sets {
            let access_scope = *rng.pick(&[AccessScope::Instance, AccessScope::Topic]);
            let ordered_access = rng.chance(500_000);
            presentation = Some(Presentation { access_scope, coherent_access: true, ordered_access });
            vec![sets(&mut rng, &mut processes, active)]
        } else {
            themes.iter().enumerate().map(|(at, theme)| topic(&mut rng, at, *theme, &mut processes, active)).collect()
        };
        let network = NetworkPlan { propagation: rng.between(500, 50_000), ..NetworkPlan::PLAIN };
        let mut scenario =
            Self { seed, active, hosts, network, topics, processes, faults, presentation, ..Self::default() };
        scenario.add_filtered_leases(&mut Rng::new(seed ^ 0x7769_7468));
        scenario
    }

    /// Adds filters and directed samples to 40 % of the topics whose writers have manual leases,
    /// with separate random numbers. A sample that is not sent to a reader still asserts the
    /// liveliness of its writer.
    fn add_filtered_leases(&mut self, rng: &mut Rng) {
        for topic in 0..self.topics.len() {
            let (has_filters, is_directed) = (rng.chance(200_000), rng.chance(200_000));
            let mut endpoints: Vec<_> = self.processes.iter_mut().flat_map(|process| &mut process.endpoints).collect();
            endpoints.retain(|plan| plan.topic == topic);
            let has_leases = endpoints.iter().any(|plan| plan.qos.liveliness.is_some());
            for plan in endpoints.into_iter().filter(|_| has_leases) {
                let filter = *rng.pick(&[2, 10, 100_000]);
                plan.qos.filter = has_filters.then_some(FilterPlan::Multiples(filter));
                plan.qos.directed = is_directed && matches!(plan.role, Role::Writer { .. });
            }
        }
    }

    /// Reports whether every coherent set must be seen that its writer's history holds, since no
    /// fault occurs.
    #[must_use]
    pub fn has_exact_sets(&self) -> bool {
        let endpoints = || self.processes.iter().flat_map(|process| &process.endpoints);
        let is_slow = |plan: &EndpointPlan| match plan.role {
            Role::Writer { period, burst, .. } => burst == 1 && period >= 10 * MILLISECOND,
            Role::Reader { period } => period == 0 && plan.qos.max_samples.is_none(),
        };
        let presentation = self.presentation.filter(|it| it.coherent_access && it.access_scope != AccessScope::Group);
        presentation.is_some() && self.is_quiet() && endpoints().all(is_slow)
    }

    /// Reports whether rules about time are exact: no fault occurs, no limit is reached, and no
    /// link is busy.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        // No sample of a batch replaces a sample that could be sent.
        let is_batched = self.batches.is_some();
        let endpoints = || self.processes.iter().flat_map(|process| &process.endpoints);
        let is_slow = |plan: &EndpointPlan| match plan.role {
            Role::Writer { period, burst, .. } => (burst == 1 || is_batched) && period >= 10 * MILLISECOND,
            Role::Reader { .. } => true,
        };
        self.is_quiet()
            && self.presentation.is_none()
            && endpoints().all(|plan| plan.qos.max_samples.is_none() && is_slow(plan))
    }
}

impl Scenario {
    /// Reports whether no fault occurs and no link is busy.
    fn is_quiet(&self) -> bool {
        self.is_calm()
            && self.has_steady_clocks()
            && self.is_light()
            && self.hostile.is_none()
            && self.services.recorded.is_none()
            && self.services.discovery_server.is_none()
            && self.services.durability.is_none()
            && self.domain.is_none()
            && self.network.bits_per_second >= 1_000_000_000
            && self.hosts.iter().all(|host| host.hears_multicast)
            && self.topics.iter().all(|topic| topic.sizes.1 <= 1_000)
    }
}

fn host(rng: &mut Rng) -> HostPlan {
    HostPlan {
        drift_ppb: rng.between(0, 400_000) as i64 - 200_000,
        wall_jumps: vec![],
        hears_multicast: true,
        switch: 0,
    }
}

fn process(rng: &mut Rng, host: usize, active: Nanos) -> ProcessPlan {
    let start = if rng.chance(700_000) { rng.below(MILLISECOND) } else { rng.below(active / 2) };
    let at = rng.between(start + active / 3, start + active);
    let end = EndPlan { at, pause: rng.between(MILLISECOND, 2 * SECOND), farewell: rng.chance(500_000) };
    let ends = if rng.chance(250_000) { vec![end] } else { vec![] };
    ProcessPlan { host, start, ends, stalls: vec![], cost: 0, endpoints: vec![] }
}

/// Adds the endpoints of a topic to some processes.
fn topic(rng: &mut Rng, at: usize, theme: Theme, processes: &mut [ProcessPlan], active: Nanos) -> TopicPlan {
    let keyed = matches!(theme, Theme::Lives | Theme::Owners) || rng.chance(500_000);
    let writers = if theme == Theme::Owners { 2 } else { rng.between(1, 2) };
    for index in 0..writers {
        let period = *rng.pick(&[10, 30, 100]) * MILLISECOND * if theme == Theme::Leases { 4 } else { 1 };
        let endings = if theme == Theme::Lives { 250_000 } else { 0 };
        let samples = rng.between(5, active / period) as u32;
        let role = Role::Writer { period, burst: 1, samples, endings };
        // The strongest writer is deleted, and the other one continues.
        let strength = if index == 0 { 2 } else { rng.below(2) as i32 };
        let goes = theme == Theme::Owners && index == 0 && rng.chance(700_000);
        let delete = goes.then(|| rng.between(active / 8, active / 3));
        let qos = QosPlan { strength: (theme == Theme::Owners).then_some(strength), ..writer(rng, theme) };
        let process = rng.below(processes.len() as u64) as usize;
        processes[process].endpoints.push(EndpointPlan { topic: at, qos, create: 0, delete, role });
    }
    for _ in 0..rng.between(1, 3) {
        let is_slow = theme == Theme::Lives && rng.chance(500_000);
        let role = Role::Reader { period: if is_slow { 400 * MILLISECOND } else { 0 } };
        let qos = reader(rng, theme, is_slow);
        let create = if rng.chance(500_000) { 0 } else { rng.below(active) };
        let process = rng.below(processes.len() as u64) as usize;
        processes[process].endpoints.push(EndpointPlan { topic: at, qos, create, delete: None, role });
    }
    TopicPlan { instances: if keyed { rng.between(1, 3) as u8 } else { 0 }, sizes: (24, 200) }
}

fn writer(rng: &mut Rng, theme: Theme) -> QosPlan {
    let qos = QosPlan { reliable: rng.chance(800_000), ..QosPlan::default() };
    match theme {
        Theme::Deadlines => QosPlan { deadline: Some(*rng.pick(&[100, 200, 400]) * MILLISECOND), ..qos },
        Theme::Leases => {
            let kinds = [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic];
            let lease = *rng.pick(&[300, 600]) * MILLISECOND;
            QosPlan { liveliness: Some(LivelinessPlan { kind: *rng.pick(&kinds), lease }), ..qos }
        }
        Theme::Owners => QosPlan { reliable: true, ..qos },
        Theme::Budgets => QosPlan { budget: *rng.pick(&[2, 10, 20]) * MILLISECOND, ..qos },
        Theme::History => {
            let keep_last = rng.chance(500_000).then(|| rng.between(1, 5) as u32);
            QosPlan { transient_local: rng.chance(700_000), keep_last, ..qos }
        }
        Theme::Lives => QosPlan { reliable: true, ..qos },
        Theme::Directed => QosPlan { directed: true, transient_local: rng.chance(500_000), ..qos },
    }
}

fn reader(rng: &mut Rng, theme: Theme, is_slow: bool) -> QosPlan {
    let qos = QosPlan { reliable: rng.chance(700_000), ..QosPlan::default() };
    match theme {
        Theme::Deadlines => QosPlan { deadline: rng.chance(800_000).then_some(400 * MILLISECOND), ..qos },
        Theme::Leases => qos,
        Theme::Owners => QosPlan { reliable: true, strength: Some(0), ..qos },
        Theme::Budgets => QosPlan { budget: 20 * MILLISECOND, ..qos },
        Theme::History | Theme::Directed => QosPlan { transient_local: rng.chance(400_000), ..qos },
        Theme::Lives => QosPlan { reliable: true, purge: is_slow.then_some(100 * MILLISECOND), ..qos },
    }
}

/// Adds writers of coherent sets with short or full histories, and early and late readers.
fn sets(rng: &mut Rng, processes: &mut [ProcessPlan], active: Nanos) -> TopicPlan {
    let instances = rng.below(5) as u8;
    for _ in 0..rng.between(1, 2) {
        let depth = rng.between(1, 3) as u32;
        let keep_last = rng.chance(800_000).then_some(depth);
        let most = depth * u32::from(instances.max(1));
        let max_samples = keep_last.and_then(|_| rng.chance(700_000).then(|| most + rng.below(3) as u32));
        let qos = QosPlan { reliable: true, transient_local: rng.chance(700_000), ..QosPlan::default() };
        let qos = QosPlan { keep_last, max_samples, ..qos };
        let role = Role::Writer { period: 10 * MILLISECOND, burst: 1, samples: 5_000, endings: 0 };
        let process = rng.below(processes.len() as u64) as usize;
        processes[process].endpoints.push(EndpointPlan { topic: 0, qos, create: 0, delete: None, role });
    }
    for _ in 0..rng.between(1, 4) {
        let qos = QosPlan { reliable: true, transient_local: rng.chance(500_000), ..QosPlan::default() };
        let create = if rng.chance(300_000) { 0 } else { rng.below(active) };
        let role = Role::Reader { period: 0 };
        let process = rng.below(processes.len() as u64) as usize;
        processes[process].endpoints.push(EndpointPlan { topic: 0, qos, create, delete: None, role });
    }
    TopicPlan { instances, sizes: (24, 200) }
}

/// Adds a writer of large bursts that is blocked by a reader with a small history and rare takes,
/// and readers that join one by one.
fn reader_crowd(rng: &mut Rng, processes: &mut [ProcessPlan], active: Nanos) {
    let qos = QosPlan { reliable: true, ..QosPlan::default() };
    let role = Role::Writer { period: 30 * MILLISECOND, burst: rng.between(10, 40) as u32, samples: 4_000, endings: 0 };
    let keeps = QosPlan { max_samples: Some(rng.between(50, 500) as u32), ..qos };
    processes[0].endpoints.push(EndpointPlan { topic: 0, qos: keeps, create: 0, delete: None, role });
    for process in processes.iter_mut().skip(1) {
        let slow = QosPlan { max_samples: Some(rng.between(8, 40) as u32), ..qos };
        let role = Role::Reader { period: *rng.pick(&[20, 50, 200]) * MILLISECOND };
        process.endpoints.push(EndpointPlan { topic: 0, qos: slow, create: 0, delete: None, role });
        for _ in 0..rng.between(1, 5) {
            let create = rng.below(active);
            let role = Role::Reader { period: 0 };
            process.endpoints.push(EndpointPlan { topic: 0, qos, create, delete: None, role });
        }
    }
}
