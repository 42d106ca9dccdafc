//! Services in a world in addition to the applications: a recorded participant of another vendor, a
//! discovery server, or a durability service.

use super::{Direction, EndPlan, EndpointPlan, Fault, FaultKind, HostPlan, NetworkPlan, ProcessPlan, QosPlan, Role};
use super::{Impairment, Scenario, TopicPlan};
use crate::check::progress::HEARTBEAT_PERIOD;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::durability::DurabilityPlan;
use crate::process::LEASE;
use crate::recorded::RecordedPlan;
use crate::recording::Product;
use crate::rng::Rng;

/// Chance in a million that a world has one of these.
const SERVICES_CHANCE: u32 = 60_000;

/// Services of a world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Services {
    /// Recorded participant of another vendor.
    pub recorded: Option<RecordedPlan>,
    /// Process that is a discovery server. Multicast then reaches no participant, and all others
    /// know only the server.
    pub discovery_server: Option<usize>,
    /// Durability services, with their writers and readers.
    pub durability: Option<DurabilityPlan>,
    /// Period with which each process requests types from another one.
    pub lookup_period: Option<Nanos>,
}

/// Kind of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// [`Services::recorded`].
    Recorded,
    /// [`Services::discovery_server`].
    DiscoveryServer,
    /// [`Services::durability`].
    Durability,
}

impl Service {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Recorded, Self::DiscoveryServer, Self::Durability];
}

impl Scenario {
    /// Returns the service of the world of a seed. Uses separate random numbers, so that other
    /// worlds stay unchanged.
    #[must_use]
    pub fn service_of(seed: u64) -> Option<Service> {
        let mut rng = Rng::new(seed ^ SERVICES_SALT);
        rng.chance(SERVICES_CHANCE).then(|| *rng.pick(&Service::ALL))
    }

    /// Returns a world with this service.
    #[must_use]
    pub fn served(service: Service, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7365_7276_6963_6573);
        let mut world = applications(seed, &mut rng);
        match service {
            Service::Recorded => {
                let processes = world.processes.len() as u64;
                world.services.recorded = Some(RecordedPlan {
                    product: *rng.pick(&Product::ALL),
                    host: rng.below(world.hosts.len() as u64) as usize,
                    start: rng.below(world.active / 2),
                    matching_processes: rng.between(1, processes) as usize,
                });
            }
            Service::DiscoveryServer => world.add_server(&mut rng),
            Service::Durability => world.add_durability(&mut rng, 1),
        }
        world
    }

    /// Returns a world with two durability services, each with its own store.
    pub(super) fn served_twice(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7365_7276_6963_6532);
        let mut world = applications(seed, &mut rng);
        world.add_durability(&mut rng, 2);
        world
    }

    /// Adds the server, a process without endpoints on a separate host. For a while all that it
    /// sends is lost. In every second world each host is in a separate subnet, so that a
    /// participant accepts the address of another one only from the server or from that participant
    /// itself. There the server is killed, and two participants depend on its successor. Most
    /// processes exist by then and create their endpoints one by one, so that introductions are
    /// lost.
    fn add_server(&mut self, rng: &mut Rng) {
        let early = 300 * MILLISECOND;
        let mut subnets = Rng::new(self.seed ^ SUBNETS_SALT);
        self.network.is_routed = subnets.chance(500_000);
        let killed_before = (rng.chance(600_000) || self.network.is_routed).then_some(self.active);
        if killed_before.is_some() {
            // After the lease of the former server has ended, new endpoints are created.
            self.active += LEASE + SECOND;
        }
        for process in &mut self.processes {
            if rng.chance(800_000) {
                process.start = rng.below(early);
                process.endpoints.iter_mut().for_each(|endpoint| endpoint.create = rng.between(early, self.active));
            }
        }
        let host = self.hosts.len();
        self.hosts.push(self.hosts[0].clone());
        let mut server = process(host, rng.below(early));
        for _ in 0..rng.between(1, 2) {
            let from = rng.between(self.active / 8, self.active - 1);
            let until = from + rng.between(300 * MILLISECOND, 2 * SECOND);
            let kind = FaultKind::Partition { group: 1 << host, one_way: true, flapping: 0 };
            self.faults.push(Fault { from, until, kind });
        }
        if let Some(latest) = killed_before {
            let (at, pause) = (rng.between(early, latest), rng.between(MILLISECOND, SECOND));
            server.ends.push(EndPlan { at, pause, farewell: rng.chance(200_000) });
            if self.network.is_routed {
                self.add_unacquainted_processes(&mut subnets, at + LEASE + 500 * MILLISECOND);
            }
        }
        self.hosts.iter_mut().for_each(|host| host.hears_multicast = false);
        self.services.discovery_server = Some(self.processes.len());
        self.processes.push(server);
    }

    /// Adds two processes on different hosts that know the server since its first life, and share a
    /// topic from `matched_at` on. By then the lease of the first server has ended for them, and
    /// its successor must introduce them to each other.
    fn add_unacquainted_processes(&mut self, rng: &mut Rng, matched_at: Nanos) {
        let topic = self.topics.len();
        self.topics.push(TopicPlan { instances: 0, sizes: (24, 1_000) });
        let role = Role::Writer { period: 10 * MILLISECOND, burst: 1, samples: 50, endings: 0 };
        for (host, role) in [role, Role::Reader { period: 0 }].into_iter().enumerate() {
            let mut plan = process(host, 0);
            let create = matched_at + rng.below(300 * MILLISECOND);
            let qos = QosPlan { reliable: true, ..QosPlan::default() };
            plan.endpoints.push(EndpointPlan { topic, qos, create, delete: None, role });
            self.processes.push(plan);
        }
    }

    /// Adds writers, durability services that are each killed up to three times, and readers, some
    /// of which join late.
    fn add_durability(&mut self, rng: &mut Rng, services: usize) {
        let (active, hosts) = (self.active, self.hosts.len() as u64);
        let plan = DurabilityPlan {
            first: self.processes.len(),
            writers: rng.between(1, 2) as usize,
            services,
            readers: rng.between(1, 3) as usize,
            // The trust of services in each other is not checked here, so a service that receives
            // from another one has no forger.
            has_forger: rng.chance(400_000) && services == 1,
            period: rng.between(5, 50) * MILLISECOND,
            commit_time: rng.between(1, 200) * MILLISECOND,
        };
        for _ in 0..plan.writers {
            let mut writer = process(rng.below(hosts) as usize, rng.below(active / 4));
            if rng.chance(600_000) {
                writer.ends.push(end(rng, active));
            }
            self.processes.push(writer);
        }
        let service = durability_service(rng, hosts, active);
        // A writer may be killed together with the service.
        for writer in &mut self.processes[plan.first..] {
            if let Some(first) = service.ends.first().filter(|_| rng.chance(600_000)) {
                writer.ends = vec![*first];
            }
        }
        self.processes.extend([service.clone(), service]);
        for _ in 1..services {
            let service = durability_service(rng, hosts, active);
            self.processes.extend([service.clone(), service]);
        }
        for _ in 0..plan.readers {
            let mut reader = process(rng.below(hosts) as usize, rng.below(active));
            if rng.chance(200_000) {
                reader.ends.push(end(rng, active));
            }
            self.processes.push(reader);
        }
        self.services.durability = Some(plan);
        if plan.has_forger {
            self.processes.push(process(rng.below(hosts) as usize, rng.below(active / 2)));
            self.faults.clear();
            for process in &mut self.processes {
                process.start = process.start.min(active / 2);
                process.ends.clear();
                process.stalls.clear();
            }
        }
    }

    /// Returns the maximum number of introductions that a discovery server sends in one second
    /// without changes: one per other participant.
    pub(super) fn introductions(&self, process: usize) -> u64 {
        if self.services.discovery_server == Some(process) { self.processes.len() as u64 } else { 0 }
    }

    /// Returns the maximum number of datagrams that processes exchange in `time` for unacknowledged
    /// changes: a heartbeat per reader and period, and an answer. A reader does not acknowledge a
    /// forger that it does not trust.
    pub(super) fn reminders(&self, time: Nanos) -> u64 {
        let reminding = self.services.durability.filter(|plan| plan.has_forger);
        reminding.map_or(0, |plan| (plan.readers + plan.services) as u64 * (time / HEARTBEAT_PERIOD + 1))
    }

    /// Returns the time spans in which the discovery server is absent.
    pub(super) fn server_absences(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        let server = self.services.discovery_server.map(|index| &self.processes[index]);
        let late = server.map(|server| (0, server.start));
        let ends = server.into_iter().flat_map(|server| &server.ends);
        late.into_iter().chain(ends.map(|end| (end.at, end.at + end.pause)))
    }
}

/// Salt of the seed that selects these worlds.
const SERVICES_SALT: u64 = 0x7365_72e3_0000;

/// Salt of the seed that selects worlds with a discovery server and a subnet per host.
const SUBNETS_SALT: u64 = 0x7375_626e_6574;

/// Returns a small world of applications on reliable topics. Some processes end, and some links
/// fail for a while.
fn applications(seed: u64, rng: &mut Rng) -> Scenario {
    let active = rng.between(2 * SECOND, 4 * SECOND);
    let hosts = rng.between(2, 4) as usize;
    let host = |rng: &mut Rng| HostPlan {
        drift_ppb: rng.between(0, 400_000) as i64 - 200_000,
        wall_jumps: vec![],
        hears_multicast: true,
        switch: 0,
    };
    let topics = rng.between(1, 3) as usize;
    let count = rng.between(hosts as u64, hosts as u64 + 2) as usize;
    let mut processes: Vec<_> = (0..count).map(|index| process(index % hosts, rng.below(active / 2))).collect();
    for topic in 0..topics {
        for _ in 0..rng.between(1, 2) {
            let samples = rng.between(5, 100) as u32;
            let role = Role::Writer { period: rng.between(10, 60) * MILLISECOND, burst: 1, samples, endings: 0 };
            add(rng, &mut processes, topic, role, active);
        }
        for _ in 0..rng.between(1, 3) {
            add(rng, &mut processes, topic, Role::Reader { period: 0 }, active);
        }
    }
    for process in &mut processes {
        if rng.chance(200_000) {
            process.ends.push(end(rng, active));
        }
        if rng.chance(100_000) {
            process.stalls.push((rng.below(active), rng.between(MILLISECOND, SECOND)));
        }
    }
    Scenario {
        seed,
        active,
        hosts: (0..hosts).map(|_| host(rng)).collect(),
        network: NetworkPlan { propagation: rng.between(500, 50_000), ..NetworkPlan::PLAIN },
        topics: (0..topics).map(|_| TopicPlan { instances: rng.below(3) as u8, sizes: (24, 1_000) }).collect(),
        processes,
        faults: (0..rng.below(4)).map(|_| fault(rng, hosts, active)).collect(),
        ..Scenario::default()
    }
}

/// Returns one of the two processes of a durability service, which have the same plan.
fn durability_service(rng: &mut Rng, hosts: u64, active: Nanos) -> ProcessPlan {
    let mut service = process(rng.below(hosts) as usize, rng.below(active / 4));
    let mut at = service.start;
    for _ in 0..rng.below(4) {
        at += rng.between(50 * MILLISECOND, active / 2);
        let pause = rng.between(MILLISECOND, SECOND);
        service.ends.push(EndPlan { at, pause, farewell: false });
        at += pause;
    }
    service
}

fn process(host: usize, start: Nanos) -> ProcessPlan {
    ProcessPlan { host, start, ends: vec![], stalls: vec![], cost: 0, endpoints: vec![] }
}

fn end(rng: &mut Rng, active: Nanos) -> EndPlan {
    EndPlan {
        at: rng.between(active / 4, active),
        pause: rng.between(MILLISECOND, 2 * SECOND),
        farewell: rng.chance(300_000),
    }
}

fn add(rng: &mut Rng, processes: &mut [ProcessPlan], topic: usize, role: Role, active: Nanos) {
    let qos = QosPlan { reliable: true, transient_local: rng.chance(500_000), ..QosPlan::default() };
    let create = if rng.chance(500_000) { 0 } else { rng.below(active) };
    let process = rng.below(processes.len() as u64) as usize;
    processes[process].endpoints.push(EndpointPlan { topic, qos, create, delete: None, role });
}

fn fault(rng: &mut Rng, hosts: usize, active: Nanos) -> Fault {
    let from = rng.below(active);
    let until = from + rng.between(100 * MILLISECOND, 2 * SECOND);
    let host = rng.below(hosts as u64) as usize;
    let direction = *rng.pick(&[Direction::Up, Direction::Down]);
    let impairment = *rng.pick(&[
        Impairment::Loss(100_000),
        Impairment::Loss(400_000),
        Impairment::Burst(50_000, 100_000),
        Impairment::Duplication(300_000),
        Impairment::Reordering(300_000, 20 * MILLISECOND),
        Impairment::Delay(5 * MILLISECOND),
    ]);
    let group = 1 << host;
    let kind = match rng.below(5) {
        0 => FaultKind::Partition { group, one_way: rng.chance(300_000), flapping: 0 },
        _ => FaultKind::Link { host, direction, impairment },
    };
    Fault { from, until, kind }
}
